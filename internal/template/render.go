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

// The work of a rendering is counted in steps, and in the bytes that values and texts have. That bounds its time, and
// its memory too, since nothing is made that is not counted. A document pays for reading all of itself a few times.
const (
	workLimit = 2 << 20
	workBytes = 32 // bytes that weigh as much as a step
)

// These errors end blocks. They reach no caller.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
	errWork     = errors.New("the template does too much for one document: make its loops shorter")
)

type renderer struct {
	globals  *object
	scopes   []*object // of running loops, innermost last
	assigned object
	counters object // of increment and decrement
	cycles   map[string]int
	changed  map[*ifChanged]string // what each ifchanged printed last
	out      []byte
	limit    int // bytes of output that somebody wants; 0 for all
	captures int // blocks being rendered whose text is needed whole
	line     int
	left     int // work that may still be done
}

func (r *renderer) fail(format string, args ...any) error {
	return &RenderError{Line: r.line, Reason: fmt.Sprintf(format, args...)}
}

// work counts work, and is errWork when it was too much.
func (r *renderer) work(n int) error {
	if r.left -= n; r.left < 0 {
		return errWork
	}
	return nil
}

// cost is the work that going through a value is.
func cost(v value) int {
	switch v.kind {
	case kindText:
		return len(v.text) / workBytes
	case kindRaw:
		return len(v.raw) / workBytes
	case kindArray:
		n := len(v.list)
		for _, item := range v.list {
			n += cost(item)
		}
		return n
	case kindObject:
		n := len(v.object.members)
		for _, m := range v.object.members {
			n += len(m.name)/workBytes + cost(m.value)
		}
		return n
	}
	return 0
}

func (r *renderer) lookup(name string) (value, bool) {
	for _, s := range slices.Backward(r.scopes) {
		if v, ok := s.get(name); ok {
			return v, true
		}
	}
	for _, o := range []*object{&r.assigned, r.globals, &r.counters} {
		if v, ok := o.get(name); ok {
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

// full reports whether more output would only be cut off.
func (r *renderer) full() bool { return r.limit > 0 && r.captures == 0 && len(r.out) > r.limit }

// print writes a value.
func (r *renderer) print(v value) error {
	if r.full() {
		return nil
	}
	if err := r.work(cost(v)); err != nil {
		return err
	}
	r.out = v.append(r.out)
	return nil
}

func (r *renderer) write(s string) error { return r.print(text(s)) }

// capture renders a block into a text.
func (r *renderer) capture(nodes []node) (string, error) {
	outer := r.out
	r.out = nil
	r.captures++
	err := r.block(nodes)
	r.captures--
	captured := string(r.out)
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
