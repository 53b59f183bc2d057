package segment

import (
	"errors"
	"fmt"
	"testing"

	"svc/internal/vfs"
)

// TestWritingAsksBetweenWritesToo has a segment whose words, prefixes, pairs and columns are much work and few bytes.
func TestWritingAsksBetweenWritesToo(t *testing.T) {
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
		t.Errorf("asked %d times between writes, want %d at least", asked, least)
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
		_ = mem.Remove("out.seg") // of the whole build
		if err := build(); !errors.Is(err, stop) {
			t.Fatalf("refused at question %d: %v", at, err)
		}
		mustNotExist(t, mem, "out.seg")
	}
}
