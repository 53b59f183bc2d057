// Package binfmt prints bytes as an annotated tree: their offset, hexadecimal form and meaning. Inspection commands and the golden
// files of formats use it, so that a changed byte is a changed line in a review.
package binfmt

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxHexBytes is how many bytes of a field are printed; more are cut with an ellipsis.
const maxHexBytes = 16

// hexColumn is the width of the hexadecimal column in characters.
const hexColumn = 2*maxHexBytes + 1

// Tree prints one tree. The first error of its writer stays, and Err returns it.
type Tree struct {
	w     io.Writer
	depth int
	err   error
}

// New returns a tree that prints to w.
func New(w io.Writer) *Tree { return &Tree{w: w} }

// Err returns the first error met while printing.
func (t *Tree) Err() error { return t.err }

func (t *Tree) line(text string) {
	if t.err != nil {
		return
	}
	text = strings.ReplaceAll(text, "\n", `\n`)
	_, t.err = fmt.Fprintln(t.w, strings.TrimRight(strings.Repeat("  ", t.depth)+text, " "))
}

// Node prints a heading and calls inside, whose lines are below it.
func (t *Tree) Node(inside func(), format string, args ...any) {
	t.line(fmt.Sprintf(format, args...))
	t.depth++
	inside()
	t.depth--
}

// Note prints a line that no bytes stand for.
func (t *Tree) Note(format string, args ...any) { t.line(fmt.Sprintf(format, args...)) }

// Field prints bytes that stand at an offset, and their meaning.
func (t *Tree) Field(offset int64, p []byte, format string, args ...any) {
	shown, more := p, ""
	if len(p) > maxHexBytes {
		shown, more = p[:maxHexBytes], "…"
	}
	hex := fmt.Sprintf("%x%s", shown, more)
	pad := strings.Repeat(" ", max(0, hexColumn-utf8.RuneCountInString(hex)))
	t.line(fmt.Sprintf("%06x  %s%s  ", offset, hex, pad) + fmt.Sprintf(format, args...))
}

// List calls item for 0…n−1. Beyond limit it only prints how many there are.
func (t *Tree) List(n, limit int, item func(i int)) {
	for i := range min(n, limit) {
		item(i)
	}
	if n > limit {
		t.Note("… %d more", n-limit)
	}
}

// Text quotes bytes, cut to about limit bytes.
func Text(p []byte, limit int) string {
	if len(p) <= limit {
		return fmt.Sprintf("%q", p)
	}
	return fmt.Sprintf("%q… of %d bytes", p[:limit], len(p))
}
