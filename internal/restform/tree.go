package restform

import (
	"bytes"
	"encoding/json"
	"fmt"

	"svc/internal/document"
	"svc/internal/jsontext"
)

// The placeholders.
const (
	Text      = "{{text}}"
	Fragment  = "{{fragment}}"
	Embedding = "{{embedding}}"
	Repeat    = "{{..}}"
)

// tree is a template taken apart.
type tree struct {
	raw     []byte // of a scalar
	text    string // of a string, without its quotes
	array   bool
	object  bool
	items   []tree   // of an array or object
	members []string // names of the items of an object
}

func read(raw json.RawMessage) (tree, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return tree{}, fmt.Errorf("is not JSON: %w", err)
	}
	return readCompact(compact.Bytes())
}

func readCompact(raw []byte) (tree, error) {
	t := tree{array: raw[0] == '[', object: raw[0] == '{'}
	add := func(item []byte) error {
		inner, err := readCompact(item)
		t.items = append(t.items, inner)
		return err
	}
	switch {
	case t.array:
		return t, document.Elements(raw, add)
	case t.object:
		return t, document.Fields(raw, func(name, item []byte) error {
			t.members = append(t.members, string(name))
			return add(item)
		})
	case raw[0] == '"':
		t.text = string(jsontext.AppendUnquoted(nil, raw))
	}
	t.raw = raw
	return t, nil
}

// place is where the placeholder stands in a template.
type place struct {
	steps    []int // indices of items from the root on
	repeated int   // number of steps to the array whose first item is repeated; −1 when none is
}

// locate finds the only placeholder of a template and the array that repeats it, if there is one.
func (t tree) locate(placeholder string) (place, error) {
	s := search{placeholder: placeholder}
	s.walk(t, nil)
	at := place{repeated: -1}
	switch {
	case s.found == 0:
		return at, fmt.Errorf("must have the string %q as a value of its own", placeholder)
	case s.found > 1:
		return at, fmt.Errorf("must have the string %q only once, but has it %d times", placeholder, s.found)
	case len(s.repeats) > 1:
		return at, fmt.Errorf("must have the string %q at most once, but has it %d times", Repeat, len(s.repeats))
	}
	at.steps = s.at
	if len(s.repeats) == 0 {
		return at, nil
	}
	// The mark is the second item of the array that holds the placeholder in its first.
	mark := s.repeats[0]
	n := len(mark) - 1
	if n < 0 || mark[n] != 1 || len(s.at) <= n || s.at[n] != 0 || !prefix(mark[:n], s.at) || !t.follow(mark[:n]).array {
		return at, fmt.Errorf("must have the string %q as the second item of an array whose first item holds %q", Repeat, placeholder)
	}
	at.repeated = n
	return at, nil
}

func prefix(steps, of []int) bool {
	for i, s := range steps {
		if of[i] != s {
			return false
		}
	}
	return true
}

func (t tree) follow(steps []int) tree {
	for _, s := range steps {
		t = t.items[s]
	}
	return t
}

type search struct {
	placeholder string
	found       int
	at          []int
	repeats     [][]int
}

func (s *search) walk(t tree, steps []int) {
	switch {
	case t.text == s.placeholder && t.raw != nil:
		s.found++
		s.at = append([]int(nil), steps...)
	case t.text == Repeat && t.raw != nil:
		s.repeats = append(s.repeats, append([]int(nil), steps...))
	}
	for i, item := range t.items {
		s.walk(item, append(steps, i))
	}
}
