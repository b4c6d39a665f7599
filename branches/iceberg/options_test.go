package iceberg_test

import (
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/iceberg"
	"github.com/rhizodat/rhizodat-go/branches/iceberg/internal/icetest"
)

func TestOpen(t *testing.T) {
	const secret = "hunter2+/="
	for _, c := range []struct {
		dsn  string
		want string // in the error; empty: it opens
	}{
		{"iceberg+sqlite:///c.db?warehouse=file:///wh", ""},
		{"iceberg+sqlite:///c.db?warehouse=s3://b/p&s3.secret-access-key=" + secret, ""},
		{"iceberg+postgres://u:" + "pw@h/d?warehouse=file:///wh&schema=lake&sslmode=disable", ""},
		{"iceberg+rest+https://h/api?token=" + secret, ""},
		{"iceberg+rest+http://h?warehouse=main", ""},
		{"iceberg+dir:///wh", ""},
		{"iceberg+dir:///wh?namespace=a.b", ""},

		{"iceberg+glue://x", "scheme"},
		{"iceberg+sqlite:///c.db", "warehouse="},
		{"iceberg+sqlite:c.db?warehouse=file:///wh", "///absolute/path"},
		{"iceberg+sqlite://host/../c.db?warehouse=file:///wh", "///absolute/path"},
		{"iceberg+sqlite:///c.db?warehouse=/wh", "file:///path"},
		{"iceberg+sqlite:///c.db?warehouse=file://wh", "absolute"},
		{"iceberg+sqlite:///c.db?warehouse=gs://b/p", "file:///path or s3"},
		{"iceberg+sqlite:///c.db?warehouse=s3://b//p", "//"},
		{"iceberg+sqlite:///c.db?warehouse=file:///w%20h", "percent-encoded"},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&wharehouse=x", "unknown parameter wharehouse="},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&warehouse=file:///b", "twice"},
		{"iceberg+sqlite:///c.db?warehouse=", "warehouse= is empty"},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&schema=x", "schema="},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&namespace=a..b", "namespace="},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&s3.secret-access-key=%zz" + secret, "percent-encoded"},
		{"iceberg+sqlite:///c.db?warehouse=file:///wh&token=" + secret, "unknown parameter token="},
		{"iceberg+postgres://u:" + secret + "@h:x/d?warehouse=file:///wh", "malformed"},
		{"iceberg+rest+http://u:" + secret + "@h", ""},
		{"iceberg+rest+http://u:p@h", "credential="},
		{"iceberg+dir:///wh?warehouse=file:///other", "leave warehouse= out"},
		{"iceberg+dir:///", "///absolute/path"},
	} {
		store, err := iceberg.Open("lake", c.dsn, iceberg.Options{})
		switch {
		case err == nil && c.want == "":
			if err := store.Close(); err != nil {
				t.Errorf("%s: close: %v", c.dsn, err)
			}
		case err == nil:
			t.Errorf("%s: opened, want an error with %q", c.dsn, c.want)
		case c.want == "" && !strings.Contains(c.dsn, "u:"+secret):
			t.Errorf("%s: %v", c.dsn, err)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q in it", c.dsn, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("an error shows a secret: %v", err)
		}
	}
}

