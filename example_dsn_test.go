package rhizodat_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go"
)

func ExampleParseDSN() {
	cfg, err := rhizodat.ParseDSN(`
		a=postgres://app:s3cret@db1/bank_a?sslmode=require
		b=postgres://app:s3cret@db2/bank_b
		journal=postgres://app:s3cret@db3/coord
		default=a  stale_after=1m  application_name='transfer desk'`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.StoreNames(), cfg.Default, cfg.StaleAfter)
	fmt.Println(cfg) // passwords are masked in every print
	// Output:
	// [a b] a 1m0s
	// a=postgres://app:xxxxx@db1/bank_a?sslmode=require b=postgres://app:xxxxx@db2/bank_b journal=postgres://app:xxxxx@db3/coord default=a stale_after=1m application_name='transfer desk'
}

func ExampleParseDSN_refused() {
	_, err := rhizodat.ParseDSN("pg=postgres://app:s3cret@db/erp comit_timeout=5s")
	fmt.Println(err)

	if fault, ok := errors.AsType[*rhizodat.DSNError](err); ok {
		fmt.Println(fault.Key, fault.Offset, fault.Nearest)
	}
	_, err = rhizodat.ParseDSN("a=postgres://db/erp b=postgresql://DB:5432/erp")
	fmt.Println(err)
	// Output:
	// rhizodat: parse DSN: byte 32: option comit_timeout: unknown option; the nearest is "commit_timeout"
	// comit_timeout 32 commit_timeout
	// rhizodat: parse DSN: byte 20: stores a and b: both are one PostgreSQL database and schema, where the second would wait for the first one's marker for ever; give each its own database, or its own schema with ?schema=
}

func ExampleConfig_FormatDSN() {
	cfg := &rhizodat.Config{
		Stores: map[string]rhizodat.StoreConfig{
			"a": {URL: "postgres://app@db1/bank_a"},
			"b": {URL: "postgres://app@db2/bank_b"},
		},
		Journal:     rhizodat.JournalConfig{URL: "postgres://app@db3/coord"},
		Default:     "a",
		MinFree:     1 << 30,
		LockTimeout: 2 * time.Second,
	}
	dsn, err := cfg.FormatDSN()
	fmt.Println(dsn, err)
	// Output:
	// a=postgres://app@db1/bank_a b=postgres://app@db2/bank_b journal=postgres://app@db3/coord default=a min_free=1GiB lock_timeout=2s <nil>
}
