package sqltext_test

import (
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/sqltext"
)

// hot are the statements that programs send all day; none may cost an allocation.
var hot = []struct{ name, text string }{
	{"select", "SELECT id, name, balance, updated_at FROM account WHERE id = $1 AND tenant = $2 ORDER BY updated_at DESC LIMIT 10"},
	{"insert", `INSERT INTO "account" ("id","name","balance","currency") VALUES ($1,$2,$3,$4) RETURNING "id"`},
	{"short", "SELECT 1"},
	{"semicolon", "UPDATE account SET balance = balance - $1 WHERE id = $2;"},
	{"prefix", "store:ch INSERT INTO event (id, at, kind) VALUES ($1, $2, $3)"},
	{"directive", "/* store:ch */ INSERT INTO event (id, at, kind) VALUES ($1, $2, $3)"},
	{"sqlc", "-- name: GetAccount :one\nSELECT id, name, balance FROM account WHERE id = $1"},
	{"sqlcommenter", "SELECT id FROM account WHERE id = $1 /*db_driver='rhizodat',traceparent='00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'*/"},
	{"savepoint", "SAVEPOINT sp0x14000123"},
}

func TestScanAllocatesNothing(t *testing.T) {
	for _, statement := range hot {
		t.Run(statement.name, func(t *testing.T) {
			var err error
			allocations := testing.AllocsPerRun(100, func() { _, err = sqltext.Scan(statement.text) })
			if err != nil || allocations != 0 {
				t.Errorf("Scan(%q): %v allocations, %v, want none", statement.text, allocations, err)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, statement := range hot {
		b.Run(statement.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(statement.text)))
			for b.Loop() {
				if _, err := sqltext.Scan(statement.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
