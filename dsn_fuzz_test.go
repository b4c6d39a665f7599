package rhizodat

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDSN: nothing panics, no refusal shows the fixture wherever it stands, and
// what is accepted is written so that it reads back as the same.
func FuzzDSN(f *testing.F) {
	for _, dsn := range []string{
		"",
		"pg=postgres://app:" + password + "@db/erp?schema=orders ch=clickhouse://ch:9000/orders graph=bolt://drevo:7687/orders",
		"lake=iceberg+rest+https://cat?warehouse=s3://b/p&token=" + password + " journal=postgres://app@db/coord default=lake",
		"pg='postgres://h/erp?application_name=it\\'s a \\\\ desk' default=pg application_name='order desk'",
		"a=postgres://h/a b=postgres://h/b journal=file:///j.db commit_timeout=1s stale_after=2s lock_timeout=0 min_free=1GiB",
		"a=postgres://h/a on_pending=ok markers=on ping=default journal_conns=3 journal_label=X commit_wait=1m retain=2h max_payload=5KiB",
		"default=postgres://h1:1,[::1]:2/x default=default\n",
		"pg=" + password + " " + password + "=x",
		"postgres://app:" + password + "@db/erp?sslmode=disable",
		"pg=neo4j://app:" + password + "@h journal=" + password,
		"pg='" + password + "'x", "pg='" + password, "=" + password, password, "pg=postgres:" + password,
		"pg=postgres://app:x/" + password + "@db@y/?" + password + "@=&a",
		"\x00" + password, "\xff" + password, "pg=postgres://h/a min_free=" + password + " retain=" + password,
	} {
		f.Add(dsn)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		c, err := ParseDSN(dsn)
		if err != nil {
			if strings.Contains(err.Error(), password) {
				t.Fatalf("the error shows the password: %v", err)
			}
			if e := err.(*DSNError); e.Offset < 0 || e.Offset > len(dsn) { //nolint:errorlint // promised: every refusal is a *DSNError itself
				t.Fatalf("offset %d of %d bytes: %v", e.Offset, len(dsn), err)
			}
			return
		}
		_ = fmt.Sprintf("%+v %#v", c, c.Stores)
		text, err := c.FormatDSN()
		if err != nil {
			t.Fatalf("FormatDSN refuses what ParseDSN took: %v", err)
		}
		again, err := ParseDSN(text)
		if err != nil {
			t.Fatalf("ParseDSN refuses what FormatDSN wrote: %v\n%q", err, text)
		}
		if diff := cmp.Diff(fields(*c), fields(*again)); diff != "" {
			t.Fatalf("not inverse:\n%s", diff)
		}
		if twice, err := again.FormatDSN(); err != nil || twice != text {
			t.Fatalf("FormatDSN is not stable: %q, then %q, %v", text, twice, err)
		}
	})
}

// FuzzMask: wherever a password can stand in a URL, written well or pasted raw,
// neither the masked URL nor the refusal shows it.
func FuzzMask(f *testing.F) {
	for _, secret := range []string{password, "12/34@56", "a@b/c?d=e", "x@1?y=z@w", "p:w?#%zz'", "/", "@/x@y", "a@[::1", "p\x01q", "ü@/ß", "a=b;c", "://u:p@"} {
		f.Add(secret)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		// Two marks make the secret one that no other part of the text holds.
		secret = "Q" + secret + "Q"
		raw := "postgres://app:" + secret + "@db/erp"
		check(t, raw, secret)
		check(t, "iceberg+rest+https://cat?uri="+url.QueryEscape(raw), secret, url.QueryEscape(secret))
		check(t, "postgres://"+url.UserPassword("app", secret).String()+"@db/erp", secret, url.UserPassword("", secret).String()[1:])
		if !strings.Contains(secret, "&") {
			check(t, "postgres://db/erp?sslpassword="+secret, secret)
		}
		check(t, "postgres://db/erp?password="+url.QueryEscape(secret), secret, url.QueryEscape(secret))
	})
}

func check(t *testing.T, raw string, secrets ...string) {
	t.Helper()
	c := Config{Stores: map[string]StoreConfig{"pg": {URL: raw}}}
	texts := []string{maskURL(raw), c.String(), fmt.Sprintf("%+v", &c)}
	for _, dsn := range []string{"pg=" + raw, "pg=" + quote(raw), raw, "journal=" + raw} {
		if strings.ContainsAny(raw, blanks) && !strings.Contains(dsn, "='") {
			continue // a blank ends the word, and what follows it is a word of its own
		}
		if _, err := ParseDSN(dsn); err != nil {
			texts = append(texts, err.Error())
		}
	}
	for _, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Fatalf("%q is shown of %q: %s", secret, raw, text)
			}
		}
	}
}
