package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
)

// A DSN that cannot be read says why and never shows its password; opening one
// that can connects to nothing.
func TestOpen(t *testing.T) {
	const secret = "fixture-s3cr3t"
	for dsn, want := range map[string]string{
		"":                                  "no DSN",
		"tcp://app:" + secret + "@h:9000/d": "its scheme is none of",
		"clickhouse://app:" + secret + "@h:9000/d?dial_timeout=x":   "dial timeout",
		"clickhouse://app:" + secret + "@h:9000/d?dat_fsync=maybe":  "dat_fsync= wants 1 or 0",
		"clickhouse://app:" + secret + "/%zz@h:9000/d":              "",
		"clickhouse+http://app:" + secret + "@h:8123/d?secure=true": "http with TLS",
		"clickhouse://h/d?password=" + secret + "&secure=" + secret: "",
		"clickhouse://app:" + secret + "@":                          "",
	} {
		_, err := clickhouse.Open("ch", dsn, clickhouse.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "open store ch") {
			t.Errorf("%s: %v, want %q", dsn, err, want)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	for _, dsn := range []string{
		"clickhouse://nowhere.invalid", "clickhouse://a:9000,b:9000/d?compress=lz4&max_execution_time=60&secure=true",
		"clickhouse+http://u:p@nowhere.invalid:8123/d?dat_fsync=1&dat_replacing=0", "clickhouse+https://nowhere.invalid/d",
		"clickhouse+https://nowhere.invalid/d?secure=true&skip_verify=true",
	} {
		store, err := clickhouse.Open("ch", dsn, clickhouse.Options{})
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if err := store.Close(); err != nil {
			t.Errorf("%s: close: %v", dsn, err)
		}
	}
	if _, err := clickhouse.Open("ch", "clickhouse://h", clickhouse.Options{Client: &client.Options{}}); err == nil {
		t.Error("a DSN and client Options are both taken")
	}
}

// A server that cannot be reached is worth another try, and shows no password.
func TestUnreachable(t *testing.T) {
	const secret = "fixture-s3cr3t"
	for _, scheme := range []string{"clickhouse", "clickhouse+http"} {
		store, err := clickhouse.Open("ch", scheme+"://app:"+secret+"@127.0.0.1:1/d", clickhouse.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		txn, err := branches.NewTxnID()
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Applied(t.Context(), txn)
		if kind := branches.Classify(store, err); err == nil || kind != branches.Transient || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v (%s)", scheme, err, kind)
		}
	}
}
