package fastapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// longBody returns a body with long and short lists of numbers and strings, mostly valid JSON.
func longBody(rng *rand.Rand) []byte {
	numbers := func() string {
		var b strings.Builder
		b.WriteByte('[')
		for i := range rng.IntN(400) {
			if i > 0 {
				b.WriteString([]string{",", ", "}[rng.IntN(2)])
			}
			fmt.Fprintf(&b, []string{"%g", "%.3f", "%e", "%v"}[rng.IntN(4)], rng.NormFloat64()*float64(rng.IntN(3)))
		}
		b.WriteByte(']')
		return b.String()
	}
	text := func() string {
		s := make([]byte, rng.IntN(1500))
		for i := range s {
			s[i] = "abcdefghijklmno +/=é"[rng.IntN(21)]
		}
		if n := len(s); n > 0 && rng.IntN(3) == 0 {
			s[rng.IntN(n)] = "\\\n\x1f\x7f\x80"[rng.IntN(5)]
		}
		return `"` + string(s) + `"`
	}
	var value func(depth int) string
	value = func(depth int) string {
		switch n := rng.IntN(6); {
		case n == 0 && depth > 0:
			return "[" + value(depth-1) + " , " + value(depth-1) + "]"
		case n == 1 && depth > 0:
			return "{" + text() + ":" + value(depth-1) + `, "b":` + value(depth-1) + "}"
		case n < 4:
			return numbers()
		case n == 4:
			return text()
		}
		return []string{"1", "true", "null", `"\u00e9\\"`, " [ ] "}[rng.IntN(5)]
	}
	b := []byte(`{"q":` + value(3) + `,"vector":` + value(2) + `}`)
	for range rng.IntN(3) {
		b[rng.IntN(len(b))] = `0-.eE+,: []{}"\x`[rng.IntN(16)]
	}
	if rng.IntN(8) == 0 {
		b = b[:rng.IntN(len(b))]
	}
	return b
}

// TestValidAgreesWithTheStandardLibrary compares the validation of bodies with encoding/json.
func TestValidAgreesWithTheStandardLibrary(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	long, right := 0, 0
	for range 3000 {
		b := longBody(rng)
		want := json.Valid(b)
		if got := valid(b); got != want {
			t.Fatalf("seed %d: %t, want %t: %s", seed, got, want, b)
		}
		if len(b) >= leastValid {
			if long++; want {
				right++
			}
		}
	}
	if long < 1000 || right < 200 || right > long-200 {
		t.Errorf("%d bodies are long, %d of them valid", long, right)
	}
}

// TestEndsOfLists compares the ends of lists with encoding/json, with any byte at each position.
func TestEndsOfLists(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 100_000 {
		b := make([]byte, 1+rng.IntN(24))
		for i := range b {
			b[i] = "0123456789-.eE+, ]"[rng.IntN(18)]
		}
		b = append(b, ']')
		end := numbersEnd(b, 0)
		if end >= 0 && (b[end] != ']' || !json.Valid([]byte("["+string(b[:end+1])))) {
			t.Fatalf("%q ends at %d", b, end)
		}
		if end < 0 && !strings.Contains(string(b), " ") {
			if first := strings.IndexByte(string(b), ']'); first > 0 && json.Valid([]byte("["+string(b[:first+1]))) {
				t.Fatalf("%q does not end", b)
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 20 {
		f.Add(longBody(rng))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := valid(b), json.Valid(b); got != want {
			t.Fatalf("%t, want %t", got, want)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	rng := rand.New(rand.NewPCG(4, 1))
	vector := make([]float32, 384)
	for i := range vector {
		vector[i] = float32(rng.NormFloat64() / 20)
	}
	list, _ := json.Marshal(vector)
	for name, body := range map[string]string{"numbers": string(list), "base64": `"` + strings.Repeat("abcd", 512) + `"`} {
		body := []byte(`{"vector":` + body + `,"limit":10}`)
		b.Run(name+"/standard", func(b *testing.B) {
			for b.Loop() {
				json.Valid(body)
			}
		})
		b.Run(name+"/valid", func(b *testing.B) {
			for b.Loop() {
				valid(body)
			}
		})
	}
}
