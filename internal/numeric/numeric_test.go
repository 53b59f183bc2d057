package numeric

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// exact returns the number that a text stands for: a 64-bit integer exactly, any other number as the nearest float64.
func exact(s string) *big.Rat {
	if n, ok := new(big.Int).SetString(s, 10); ok && (n.IsInt64() || n.IsUint64()) {
		return new(big.Rat).SetInt(n)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return new(big.Rat).SetFloat64(f)
}

// of returns the number that a value stands for.
func of(v Value) *big.Rat {
	r := new(big.Rat).SetFloat64(v.Float)
	return r.Add(r, new(big.Rat).SetInt64(int64(v.Rest)))
}

// randomText returns a number, often close to others.
func randomText(r *rand.Rand) string {
	sign := []string{"", "", "-"}[r.IntN(3)]
	near := []uint64{0, 1 << 52, 1 << 53, 1 << 54, 1 << 60, 1<<62 + 512, 1 << 63, 1<<63 + 1024, math.MaxUint64 - 2047, math.MaxUint64 - 5}[r.IntN(10)]
	switch r.IntN(6) {
	case 0:
		return sign + strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
	case 1:
		return sign + strconv.FormatFloat(float64(near+r.Uint64N(6)), "feg"[r.IntN(3)], -1, 64)
	case 2:
		return sign + new(big.Int).Add(new(big.Int).SetUint64(near), big.NewInt(r.Int64N(5000))).String() // some exceed 64 bits
	case 3:
		return sign + strconv.FormatFloat(r.ExpFloat64()*math.Pow(2, float64(r.IntN(140)-70)), 'g', -1, 64)
	}
	return sign + strconv.FormatUint(near+r.Uint64N(6), 10)
}

// TestValuesAreOrderedExactly compares the order of values with that of exact numbers.
func TestValuesAreOrderedExactly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	rests := 0
	for range 40_000 {
		a, b := randomText(r), randomText(r)
		v, ok1 := Parse(a)
		w, ok2 := Parse(b)
		if !ok1 || !ok2 {
			t.Fatalf("%s or %s is no number", a, b)
		}
		x, y := exact(a), exact(b)
		if of(v).Cmp(x) != 0 || !v.Exact() {
			t.Fatalf("%s is read as %v, exact: %t", a, v, v.Exact())
		}
		if got := v.Compare(w); cmp.Compare(got, 0) != x.Cmp(y) || (got == 0) != (v == w) {
			t.Fatalf("%s to %s: %d, want %d", a, b, got, x.Cmp(y))
		}
		if v == w && v.Hash() != w.Hash() {
			t.Fatalf("%s and %s have two hashes", a, b)
		}
		if v.Rest != 0 {
			rests++
			if beside := (Value{v.Float, -v.Rest}); beside.Rest != v.Rest && v.Hash() == beside.Hash() {
				t.Fatalf("%v and %v have one hash", v, beside)
			}
		}
		text := string(v.AppendText(nil))
		if back, ok := Parse(text); !ok || back != v || strings.Contains(text, "e") {
			t.Fatalf("%s is shown as %s, which is %v", a, text, back)
		}
	}
	if rests < 4_000 {
		t.Errorf("only %d values were not float64", rests)
	}
}

// TestIntegers checks the integers at the ends of the range.
func TestIntegers(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1} {
		if v := OfInt(n); of(v).Cmp(new(big.Rat).SetInt64(n)) != 0 || !v.Exact() {
			t.Errorf("%d is %v", n, v)
		}
	}
	for _, n := range []uint64{0, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1024, math.MaxUint64 - 1023, math.MaxUint64} {
		v := OfUint(n)
		if of(v).Cmp(new(big.Rat).SetInt(new(big.Int).SetUint64(n))) != 0 || !v.Exact() {
			t.Errorf("%d is %v", n, v)
		}
		if text, ok := v.AppendInteger(nil); n >= 1<<53 && (!ok || string(text) != strconv.FormatUint(n, 10)) {
			t.Errorf("%d is written as %s, %t", n, text, ok)
		}
	}
}

func TestTexts(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "1.50": "1.5", "1e3": "1000", "999999999999999": "999999999999999", "1e15": "1000000000000000", "-1e15": "-1000000000000000",
		"9007199254740991": "9007199254740991", "9007199254740993": "9007199254740993", "-9007199254740993": "-9007199254740993", "9007199254740993.0": "9007199254740992",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808", "-9223372036854775808": "-9223372036854775808",
		"18446744073709551615": "18446744073709551615", "18446744073709551616": "18446744073709552000", "-9223372036854775809": "-9223372036854775808",
		"-9223372036854777856": "-9223372036854778000", "1e21": "1000000000000000000000", "1e-7": "0.0000001", "12345678901234567e2": "1234567890123456768",
		"+9223372036854775808": "9223372036854775808", "00018446744073709551615": "18446744073709551615", ".5": "0.5", "5.": "5",
	} {
		v, ok := Parse(in)
		if got := string(v.AppendText(nil)); !ok || got != want {
			t.Errorf("%s is shown as %s, %t, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "-", "+", ".", "e", "1e", "1e999", "inf", "NaN", "0x10", "1_0", " 1", "1 ", "1-2", "12345678901234567-1", "--12345678901234567"} {
		if v, ok := Parse(in); ok {
			t.Errorf("%q is read as %v", in, v)
		}
		if v, ok := ParseBound(in); ok != (in == "1e999") || ok && !math.IsInf(v.Float, 1) {
			t.Errorf("%q is read as the bound %v, %t", in, v, ok)
		}
	}
	if v, ok := ParseBound("-1e400"); !ok || !math.IsInf(v.Float, -1) || v.Compare(OfInt(math.MinInt64)) >= 0 {
		t.Errorf("-1e400 is read as the bound %v, %t", v, ok)
	}
}

// TestNotExact refuses values that are no number.
func TestNotExact(t *testing.T) {
	for _, v := range []Value{{math.NaN(), 0}, {math.Copysign(0, -1), 0}, {1, 1}, {1 << 53, -1}, {1 << 53, 2}, {1<<53 + 2, 3}, {1 << 63, 1025}, {1 << 64, 1}, {1 << 64, -1025}, {-1 << 63, -1}, {1e300, 1}, {-1e300, -1}, {0.5, 1}} {
		if v.Exact() {
			t.Errorf("%v is accepted as a number", v)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "-9223372036854775808", "18446744073709551615", "1e300", "-.5e-3", "+7", "9007199254740993"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := Parse(s)
		if !ok {
			return
		}
		if want := exact(strings.TrimPrefix(s, "+")); want == nil || of(v).Cmp(want) != 0 || !v.Exact() {
			t.Errorf("%q is read as %v, want %v", s, v, want)
		}
		if back, ok := Parse(string(v.AppendText(nil))); !ok || back != v {
			t.Errorf("%q is shown as %s", s, v.AppendText(nil))
		}
	})
}
