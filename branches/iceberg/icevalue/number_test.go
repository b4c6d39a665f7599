package icevalue_test

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rhizodat/rhizodat-go/branches/iceberg/icevalue"
)

func ratOf(n icevalue.Number) *big.Rat {
	r := new(big.Rat)
	if n.Unscaled != nil {
		r.SetInt(n.Unscaled)
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.Scale, -n.Scale))), nil)
	if n.Scale < 0 {
		return r.Mul(r, new(big.Rat).SetInt(ten))
	}
	return r.Quo(r, new(big.Rat).SetInt(ten))
}

func TestNumbersAgreeWithRationals(t *testing.T) {
	half := big.NewRat(1, 2)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[+-]?([0-9]{1,25}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?`).Draw(rt, "text")
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			rt.Skip("not a rational's text")
		}
		n, err := icevalue.ParseNumber(text)
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		if got := ratOf(n); got.Cmp(want) != 0 {
			rt.Fatalf("%s: %s, want %s", text, got, want)
		}
		again, err := icevalue.ParseNumber(n.String())
		if err != nil || ratOf(again).Cmp(want) != 0 {
			rt.Fatalf("%s printed as %s: %v", text, n, err)
		}
		scale := rapid.IntRange(0, 38).Draw(rt, "scale")
		scaled := new(big.Rat).Mul(want, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		floor, exact := n.Floor(scale)
		below := new(big.Rat).Sub(scaled, new(big.Rat).SetInt(floor))
		if below.Sign() < 0 || below.Cmp(big.NewRat(1, 1)) >= 0 || exact != (below.Sign() == 0) {
			rt.Fatalf("%s floored at %d: %s (%v), %s below", text, scale, floor, exact, below)
		}
		// Halves go away from zero.
		size := new(big.Rat).Abs(scaled)
		size.Add(size, half)
		rounded := new(big.Int).Quo(size.Num(), size.Denom())
		if scaled.Sign() < 0 {
			rounded.Neg(rounded)
		}
		if got := n.Round(scale); got.Cmp(rounded) != 0 {
			rt.Fatalf("%s rounded at %d: %s, want %s", text, scale, got, rounded)
		}
		if f, _ := strconv.ParseFloat(text, 64); f != n.Float64() {
			rt.Fatalf("%s as a double: %v, want %v", text, n.Float64(), f)
		}
	})
}

func TestTimesAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		minutes := rapid.IntRange(-15*60, 15*60).Draw(rt, "offset")
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799-86400).Draw(rt, "seconds"), rapid.Int64Range(0, 999999999).Draw(rt, "nanos")).
			In(time.FixedZone("", minutes*60))
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999 -0700", "2006-01-02t15:04:05.000000000Z07:00"} {
			if at.UTC().Year() < 1 || at.Year() < 1 {
				continue
			}
			got, err := icevalue.ParseTimestamp(at.Format(layout), true)
			if err != nil || !got.Equal(at) {
				rt.Fatalf("%s: %v, want %v (%v)", at.Format(layout), got, at, err)
			}
		}
		wall := at.Format("2006-01-02 15:04:05.999999999")
		got, err := icevalue.ParseTimestamp(wall, false)
		if err != nil || got.Format("2006-01-02 15:04:05.999999999") != wall {
			rt.Fatalf("%s: %v (%v)", wall, got, err)
		}
	})
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"", "-", "1e", "1e99999999999999999999", "+-1", ".", "2026-02-30", "2026-01-01T", "2026-01-01 00:00:00+", "00:00:00.", "-0001-01-01", "99999999999-01-01", "2026-01-01 00:00:00+1", "2026-01-01 00:00:00 +010", strings.Repeat("9", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := icevalue.ParseNumber(s); err == nil {
			again, err := icevalue.ParseNumber(n.String())
			if d := cmp.Diff(ratOf(n).String(), ratOf(again).String()); d != "" || err != nil {
				t.Errorf("%q printed as %s: %s %v", s, n, d, err)
			}
		}
		if d, err := icevalue.ParseDate(s); err == nil && !d.Equal(d.Truncate(24*time.Hour)) {
			t.Errorf("%q: %v is no date", s, d)
		}
		if micros, err := icevalue.ParseTime(s); err == nil && (micros < 0 || micros >= 86_400_000_000) {
			t.Errorf("%q: %d is no time of day", s, micros)
		}
		_, zoned := icevalue.ParseTimestamp(s, true)
		_, plain := icevalue.ParseTimestamp(s, false)
		if zoned == nil && plain == nil {
			t.Errorf("%q both has a zone and has none", s)
		}
	})
}