// No error of a store shows the secret of its warehouse, and a store that cannot be
// reached is TRANSIENT.
func TestUnreachable(t *testing.T) {
	for _, dsn := range []string{
		"iceberg+rest+http://127.0.0.1:1?token=" + icetest.S3Secret,
		"iceberg+postgres://u:secretword@127.0.0.1:1/d?warehouse=file:///wh&connect_timeout=2&sslmode=disable",
	} {
		store, err := iceberg.Open("lake", dsn, iceberg.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		_, err = store.Applied(t.Context(), branches.TxnID{1})
		if err == nil || branches.Classify(store, err) != branches.Transient {
			t.Errorf("%v, want a transient error", err)
		}
		if err != nil && (strings.Contains(err.Error(), icetest.S3Secret) || strings.Contains(err.Error(), "secretword")) {
			t.Errorf("an error shows a secret: %v", err)
		}
	}
}

// An error of the library that quotes a secret is masked.
func TestErrorMasksSecrets(t *testing.T) {
	b := newBed(t, icetest.SQLiteS3, cities)
	_, err := b.session(b.store).Exec(t.Context(), "CREATE TABLE x (k string) TBLPROPERTIES ('format-version'='"+icetest.S3Secret+"')", nil)
	if err == nil {
		t.Fatal("a format version that is none was taken")
	}
	if strings.Contains(err.Error(), icetest.S3Secret) {
		t.Errorf("an error shows the secret: %v", err)
	}
}

// Opening touches nothing, and a store without its property says what to do.
func TestNotInstalled(t *testing.T) {
	for _, kind := range []icetest.Kind{{Name: "sqlite", Make: icetest.SQLite}, {Name: "dir", Make: icetest.Dir}, {Name: "rest", Make: icetest.RESTPlace}} {
		place := kind.Make(t)
		store, err := iceberg.Open("s", dsn(place), iceberg.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		if err := store.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "rhizorecover init") {
			t.Errorf("%s: probe = %v, want to be told of rhizorecover init", kind.Name, err)
		}
		if findings, err := store.Examine(t.Context()); err == nil && findings[len(findings)-1].Severity != branches.SeverityError {
			t.Errorf("%s: examine finds all well: %+v", kind.Name, findings)
		}
		if err := store.Install(t.Context()); err != nil {
			t.Errorf("%s: %v", kind.Name, err)
		}
		if err := store.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", kind.Name, err)
		}
		if !strings.Contains(store.InstallSQL(), "dat.meta") {
			t.Errorf("%s: %s", kind.Name, store.InstallSQL())
		}
	}
}

func TestExamine(t *testing.T) {
	b := newBed(t, icetest.SQLite, "CREATE TABLE good (k string)",
		"CREATE TABLE retries (k string) TBLPROPERTIES ('commit.retry.num-retries'='4')",
		"CREATE TABLE expires (k string) TBLPROPERTIES ('history.expire.max-snapshot-age-ms'='60000')",
		"CREATE TABLE forgets (k string) TBLPROPERTIES ('write.metadata.delete-after-commit.enabled'='true','write.metadata.previous-versions-max'='3')",
		"CREATE TABLE unmerged (k string) TBLPROPERTIES ('commit.manifest-merge.enabled'='false')",
		"CREATE TABLE third (k string) TBLPROPERTIES ('format-version'='3')",
		"CREATE TABLE bytext (k string) PARTITIONED BY (k)")
	findings, err := b.store.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		severity branches.Severity
		text     string
	}{
		"table ns.good":     {branches.SeverityOK, "well"},
		"table ns.retries":  {branches.SeverityNote, "num-retries=4"},
		"table ns.expires":  {branches.SeverityWarning, "expire after 1m0s"},
		"table ns.forgets":  {branches.SeverityWarning, "metadata files"},
		"table ns.unmerged": {branches.SeverityNote, "not merged"},
		"table ns.third":    {branches.SeverityNote, "DELETE and UPDATE"},
		"table ns.bytext":   {branches.SeverityNote, "empty string"},
	}
	for _, f := range findings {
		w, ok := want[f.Check]
		if !ok {
			continue
		}
		delete(want, f.Check)
		if f.Severity != w.severity || !strings.Contains(f.Text, w.text) {
			t.Errorf("%s: %s: %s, want %s with %q", f.Check, f.Severity, f.Text, w.severity, w.text)
		}
	}
	for check := range want {
		t.Errorf("nothing was found of %s", check)
	}
}

// No text makes Open panic, and no error of it shows what the text holds as a secret.
func FuzzOpen(f *testing.F) {
	for _, dsn := range []string{
		"iceberg+sqlite:///c.db?warehouse=s3://b/p&s3.secret-access-key=%s", "iceberg+postgres://u:%s@h/d?warehouse=file:///wh",
		"iceberg+rest+https://h/api?token=%s&prefix=x", "iceberg+dir:///wh?namespace=a.b", "iceberg+rest+http://u:%s@h",
	} {
		f.Add(dsn)
	}
	const secret = "hunter2secret"
	f.Fuzz(func(t *testing.T, dsn string) {
		store, err := iceberg.Open("lake", strings.ReplaceAll(dsn, "%s", secret), iceberg.Options{})
		switch {
		case err == nil:
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		case strings.Count(dsn, "=%s") == strings.Count(dsn, "%s") && strings.Contains(err.Error(), secret):
			t.Errorf("an error shows the secret: %v", err)
		}
	})
}
