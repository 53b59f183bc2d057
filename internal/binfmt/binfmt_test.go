package binfmt

import (
	"errors"
	"strings"
	"testing"
)

func TestTree(t *testing.T) {
	var b strings.Builder
	tree := New(&b)
	tree.Node(func() {
		tree.Field(0, []byte("svc\n"), "magic %q", "svc\n")
		tree.Node(func() {
			tree.List(5, 2, func(i int) { tree.Field(int64(4+i), []byte{byte(i)}, "value %d", i) })
		}, "values")
		tree.Field(0x40, make([]byte, 40), "zeros")
		tree.Note("two\nlines")
	}, "file")
	want := `file
  000000  7376630a                           magic "svc\n"
  values
    000004  00                                 value 0
    000005  01                                 value 1
    … 3 more
  000040  00000000000000000000000000000000…  zeros
  two\nlines
`
	if b.String() != want || tree.Err() != nil {
		t.Errorf("printed\n%s%v\nwant\n%s", b.String(), tree.Err(), want)
	}
}

func TestText(t *testing.T) {
	if got := Text([]byte("ab\n"), 3); got != `"ab\n"` {
		t.Error(got)
	}
	if got := Text([]byte("abcd"), 3); got != `"abc"… of 4 bytes` {
		t.Error(got)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestTreeKeepsTheFirstError(t *testing.T) {
	tree := New(full{})
	tree.Node(func() { tree.Note("b") }, "a")
	if tree.Err() == nil {
		t.Error("no error")
	}
}
