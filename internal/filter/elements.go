package filter

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/segment"
)

// Braces are evaluated on the elements of a segment (segment.Elements). Inside, a bitmap has numbers of elements, and the candidates are
// elements of the scope; nil: all elements are. A value belongs to the innermost element that it stands in, so what is found of a
// path that leads through further objects is taken up to the element of the scope that those stand in.

// scope is what braces enclose.
type scope struct{ path string }

// undeclared is the error of an attribute of elements that are not kept.
func undeclared(code apierr.Code, at position, path, attribute string) error {
	return apierr.New(code, "%s: The objects at `%s` cannot be filtered one by one: add a rule like "+
		`{"attributePatterns": ["%s"], "features": {"elements": true}}`+" to filterableAttributes of the index.", at, path, attribute)
}

// checkElements refuses a path whose objects are no elements.
func (env *Env) checkElements(n *elements) error {
	if !env.Fields.InfoOf(n.path).Scope {
		return undeclared(env.Code, n.at, n.path, n.path+".*")
	}
	return nil
}

func (env *Env) bindElements(n *elements) (bound, error) {
	if err := env.checkElements(n); err != nil {
		return nil, err
	}
	inner := *env
	inner.scope = &scope{path: n.path}
	kid, err := inner.bind(n.kid)
	env.selected = inner.selected
	if err != nil {
		return nil, err
	}
	id, known := env.Fields.ID(n.path)
	switch {
	case !known:
		return nothing{}, nil
	case env.scope != nil:
		return innerMatch{id, kid}, nil
	}
	return elementsMatch{id, kid}, nil
}

// match returns the test of a condition in braces; s is nil outside any.
func (s *scope) match(c *condition, b bound) bound {
	if s == nil {
		return b
	}
	if n, ok := b.(noneOf); ok {
		return noneOf{s.match(c, n.bound)}
	}
	if !strings.Contains(c.attr[len(s.path)+1:], ".") {
		return b
	}
	return deepMatch{b, c.op == isNull || c.op == isEmpty}
}

// elementsMatch keeps the rows of which an element of a scope passes.
type elementsMatch struct {
	scope segment.FieldID
	kid   bound
}

func (m elementsMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	e := s.Elements()
	if e == nil {
		return roaring.New()
	}
	var in *roaring.Bitmap
	if !e.AllIn(m.scope) {
		in = e.Scope(m.scope)
	}
	if among != nil && among.GetCardinality() < uint64(s.Rows()/lookedUp) {
		in = shared(e.Of(among), in)
	}
	return within(e.Rows(m.kid.rows(s.in(e), in)), among)
}

func (m elementsMatch) size(s source) int {
	e := s.Elements()
	if e == nil {
		return 0
	}
	return min(m.kid.size(s.in(e)), s.Rows())
}

// in looks at elements. What is found there is not kept by itself.
func (s source) in(e *segment.Elements) source {
	return source{Live: s.Live, stop: s.stop, elements: e}
}

// innerMatch keeps the elements of the scope around it in which an element of its own scope passes.
type innerMatch struct {
	scope segment.FieldID
	kid   bound
}

func (m innerMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	found := m.kid.rows(s, s.elements.Scope(m.scope))
	if among == nil {
		return found // all stand at the outer path, so none is found
	}
	return s.elements.Within(found, among, false)
}

func (m innerMatch) size(s source) int { return m.kid.size(s) }

// deepMatch is a condition on a path that leads through further objects. direct: no array may stand on the way.
type deepMatch struct {
	bound
	direct bool
}

func (m deepMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	found := m.bound.rows(s, nil)
	if among == nil {
		return found
	}
	return s.elements.Within(found, among, m.direct)
}
