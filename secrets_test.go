package rhizodat

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestMaskURL(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"nothing to mask", "postgres://app@db:5432/erp?sslmode=disable", "postgres://app@db:5432/erp?sslmode=disable"},
		{"password", "postgres://app:pw@db/erp", "postgres://app:xxxxx@db/erp"},
		{"empty password", "postgres://app:@db/erp", "postgres://app:xxxxx@db/erp"},
		{"password with : ? # % and '", "postgres://app:p:w?#%zz'@db/erp", "postgres://app:xxxxx@db/erp"},
		{"several hosts", "postgres://app:pw@h1:1,[::1]:2/erp", "postgres://app:xxxxx@h1:1,[::1]:2/erp"},
		{"pgx's parameters", "postgres://db/erp?password=pw&sslpassword=pw&passfile=/etc/pw&sslkey=/k", "postgres://db/erp?password=xxxxx&sslpassword=xxxxx&passfile=/etc/pw&sslkey=/k"},
		{"a parameter's name in percent signs and capitals", "postgres://db/erp?pass%77ord=pw&PASSWORD=pw", "postgres://db/erp?pass%77ord=xxxxx&PASSWORD=xxxxx"},
		{
			"object stores",
			"iceberg+dir:///w?s3.access-key-id=id&s3.secret-access-key=s&s3.session-token=t&adls.auth.shared-key.account.key=k&adls.auth.shared-key.account.name=n",
			"iceberg+dir:///w?s3.access-key-id=id&s3.secret-access-key=xxxxx&s3.session-token=xxxxx&adls.auth.shared-key.account.key=xxxxx&adls.auth.shared-key.account.name=n",
		},
		{"REST catalogs", "iceberg+rest+https://c?credential=a:b&token=t&header.Authorization=Basic%20x", "iceberg+rest+https://c?credential=xxxxx&token=xxxxx&header.Authorization=xxxxx"},
		{"a URL in a parameter", "iceberg+rest+https://c?uri=postgres%3A%2F%2Fu%3Apw%40h%2Fd&warehouse=s3://b/p", "iceberg+rest+https://c?uri=postgres%3A%2F%2Fu%3Axxxxx%40h%2Fd&warehouse=s3://b/p"},
		{"a raw URL in a parameter", "iceberg+rest+https://c?uri=postgres://u:pw@h/d", "iceberg+rest+https://xxxxx"},
		{"settings in a parameter", "postgres://db/erp?options=-c%20app.token%3Dpw", "postgres://db/erp?options=xxxxx"},
		{"parameters parted by ;", "postgres://db/erp?a=b;password=pw", "postgres://db/erp?a=xxxxx"},
		{"a parameter without =", "postgres://db/erp?password=p&w&a=b", "postgres://db/erp?password=xxxxx&xxxxx&a=b"},
		{"empty query, empty parameters", "postgres://db/erp?", "postgres://db/erp?"},
		{"password with a raw /", "postgres://app:p/w@db/erp", "postgres://xxxxx"},
		{"password of digits and a raw /", "postgres://app:12/w@db/erp", "postgres://xxxxx"},
		{"password with a raw @", "postgres://app:p@w@db/erp", "postgres://xxxxx"},
		{"password with a raw @ and /", "postgres://app:p@x/w@db/erp", "postgres://xxxxx"},
		{"password with a raw @ and ?", "postgres://app:p@x?y=w@db/erp", "postgres://xxxxx"},
		{"password that begins with @/", "postgres://app:@/w@db/erp", "postgres://xxxxx"},
		{"path with @ and no host", "file:///srv/@data/j.db", "file:///srv/@data/j.db"},
		{"no URL", "pw", "xxxxx"},
		{"no scheme", "://pw", "xxxxx"},
		{"keyword/value", "postgres:password=pw", "xxxxx"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := maskURL(tt.raw); got != tt.want {
				t.Errorf("maskURL(%q)\ngot  %s\nwant %s", tt.raw, got, tt.want)
			}
		})
	}
}

// connector is a ready connector that would print its password.
type connector struct {
	driver.Connector
	Password string
}

// adapterOptions are an adapter's own.
type adapterOptions struct{ Password string }

func (adapterOptions) Scheme() string { return "postgres" }

// TestConfigPrintsNoSecret prints a Config in every way there is.
func TestConfigPrintsNoSecret(t *testing.T) {
	c := Config{
		Stores: map[string]StoreConfig{
			"pg":   {URL: "postgres://app:" + password + "@db/erp?sslpassword=" + password},
			"own":  {Connector: connector{Password: password}},
			"opts": {URL: "postgres://db/x", Options: adapterOptions{Password: password}},
			"bad":  {URL: password},
		},
		Journal:         JournalConfig{URL: "bolt://app:" + password + "@drevo"},
		ApplicationName: "order desk",
	}
	const want = `bad=xxxxx opts=postgres://db/x<rhizodat.adapterOptions> own=<rhizodat.connector> ` +
		`pg=postgres://app:xxxxx@db/erp?sslpassword=xxxxx journal=bolt://app:xxxxx@drevo application_name='order desk'`
	if got := c.String(); got != want {
		t.Errorf("String\ngot  %s\nwant %s", got, want)
	}
	prints := map[string]string{}
	values := map[string]any{
		"config": c, "*config": &c, "store": c.Stores["pg"], "own": c.Stores["own"], "bad": c.Stores["bad"], "journal": c.Journal,
		"stores": c.Stores, "inside": struct{ Config Config }{c}, "list": []any{c.Journal, &c},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			prints[name+" "+verb] = fmt.Sprintf(verb, v)
		}
		for _, handler := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b bytes.Buffer
			slog.New(handler(&b)).LogAttrs(context.Background(), slog.LevelInfo, "opened", slog.Any("value", v))
			prints[fmt.Sprintf("%s %T", name, handler(&b))] = b.String()
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		prints[name+" json"] = string(raw)
	}
	prints["GoString"] = c.GoString() + c.Journal.GoString() + c.Stores["pg"].GoString()
	for how, text := range prints {
		if strings.Contains(text, password) || strings.Contains(text, fmt.Sprintf("%x", password)) {
			t.Errorf("%s shows the password: %s", how, text)
		}
		if text == "" {
			t.Errorf("%s shows nothing", how)
		}
	}
	if got := fmt.Sprintf("%q", c.Journal); got != `"bolt://app:xxxxx@drevo"` {
		t.Errorf("%%q = %s", got)
	}
}

func TestSecretParam(t *testing.T) {
	for name, want := range map[string]bool{
		"password": true, "sslpassword": true, "s3.secret-access-key": true, "s3.session-token": true, "credential": true,
		"API_KEY": true, "oauth2.token": true, "passfile": false, "s3.access-key-id": false, "sslkey": false, "user": false, "schema": false,
	} {
		if got := secretParam(name); got != want {
			t.Errorf("secretParam(%q) = %v", name, got)
		}
	}
}
