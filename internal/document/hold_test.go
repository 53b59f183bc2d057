package document

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// holder counts requested bytes, up to a limit.
type holder struct {
	io.Reader
	held, limit int
}

var errNoRoom = errors.New("no room")

func (h *holder) Hold(n int) error {
	if h.held+n > h.limit {
		return errNoRoom
	}
	h.held += n
	return nil
}

// TestConvertAsksForMemory converts payloads that need far more memory than their size. The bytes allocated, including garbage, must not
// be much more than those requested, and without room the conversion must end before it allocates them.
func TestConvertAsksForMemory(t *testing.T) {
	const n = 1 << 20
	names := func(form string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for _, test := range []struct {
		name, payload string
		format        Format
	}{
		{"one text", `{"a":"` + strings.Repeat("x", n) + `"}`, JSON},
		{"keys", `{"":0` + names(`,"%x":1`) + "}", JSON},
		{"keys, one of them twice", `{"0":0` + names(`,"%x":1`) + "}", JSON},
		{"a key again and again", `{"a":0` + strings.Repeat(`,"a":1`, n/6) + "}", JSON},
		{"escaped keys", `{"\u0061":{"b":1` + names(`,"%x":{"c":1}`) + "}}", JSON},
		{"lists", `{"a":[[]` + strings.Repeat(`,[]`, n/3) + "]}", JSON},
		{"columns", "0" + names(",%x") + "\n", CSV},
		{"long columns", "0" + names(",%0300x") + "\n", CSV},
		{"nameless columns", strings.Repeat(",", n) + "\n", CSV},
		{"quoted columns", `"0"` + names(`,"%x"`) + "\n", CSV},
		{"cells", "a,b\n" + strings.Repeat(",", n) + "\n", CSV},
		{"empty cells", "0" + names(",%x") + "\n" + strings.Repeat(",", strings.Count(names(",%x"), ",")) + "\n", CSV},
		{"a cell", "a\n" + strings.Repeat("x", n) + "\n", CSV},
		{"a cell of control characters", "a\n" + strings.Repeat("\x01", n) + "\n", CSV},
		{"a cell that is not ASCII", "a\n" + strings.Repeat("ü", n/2) + "\n", CSV},
	} {
		run := func(limit int) (took, held int, err error) {
			h := &holder{strings.NewReader(test.payload), 0, limit}
			c := new(converter)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = c.run(io.Discard, h, test.format, ',')
			runtime.ReadMemStats(&after)
			return int(after.TotalAlloc - before.TotalAlloc), h.held, err
		}
		const fixed = 16 * windowSize
		took, held, err := run(1 << 40)
		if errors.Is(err, errNoRoom) || took > 2*held+fixed {
			t.Errorf("%s: %d bytes allocated, %d requested: %v", test.name, took, held, err)
		}
		took, _, err = run(held / 2)
		if !errors.Is(err, errNoRoom) || took > held+fixed {
			t.Errorf("%s: %d bytes allocated with room for %d: %v", test.name, took, held/2, err)
		}
	}
}
