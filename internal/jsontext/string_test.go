package jsontext

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// quotedSlowly is the reference implementation of AppendQuoted, rune by rune.
func quotedSlowly(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func TestAppendQuoted(t *testing.T) {
	check := func(text string) {
		t.Helper()
		want := "before" + quotedSlowly(text)
		if got := string(AppendQuoted([]byte("before"), text)); got != want {
			t.Fatalf("%q: got %s, want %s", text, got, want)
		}
		if got := string(AppendQuoted([]byte("before"), []byte(text))); got != want {
			t.Fatalf("the bytes of %q: got %s, want %s", text, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(want[len("before"):]), &back); err != nil || utf8.ValidString(text) && back != text {
			t.Fatalf("%q reads back as %q: %v", text, back, err)
		}
	}
	// Test each byte at each position of a word and of the rest after it, beside bytes that it may be confused with.
	for c := range 256 {
		for at := range 19 {
			for _, other := range []string{"x", "!", "\x1f", "\x7f", "[", "ü"} {
				text := []byte(strings.Repeat(other, 19))
				text[at] = byte(c)
				check(string(text))
			}
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "plain text of some length", `"`, `\`, "\n", "\r\n", "\t", "\x00", "\x1f", "ü", "日本", "\xff", "\xe6\x97", "\u2028", "😀"}
	for range 3000 {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		check(b.String())
	}
}

func BenchmarkAppendQuoted(b *testing.B) {
	for name, text := range map[string]string{
		"plain": strings.Repeat("some text ", 200), "lines": strings.Repeat("some text of a line that is not very long, but not short\n", 35), "word": "metropolis",
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				dst = AppendQuoted(dst[:0], text)
			}
		})
	}
}

func TestAppendStrings(t *testing.T) {
	for _, texts := range [][]string{nil, {}, {""}, {"a", `"b"`, "\n"}} {
		var back []string
		text := AppendStrings([]byte("before"), texts)
		if err := json.Unmarshal(text[len("before"):], &back); err != nil || back == nil || !slices.Equal(back, texts) {
			t.Errorf("%q is written as %s", texts, text)
		}
	}
}
