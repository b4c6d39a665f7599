package icevalue

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Number is an exact decimal number: Unscaled × 10^-Scale. The zero Number is 0.
type Number struct {
	Unscaled *big.Int // nil is 0
	Scale    int
}

// Bounds of a number's text. A greater exponent is brought down to the bound: such
// a number is beyond (or below) every value of every column all the same.
const (
	mostDigits   = 4096
	mostExponent = 4096
)

var (
	errNumber      = errors.New("it is not a number")
	errWhole       = errors.New("it is not a whole number")
	errRange       = errors.New("it is out of the type's range")
	errScale       = errors.New("it has more decimal places than the type")
	errManyDigits  = errors.New("it has too many digits")
	errNotFinite   = errors.New("it is not finite")
	errNoShortForm = errors.New("it has no finite decimal form")
)

// ParseNumber reads [sign] digits [. digits] [e [sign] digits].
func ParseNumber(s string) (Number, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Number{Unscaled: big.NewInt(n)}, nil
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return Number{}, errNumber
		}
		mantissa, exponent = s[:i], max(-mostExponent, min(mostExponent, e))
	}
	body := strings.TrimLeft(mantissa, "+-")
	if len(mantissa)-len(body) > 1 {
		return Number{}, errNumber
	}
	whole, fraction, _ := strings.Cut(body, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return Number{}, errNumber
	}
	if len(digits) > mostDigits {
		return Number{}, errManyDigits
	}
	u, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return Number{}, errNumber
	}
	if mantissa[0] == '-' {
		u.Neg(u)
	}
	return Number{Unscaled: u, Scale: len(fraction) - exponent}, nil
}

// NumberOf is v, as Plain gives it, as an exact number: an integer, a float by its
// shortest text, a number's text.
func NumberOf(v any) (Number, error) {
	switch x := v.(type) {
	case int64:
		return Number{Unscaled: big.NewInt(x)}, nil
	case uint64:
		return Number{Unscaled: new(big.Int).SetUint64(x)}, nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Number{}, errNotFinite
		}
		return ParseNumber(strconv.FormatFloat(x, 'g', -1, 64))
	case Number:
		return x, nil
	case string:
		return ParseNumber(x)
	case []byte:
		return ParseNumber(string(x))
	}
	return Number{}, errNumber
}

// numberOfRat is r where its decimal form ends.
func numberOfRat(r *big.Rat) (Number, error) {
	places, exact := r.FloatPrec()
	if !exact || places > mostDigits {
		return Number{}, errNoShortForm
	}
	return ParseNumber(r.FloatString(places))
}

// String is n without an exponent where it has no great one; ParseNumber reads it
// as the same number.
func (n Number) String() string {
	if n.Scale == 0 || n.Unscaled == nil {
		return n.unscaled().String()
	}
	if n.Scale < 0 || n.Scale > 64 {
		return n.unscaled().String() + "e" + strconv.Itoa(-n.Scale)
	}
	digits := new(big.Int).Abs(n.Unscaled).String()
	if len(digits) <= n.Scale {
		digits = strings.Repeat("0", n.Scale-len(digits)+1) + digits
	}
	if n.Unscaled.Sign() < 0 {
		digits = "-" + digits
	}
	return digits[:len(digits)-n.Scale] + "." + digits[len(digits)-n.Scale:]
}

func (n Number) unscaled() *big.Int {
	if n.Unscaled == nil {
		return new(big.Int)
	}
	return n.Unscaled
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// Floor is the greatest whole number that is not greater than n × 10^scale, and
// whether it is equal to it.
func (n Number) Floor(scale int) (whole *big.Int, exact bool) {
	up := scale - n.Scale
	if up >= 0 {
		return new(big.Int).Mul(n.unscaled(), pow10(up)), true
	}
	// Euclid's quotient rounds down, as the divisor is positive.
	q, m := new(big.Int).DivMod(n.unscaled(), pow10(-up), new(big.Int))
	return q, m.Sign() == 0
}

// Round is n × 10^scale as a whole number, halves away from zero.
func (n Number) Round(scale int) *big.Int {
	up := scale - n.Scale
	if up >= 0 {
		return new(big.Int).Mul(n.unscaled(), pow10(up))
	}
	d := pow10(-up)
	q, r := new(big.Int).QuoRem(n.unscaled(), d, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(d) >= 0 {
		q.Add(q, big.NewInt(int64(n.unscaled().Sign())))
	}
	return q
}

// Int64 is n where it is a whole number of 64 bits.
func (n Number) Int64() (int64, error) {
	w, exact := n.Floor(0)
	switch {
	case !exact:
		return 0, errWhole
	case !w.IsInt64():
		return 0, errRange
	}
	return w.Int64(), nil
}

// Float64 is the float nearest to n.
func (n Number) Float64() float64 {
	// The text's own rounding is exact; an out-of-range one is an infinity.
	f, _ := strconv.ParseFloat(n.unscaled().String()+"e"+strconv.Itoa(-n.Scale), 64)
	return f
}

// Decimal is n as an unscaled decimal(precision, scale), exactly.
func (n Number) Decimal(precision, scale int) (decimal128.Num, error) {
	w, exact := n.Floor(scale)
	if !exact {
		return decimal128.Num{}, errScale
	}
	return DecimalOf(w, precision)
}

// DecimalOf is an unscaled number where it has at most precision digits.
func DecimalOf(unscaled *big.Int, precision int) (decimal128.Num, error) {
	if unscaled.CmpAbs(pow10(precision)) >= 0 {
		return decimal128.Num{}, errRange
	}
	return decimal128.FromBigInt(unscaled), nil
}

// smallDecimal reads plain text of at most 18 digits without big numbers, which is
// what money looks like.
func smallDecimal(s string, precision, scale int) (int64, bool) {
	if precision > 18 || len(s) > 20 {
		return 0, false
	}
	negative := strings.HasPrefix(s, "-")
	if negative {
		s = s[1:]
	}
	var n int64
	digits, places, point := 0, 0, false
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c < '0' || c > '9':
			return 0, false
		}
		digits++
		if point {
			places++
		}
		n = n*10 + int64(c-'0')
	}
	if digits == 0 || digits > 18 || places > scale || digits-places > precision-scale {
		return 0, false
	}
	for ; places < scale; places++ {
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, true
}
