package template

import (
	"errors"
	"fmt"
	"slices"
)

// node is a piece of a parsed template.
type node interface {
	render(r *renderer) error
}

// These errors end blocks. They reach no caller.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
	errWork     = errors.New("the template takes too many steps for one document: shorten its loops")
)

// renderer is one rendering: its variables and its output.
type renderer struct {
	*meter
	globals  *object
	scopes   []*object // of running loops, innermost last
	assigned object
	counters object // of increment and decrement
	cycles   map[string]int
	changed  map[*ifChanged]string // what each ifchanged printed last
	out      []byte
	limit    int // wanted bytes of output; 0: all
	captures int // blocks being rendered whose text is needed whole
	line     int
}

func (r *renderer) fail(format string, args ...any) error {
	return &RenderError{Line: r.line, Reason: fmt.Sprintf(format, args...)}
}

// weight returns the work of a filter or comparison on values, apart from its results.
func weight(values ...value) int {
	n := 0
	for i := range values {
		switch v := &values[i]; v.kind {
		case kindText:
			n += len(v.text) / workBytes
		case kindRaw:
			n += len(v.raw) / workBytes
		case kindArray:
			n += len(v.list)
		case kindObject:
			n += len(v.object.members)
		}
	}
	return n
}

// lookup finds a variable: of the loops, the innermost first, then assigned ones, then the given ones, then
// counters.
func (r *renderer) lookup(name string) (value, bool) {
	for _, s := range slices.Backward(r.scopes) {
		if v, ok := s.get(r.meter, name); ok {
			return v, true
		}
	}
	for _, o := range []*object{&r.assigned, r.globals, &r.counters} {
		if v, ok := o.get(r.meter, name); ok {
			return v, true
		}
	}
	return value{}, false
}

func (r *renderer) variables() []string {
	names := slices.Concat(r.globals.names(), r.assigned.names(), r.counters.names())
	for _, s := range r.scopes {
		names = append(names, s.names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *renderer) block(nodes []node) error {
	for _, n := range nodes {
		if err := r.work(1); err != nil {
			return err
		}
		if err := n.render(r); err != nil {
			return err
		}
	}
	return nil
}

// most is how long the output may become before more of it would only be cut off; 0: without an end.
func (r *renderer) most() int {
	if r.captures > 0 {
		return 0
	}
	return r.limit
}

// print writes a value.
func (r *renderer) print(v value) error {
	if over(r.out, r.most()) {
		return r.err
	}
	r.out = r.append(r.out, v, r.most())
	return r.err
}

func (r *renderer) write(s string) error { return r.print(text(s)) }

// capture renders a block into a text.
func (r *renderer) capture(nodes []node) (string, error) {
	outer := r.out
	r.out = nil
	r.captures++
	err := r.block(nodes)
	r.captures--
	captured := r.string(r.out)
	r.out = outer
	return captured, err
}

type textNode string

func (n textNode) render(r *renderer) error { return r.write(string(n)) }

type output struct {
	line  int
	value expression
}

func (n output) render(r *renderer) error {
	r.line = n.line
	v, err := n.value.eval(r)
	if err != nil {
		return err
	}
	return r.print(v)
}
