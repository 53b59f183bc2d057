package jsontext

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"svc/internal/numeric"
)

// compactOf decodes and encodes a value, which removes white space. It reports whether the text is valid.
func compactOf(text []byte) ([]byte, bool) {
	var b bytes.Buffer
	if !json.Valid(text) || json.Compact(&b, text) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// flatten writes a value from the output of EachMember and AppendElements.
func flatten(dst, value []byte) ([]byte, error) {
	switch value[0] {
	case '{':
		dst = append(dst, '{')
		first := true
		err := EachMember(value, func(key, value []byte) (err error) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst, err = flatten(append(append(dst, key...), ':'), value)
			return err
		})
		return append(dst, '}'), err
	case '[':
		return AppendElements(dst, value, flatten)
	}
	return append(dst, value...), nil
}

func FuzzWalk(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"a":1,"b":[true,null,{"c":"\"}"}],"":""}`, `[1e5,-0.5,"\\"]`, `{"a":}`, `{"a":1,}`, `[,1]`, `{"a"`, `["\`, `"`, ``,
		`{"long":"` + strings.Repeat(`x`, 200) + `\\"}`, `["` + strings.Repeat(`\"`, 100) + `","y"]`, `["` + strings.Repeat("x", longString) + `\"z"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = EachMember(text, func(_, _ []byte) error { return nil }) // must not panic
		_ = EachElement(text, func(_ []byte) error { return nil })
		compact, ok := compactOf(text)
		if !ok {
			return
		}
		if got, err := flatten(nil, compact); err != nil || !bytes.Equal(got, compact) {
			t.Errorf("%s is walked as %s, %v", compact, got, err)
		}
		if end := ValueEnd(append(compact, ','), 0); end != len(compact) {
			t.Errorf("%s ends at %d", compact, end)
		}
	})
}

func FuzzStrings(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\x00\x1f", "é😀\u2028", "\xff\xc3", strings.Repeat("long ", 50) + `\"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		quoted := AppendQuoted(nil, text)
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Fatalf("%q is written as %s: %v", text, quoted, err)
		}
		if s := strings.ToValidUTF8(string(text), "\uFFFD"); s != want {
			t.Errorf("%q is written as %s", text, quoted)
		}
		if got := AppendUnquoted(nil, quoted); string(got) != want {
			t.Errorf("%s is read as %q, want %q", quoted, got, want)
		}
		// As encoding/json writes it, with more escapes.
		theirs, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendUnquoted(nil, theirs); string(got) != want {
			t.Errorf("%s is read as %q, want %q", theirs, got, want)
		}
		for _, s := range [][]byte{quoted, theirs} {
			if end := StringEnd(append(s, `,"x"`...), 0); end != len(s) {
				t.Errorf("%s ends at %d", s, end)
			}
			_, escaped := TextEnd(s, 1)
			if want := bytes.IndexByte(s, '\\') >= 0; escaped != want {
				t.Errorf("%s: escaped %v", s, escaped)
			}
		}
	})
}

// TestEndsOfStrings puts escapes and ends at every distance, because the search for them depends on it.
func TestEndsOfStrings(t *testing.T) {
	for n := range 3 * longString {
		for slashes := range 5 {
			text := `"` + strings.Repeat("x", n) + strings.Repeat(`\`, slashes) + `"`
			want, escaped := len(text), slashes > 0
			if slashes%2 == 1 {
				text, want = text+`y"`, len(text)+2
			}
			if got := StringEnd([]byte(text), 0); got != want {
				t.Errorf("%s ends at %d, want %d", text, got, want)
			}
			if _, got := TextEnd([]byte(text), 1); got != escaped {
				t.Errorf("%s: escaped %v", text, got)
			}
			if got := StringEnd([]byte(text[:len(text)-1]), 0); got != -1 {
				t.Errorf("%s, cut off, ends at %d", text, got)
			}
		}
	}
}

// TestNumbersAreReadBack writes numbers, and compares reading them with encoding/json.
func TestNumbersAreReadBack(t *testing.T) {
	for _, c := range []struct {
		number float64
		text   string
	}{{0, "0.0"}, {1, "1.0"}, {-2.5, "-2.5"}, {1e-5, "0.00001"}, {1e-7, "1e-7"}, {1.5e-10, "1.5e-10"}, {1e15, "1000000000000000.0"}, {1e16, "1e16"}, {1e21, "1e21"}, {-1.25e300, "-1.25e300"}} {
		if got := string(AppendFloat(nil, c.number)); got != c.text {
			t.Errorf("%v is written as %s, want %s", c.number, got, c.text)
		}
	}
	largest, single := math.MaxFloat64, float32(math.MaxFloat32)
	for x, want := range map[float64][2]string{math.Inf(1): {"1.7976931348623157e308", "3.4028235e38"}, math.Inf(-1): {"-1.7976931348623157e308", "-3.4028235e38"},
		math.NaN(): {"null", "null"}, largest: {"1.7976931348623157e308", "3.4028235e38"}, float64(single): {"3.4028234663852886e38", "3.4028235e38"}} {
		if got := [2]string{string(AppendFloat(nil, x)), string(AppendFloat(nil, float32(x)))}; got != want {
			t.Errorf("%v is written as %s, want %s", x, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		x := (r.Float64() - 0.5) * []float64{1, 1e-8, 1e8, 1e20, 1e300, 1e-300}[r.IntN(6)]
		text := AppendFloat(nil, x)
		var back float64
		if err := json.Unmarshal(text, &back); err != nil || back != x {
			t.Errorf("%v is written as %s, which is %v, %v", x, text, back, err)
		}
		single := min(max(float32(x), -math.MaxFloat32), math.MaxFloat32)
		if y, err := strconv.ParseFloat(string(AppendFloat(nil, float32(x))), 32); err != nil || float32(y) != single {
			t.Errorf("%v is written as %v", float32(x), y)
		}
		if text, value := ReadNumber(nil, text); value != numeric.Of(x) && x == x {
			t.Errorf("%s is read as %v, want %v", text, value, x)
		}
	}
}

func BenchmarkEachMember(b *testing.B) {
	small := []byte(`{"id":1,"name":"0ad","tags":["a","b"],"summary":"Real-time strategy game of ancient warfare","size":28591}`)
	large := []byte(`{"id":1,"text":"` + strings.Repeat("Real-time strategy game of ancient warfare ", 25_000) + `"}`)
	for _, c := range []struct {
		name string
		doc  []byte
	}{{"small", small}, {"large", large}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.doc)))
			for b.Loop() {
				if err := EachMember(c.doc, func(_, _ []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
