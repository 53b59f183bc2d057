package budget

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// allocated returns the fewest bytes that one of several calls of run allocates: other goroutines allocate at the same time.
func allocated(run func()) int64 {
	var before, after runtime.MemStats
	least := int64(1 << 62)
	for range 3 {
		runtime.ReadMemStats(&before)
		run()
		runtime.ReadMemStats(&after)
		least = min(least, int64(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}

// texts returns JSON texts, each large in one way.
func texts(n int) map[string]string {
	list := func(item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n/(len(item)+1)), ",") + "]"
	}
	var names strings.Builder
	for i := 0; names.Len() < n; i++ {
		fmt.Fprintf(&names, `,"%x":1`, i)
	}
	nested := min(n/5, 9000)
	return map[string]string{
		"numbers":         list(`1`),
		"empty strings":   list(`""`),
		"strings":         list(`"word"`),
		"escaped strings": list(`"\n\n\n\n\n\n"`),
		"lists":           list(`[]`),
		"objects":         list(`{}`),
		"lists of one":    list(`[1]`),
		"objects of one":  list(`{"a":1}`),
		"objects of nine": list(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`),
		"names":           "{" + names.String()[1:] + "}",
		"one name":        `{"` + strings.Repeat("x", n) + `":1}`,
		"long names":      list(`{"` + strings.Repeat("x", 128<<10) + `":1}`),
		"one string":      `"` + strings.Repeat("x", n) + `"`,
		"nested lists":    strings.Repeat("[", nested) + strings.Repeat("]", nested),
		"nested objects":  strings.Repeat(`{"a":`, nested) + "1" + strings.Repeat("}", nested),
		"space":           "[" + strings.Repeat(" ", n) + "]",
	}
}

// TestShape decodes texts of all shapes: the estimate must not be less than the bytes allocated.
func TestShape(t *testing.T) {
	const fixed = 512 // of a decoder
	check := func(name, text string) {
		t.Helper()
		var v any
		took := allocated(func() {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})
		if estimate := ShapeOf([]byte(text)); estimate+fixed < took {
			t.Errorf("%s: %d bytes allocate %d, estimated %d", name, len(text), took, estimate)
		}
	}
	for _, n := range []int{1 << 10, 30 << 10, 200 << 10} {
		for name, text := range texts(n) {
			check(fmt.Sprintf("%s of %d", name, n), text)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		check(fmt.Sprintf("text %d", i), randomJSON(r, 6))
	}
}

func randomJSON(r *rand.Rand, depth int) string {
	kind := r.IntN(6)
	if depth == 0 {
		kind = r.IntN(4)
	}
	switch kind {
	case 0:
		return fmt.Sprint(r.IntN(1 << r.IntN(31)))
	case 1:
		return [...]string{"true", "false", "null", "-0.5e3"}[r.IntN(4)]
	case 2, 3:
		return randomText(r)
	}
	var b strings.Builder
	for range r.IntN(1 << r.IntN(6)) {
		b.WriteByte(',')
		if kind == 4 {
			b.WriteString(randomText(r) + ":")
		}
		b.WriteString(randomJSON(r, depth-1))
	}
	inside := strings.TrimPrefix(b.String(), ",")
	if kind == 4 {
		return "{" + inside + "}"
	}
	return "[" + inside + "]"
}

func randomText(r *rand.Rand) string {
	return `"` + strings.Repeat([...]string{"x", `\"`, `\u00e9`, "ü", " "}[r.IntN(5)], r.IntN(1<<r.IntN(9))) + `"`
}

// TestShapeInPieces splits a text into pieces of any length.
func TestShapeInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		text := []byte(randomJSON(r, 5))
		var s Shape
		for rest := text; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 1+r.IntN(50)))
			s.Add(rest[:n])
			rest = rest[n:]
		}
		if s.Bytes() != ShapeOf(text) {
			t.Fatalf("%d in pieces, %d as a whole: %s", s.Bytes(), ShapeOf(text), text)
		}
	}
}

func BenchmarkShape(b *testing.B) {
	text := []byte(texts(30 << 10)["objects of nine"])
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ShapeOf(text)
	}
}

// slowShape is the reference implementation of Shape, byte by byte.
func slowShape(text []byte) (n int64) {
	place, escape := outside, false
	for _, c := range text {
		n += int64(weights[place][c])
		switch {
		case place == inside && escape:
			escape = false
		case place == inside && c == '\\':
			escape = true
		case place == inside && c == '"':
			place = outside
		case place == inside:
		case c-'0' < 10, c == '.':
			place = behind
		case c == '"':
			place = inside
		default:
			place = outside
		}
	}
	return n
}

// TestShapeAgreesWithAReference compares the estimate of any text, in any pieces, with a slow reference.
func TestShapeAgreesWithAReference(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		text := []byte(randomJSON(r, 4))
		for range r.IntN(4) {
			n := r.IntN(3 * plainPiece)
			text = append(text, '"')
			for range n {
				text = append(text, "abcdefghijklm,=<> "[r.IntN(18)])
			}
			if n > 0 && r.IntN(2) == 0 {
				text[len(text)-1-r.IntN(n)] = "\\\"{1"[r.IntN(4)]
			}
			text = append(text, `",[12.5e3,`...)
			from := len(text)
			for range r.IntN(100) {
				text = append(text, "0123456789.,- +/0123456789.,-"[r.IntN(29)])
			}
			if n := len(text) - from; new(Shape).addNumbers(text[from:]) != n&^7 {
				t.Fatalf("seed %d: numbers are not skipped at once: %s", seed, text[from:])
			} else if n > 0 && r.IntN(2) == 0 {
				text[from+r.IntN(n)] = "e[\"{:\xff\xba"[r.IntN(7)]
			}
		}
		var s Shape
		for rest := text; len(rest) > 0; {
			n := min(len(rest), r.IntN(2*plainPiece))
			s.Add(rest[:n])
			rest = rest[n:]
		}
		if want := slowShape(text); s.Bytes() != want || ShapeOf(text) != want {
			t.Fatalf("seed %d: %d in pieces, %d at once, want %d: %s", seed, s.Bytes(), ShapeOf(text), want, text)
		}
	}
}
