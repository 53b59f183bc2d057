package segment

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"svc/internal/vfs"
)

// TestThrottleBetweenWrites writes a segment whose words, prefixes, pairs and columns take much work and few bytes.
func TestThrottleBetweenWrites(t *testing.T) {
	const rows = 3 * askEvery
	mem := vfs.NewMem()
	asked := 0
	var refuse func(n int) error
	b := NewBuilder(BuilderOptions{Prefixes: true, Columns: []FieldID{2}, Throttle: func(n int) error {
		if n == 0 {
			asked++
		}
		return refuse(n)
	}})
	build := func() error {
		b.Reset()
		for i := range rows {
			b.StartDoc(DocID(i), fmt.Append(nil, i), []byte(`{}`))
			b.Word(1, []byte("wall"), 0)
			b.Word(1, []byte("word"), 1)
			b.Word(1, fmt.Appendf(nil, "w%d", i%64), 2)
			b.String(2, fmt.Appendf(nil, "%07d", i*7919%rows), []byte("x"))
			b.EndDoc()
		}
		_, err := b.Write(t.Context(), mem, "out.seg")
		return err
	}
	refuse = func(int) error { return nil }
	if err := build(); err != nil {
		t.Fatal(err)
	}
	// Of each row three words are read, and again for their prefix; strings are compared some log₂(rows) times.
	if least := (2*3*rows + rows*8) / askEvery; asked < least {
		t.Errorf("the throttle was called %d times between writes, want at least %d", asked, least)
	}
	stop := errors.New("stop")
	questions := asked
	for at := 0; at < questions; at += questions/8 + 1 {
		left := at
		refuse = func(n int) error {
			if n == 0 {
				left--
			}
			if left < 0 {
				return stop
			}
			return nil
		}
		_ = mem.Remove("out.seg") // left by the whole build
		if err := build(); !errors.Is(err, stop) {
			t.Fatalf("refused at call %d: %v", at, err)
		}
		mustNotExist(t, mem, "out.seg")
	}
}

// TestMergeThrottlesBeforeItWrites merges segments with large documents and many rows, and makes each call of the throttle fail that comes
// before the file is created.
func TestMergeThrottlesBeforeItWrites(t *testing.T) {
	const large, rows = 6, 2 * askEvery
	mem, rng := vfs.NewMem(), testRand(t)
	var in []Live
	for n := range 2 {
		b := NewBuilder(BuilderOptions{})
		random := make([]byte, inspectBytes/2) // twice as long in hexadecimal digits, which take half of that compressed
		for i := range rows {
			id, raw := n*rows+i, []byte(`{}`)
			if i < large {
				for j := range random {
					random[j] = byte(rng.Uint32())
				}
				raw = fmt.Appendf(nil, `{"bytes":"%x"}`, random)
			}
			b.StartDoc(DocID(id), fmt.Append(nil, id), raw)
			b.EndDoc()
		}
		name := fmt.Sprint(n, ".seg")
		if _, err := b.Write(t.Context(), mem, name); err != nil {
			t.Fatal(err)
		}
		in = append(in, Live{Reader: openSegment(t, mem, name)})
	}
	exists := func() bool {
		_, err := mem.Stat("out.seg")
		return err == nil
	}
	stop := errors.New("stop")
	merge := func(questions int) (asked int, err error) {
		_, err = Merge(t.Context(), mem, "out.seg", in, MergeOptions{Throttle: func(int) error {
			if exists() {
				return nil
			}
			if asked++; asked > questions {
				return stop
			}
			return nil
		}})
		return asked, err
	}
	asked, err := merge(math.MaxInt)
	if err != nil || !exists() {
		t.Fatal(err)
	}
	// Half of the documents stay after compression, in pieces of at most inspectBytes. Rows are put in order askEvery at a time.
	if least := 2*large/2 + 2*rows/askEvery; asked < least {
		t.Errorf("the throttle was called %d times before the first write, want at least %d", asked, least)
	}
	_ = mem.Remove("out.seg")
	for questions := range asked {
		if _, err := merge(questions); !errors.Is(err, stop) {
			t.Fatalf("refused after %d calls: %v", questions, err)
		}
		mustNotExist(t, mem, "out.seg")
	}
}
