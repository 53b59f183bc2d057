package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// helped is a reader with helpers. After some bytes it fails, or loses its helpers.
type helped struct {
	io.Reader
	helpers, left int
	held          int
}

func (h *helped) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.left -= n
	return n, err
}

func (h *helped) Helpers(bytes int) int {
	if h.left < 0 {
		return 0
	}
	h.held += h.helpers * bytes
	return h.helpers
}

// TestBlocksConvertAlike checks that helpers change neither the documents nor their number, nor the error of an invalid payload.
func TestBlocksConvertAlike(t *testing.T) {
	defer func(from int64, size int) { blocksFrom, blockBytes = from, size }(blocksFrom, blockBytes)
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	inBlocks, left := 0, 0
	for range 1500 {
		blocksFrom, blockBytes = rng.Int64N(300), 1+rng.IntN(200)
		var payload strings.Builder
		for range rng.IntN(60) {
			if rng.IntN(80) == 0 {
				payload.WriteString(pick(`{"a"`, `]`, `{"a":1,"a":2}`, "{\n\n\"b\":\n{\"c\":1}\n}", `{"long":"`+strings.Repeat("x", rng.IntN(400))+`"}`, `{"\u0061":1}`, "\x01"))
			}
			fmt.Fprintf(&payload, pick(`{"id":%d}`, `{"id" : %d, "t":"é"}`, "{\"id\":%d,\n\"n\":[1, 2]}"), rng.IntN(1e6))
			payload.WriteString(pick("\n", "\n", "\n", "\n", "\r\n", "", "\n \n"))
		}
		text := payload.String()
		var alone, together bytes.Buffer
		var end io.Reader = strings.NewReader("")
		if rng.IntN(10) == 0 {
			end = iotest.ErrReader(errors.New("broken"))
		}
		n, err := Convert(&alone, io.MultiReader(strings.NewReader(text), end), NDJSON, 0)
		h := &helped{Reader: io.MultiReader(strings.NewReader(text), end), helpers: 1 + rng.IntN(3), left: rng.IntN(30000)}
		if rng.IntN(4) == 0 {
			h.Reader = iotest.OneByteReader(h.Reader)
		}
		c := converter{in: window{buf: make([]byte, 2*Padding)}}
		n2, err2 := c.run(&together, h, NDJSON, 0)
		if err != nil && err.Error() == "broken" && err2 != nil {
			continue // the number of documents depends on the read size
		}
		if err == nil && n != n2 || fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && alone.String() != together.String() {
			t.Fatalf("%q in blocks of %d from %d:\nalone: %d %v %q\nwith helpers: %d %v %q", text, blockBytes, blocksFrom, n, err, alone.String(), n2, err2, together.String())
		}
		if h.held > 0 {
			inBlocks++
			if err == nil && n > 0 {
				left++
			}
		}
	}
	if inBlocks < 300 || left < 100 {
		t.Errorf("%d payloads were converted in blocks, %d of them completely", inBlocks, left)
	}
}

// TestBlocksThatCannotBeWritten checks that an error of the writer ends the conversion in blocks.
func TestBlocksThatCannotBeWritten(t *testing.T) {
	defer func(from int64, size int) { blocksFrom, blockBytes = from, size }(blocksFrom, blockBytes)
	blocksFrom, blockBytes = 0, 64
	broken := errors.New("no room")
	for fails := range 40 {
		c := converter{in: window{buf: make([]byte, 64)}}
		w := &brokenAfter{fails, broken}
		_, err := c.run(w, &helped{Reader: strings.NewReader(strings.Repeat("{\"id\":1}\n", 1000)), helpers: 2, left: 1 << 20}, NDJSON, 0)
		if !errors.Is(err, broken) {
			t.Fatalf("%d writes: %v", fails, err)
		}
	}
}

// brokenAfter is a writer that fails after some writes.
type brokenAfter struct {
	writes int
	err    error
}

func (w *brokenAfter) Write(p []byte) (int, error) {
	if w.writes--; w.writes < 0 {
		return 0, w.err
	}
	return len(p), nil
}
