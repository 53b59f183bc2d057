package filter

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/segment"
)

// Braces are evaluated on the elements of a segment (segment.Elements). Inside, a bitmap has numbers of elements, and the candidates
// are elements of the scope; nil: all of them. A value belongs to the innermost element that contains it. So results for a path
// through nested objects are mapped up to the element of the scope that contains these.

// scope is what braces enclose.
type scope struct{ path string }

// undeclared is the error for an attribute of elements that the index does not store.
func undeclared(code apierr.Code, at position, path, attribute string) error {
	return apierr.New(code, "%s: The objects at `%s` cannot be filtered one by one: add a rule like "+
		`{"attributePatterns": ["%s"], "features": {"elements": true}}`+" to filterableAttributes of the index.", at, path, attribute)
}

// checkElements refuses a path that does not lead to elements.
func (env *Env) checkElements(n *elements) error {
	if !env.Fields.InfoOf(n.path).Scope {
		return undeclared(env.Code, n.at, n.path, n.path+".*")
	}
	return nil
}

// bindElements binds the expression in braces in the scope of the elements at the path. Nested braces find elements within the outer
// ones (innerMatch).
func (env *Env) bindElements(n *elements) (bound, error) {
	if err := env.checkElements(n); err != nil {
		return nil, err
	}
	inner := *env
	inner.scope = &scope{path: n.path}
	kid, err := inner.bind(n.kid)
	env.selected, env.strays = inner.selected, inner.strays
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

// elementsMatch matches rows with at least one matching element of a scope.
type elementsMatch struct {
	scope segment.FieldID
	kid   bound
}

// rows finds the elements that match, and returns the rows that they are in. With few candidates only their
// elements are looked at.
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
	} else if rows, ok := markedRows(s, e, m.kid, in); ok {
		return within(rows, among)
	}
	return within(rowsOf(s, e, m.kid.rows(s.in(e), in)), among)
}

func (m elementsMatch) size(s source) int {
	e := s.Elements()
	if e == nil {
		return 0
	}
	return min(m.kid.size(s.in(e)), s.Rows())
}

// in returns a source of elements. Results for elements are not cached by themselves, but slices of numbers are.
func (s source) in(e *segment.Elements) source {
	return source{Live: s.Live, scope: s.scope, stop: s.stop, elements: e}
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

// deepMatch is a condition on a path that leads through further objects. direct: there may be no array on the path.
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

// Elements are objects at a path that pass a condition in braces, as in variants.{color = red}.
type Elements struct{ node *elements }

// ParseElements parses a path and braces. The error is a *SyntaxError.
func ParseElements(src string) (*Elements, error) {
	e, err := Parse(src)
	if err != nil {
		return nil, err
	}
	if e != nil {
		if n, ok := e.root.(*elements); ok {
			return &Elements{n}, nil
		}
	}
	return nil, fail(position{1, 1}, "A path and braces are needed, as in variants.{color = red}.")
}

// Path returns the path of the objects.
func (e *Elements) Path() string { return e.node.path }

// String returns the path and the braces.
func (e *Elements) String() string { return (&Expr{root: e.node}).String() }

// BoundElements are Elements checked against an index. They are immutable, and serve all segments of the index.
type BoundElements struct {
	scope  segment.FieldID
	kid    bound // nil: none
	strays bool
}

// Strays reports whether other objects will pass once a document has a field that none has yet.
func (b *BoundElements) Strays() bool { return b.strays }

// Bind checks that the objects are elements, and that each attribute may be filtered in this way.
func (e *Elements) Bind(env Env) (*BoundElements, error) {
	whole := &Expr{root: e.node}
	if err := whole.Check(Features{Contains: env.Contains}); err != nil {
		return nil, err
	}
	b, err := env.bindElements(e.node)
	if err != nil {
		return nil, err
	}
	if m, ok := b.(elementsMatch); ok {
		return &BoundElements{m.scope, m.kid, env.strays}, nil
	}
	return &BoundElements{strays: env.strays}, nil
}

// In returns the matching elements of a segment, or nil if there are none. If stop reports true, it stops early and the result has no
// meaning.
func (b *BoundElements) In(s segment.Live, stop Stop) *roaring.Bitmap {
	e := s.Elements()
	if e == nil || b.kid == nil {
		return nil
	}
	return b.kid.rows(source{Live: s, stop: stop}.in(e), e.Scope(b.scope))
}
