package filter

import (
	"bytes"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/numeric"
	"svc/internal/text"
)

// Matcher is a filter for single documents that are not in a segment yet. It is not safe for concurrent use.
type Matcher struct {
	root   test
	slots  map[string]int // of the paths in conditions, in values
	above  map[string]bool
	values []fieldValues
	where  func(doc []byte) Where
	found  Where  // of the document; read when the first part asks
	known  bool   // found was read
	prefix string // of conditions of objects in braces: the path of the object and a dot
	doc    []byte
	key    []byte // scratch
	strays bool   // a condition is on a field that no document of the index has
}

// Strays reports whether a condition is on a field that, as far as the index knows, no document has. != matches no document then.
func (t *Matcher) Strays() bool { return t.strays }

// Where tells the places of a document.
type Where struct {
	Point    bool // there is one
	Lat, Lng float64
	Shape    []geo.ShapePart
}

// fieldValues are the values of a document at one path, as a column has them.
type fieldValues struct {
	present, null, empty bool
	numbers              []numeric.Value
	keys                 [][]byte

	// For braces: where the open object at the path begins, and those that ended.
	opened  int
	objects [][]byte
}

// Matcher checks a filter as Bind does and returns it for documents. where reads the places of a document. Conditions on vectors,
// shards and foreign documents are refused, because the document alone does not decide them.
func (e *Expr) Matcher(env Env, where func(doc []byte) Where) (*Matcher, error) {
	if err := e.Check(Features{Contains: env.Contains, Foreign: true, Vectors: true, Shards: true}); err != nil {
		return nil, err
	}
	t := &Matcher{slots: map[string]int{}, above: map[string]bool{}, where: where}
	var err error
	if t.root, err = t.build(&env, e.root); err != nil {
		return nil, err
	}
	t.values = make([]fieldValues, len(t.slots))
	return t, nil
}

// test is a node of a Matcher.
type test func() bool

// build compiles a tree into a test of one document. It refuses conditions that need the index, such as those on vectors.
func (t *Matcher) build(env *Env, n node) (test, error) {
	var at position
	switch n := n.(type) {
	case *junction:
		kids := make([]test, len(n.kids))
		for i, k := range n.kids {
			var err error
			if kids[i], err = t.build(env, k); err != nil {
				return nil, err
			}
		}
		if n.or {
			return func() bool { return slices.ContainsFunc(kids, func(k test) bool { return k() }) }, nil
		}
		return func() bool { return !slices.ContainsFunc(kids, func(k test) bool { return !k() }) }, nil
	case *not:
		kid, err := t.build(env, n.kid)
		return func() bool { return !kid() }, err
	case *condition:
		if n.attr != shardAttr {
			return t.condition(env, n)
		}
		at = n.at
	case *elements:
		return t.elements(env, n)
	case *radius:
		b, err := env.bindRadius(n)
		return t.place(b), err
	case *box:
		b, err := env.bindBox(n)
		return t.place(b), err
	case *polygon:
		b, err := env.bindPolygon(n)
		return t.place(b), err
	case *vectors:
		at = n.at
	case *foreign:
		at = n.at
	}
	return nil, apierr.New(env.Code, "%s: The filter of an operation tests only its document, so it cannot have conditions on `_vectors`, `_shard` or `_foreign`.", at)
}

// condition returns the test of a path.
func (t *Matcher) condition(env *Env, c *condition) (test, error) {
	if err := env.checkCondition(c); err != nil {
		return nil, err
	}
	slot := t.slot(strings.TrimPrefix(c.attr, t.prefix))
	_, indexed := env.Fields.ID(c.attr)
	t.strays = t.strays || !indexed
	indexed = indexed || env.Parted
	b, negated := c.match(0), false
	if n, ok := b.(noneOf); ok {
		b, negated = n.bound, true
	}
	m, ok := b.(interface{ holds(*fieldValues) bool })
	return func() bool {
		v := &t.values[slot]
		// As in Bind, not even != matches where no document has the field.
		return (indexed || v.present) && (ok && m.holds(v)) != negated
	}, nil
}

// slot returns the place of the values at a path.
func (t *Matcher) slot(path string) int {
	slot, known := t.slots[path]
	if !known {
		slot = len(t.slots)
		t.slots[path] = slot
		for i := range path {
			if path[i] == '.' {
				t.above[path[:i]] = true
			}
		}
	}
	return slot
}

// elements returns the test of braces: each object at the path is asked as a document of its own.
func (t *Matcher) elements(env *Env, n *elements) (test, error) {
	if err := env.checkElements(n); err != nil {
		return nil, err
	}
	inner := *env
	inner.scope = &scope{path: n.path}
	m := &Matcher{slots: map[string]int{}, above: map[string]bool{}, where: t.where, prefix: n.path + "."}
	var err error
	if m.root, err = m.build(&inner, n.kid); err != nil {
		return nil, err
	}
	m.values = make([]fieldValues, len(m.slots))
	_, indexed := env.Fields.ID(n.path)
	t.strays = t.strays || m.strays || !indexed
	slot := t.slot(strings.TrimPrefix(n.path, t.prefix))
	return func() bool {
		return slices.ContainsFunc(t.values[slot].objects, func(object []byte) bool {
			matches, err := m.Matches(object)
			return matches && err == nil // it was walked already
		})
	}, nil
}

func (m presentMatch) holds(v *fieldValues) bool { return v.present }
func (m nullMatch) holds(v *fieldValues) bool    { return v.null }
func (m emptyMatch) holds(v *fieldValues) bool   { return v.empty }

func (m containsMatch) holds(v *fieldValues) bool {
	return slices.ContainsFunc(v.keys, func(key []byte) bool { return bytes.Contains(key, m.part) })
}

func (m prefixMatch) holds(v *fieldValues) bool {
	return slices.ContainsFunc(v.keys, func(key []byte) bool { return bytes.HasPrefix(key, m.prefix) })
}

func (m equalMatch) holds(v *fieldValues) bool {
	for _, x := range v.numbers {
		if slices.Contains(m.integers, x) || x.Rest == 0 && slices.Contains(m.floats, x.Float) {
			return true
		}
	}
	return slices.ContainsFunc(v.keys, func(key []byte) bool {
		_, found := slices.BinarySearchFunc(m.keys, key, bytes.Compare)
		return found
	})
}

func (m rangeMatch) holds(v *fieldValues) bool {
	return m.numeric && slices.ContainsFunc(v.numbers, func(x numeric.Value) bool {
		return (m.low == nil || inside(x.Compare(*m.low), m.after)) && (m.high == nil || inside(-x.Compare(*m.high), m.before))
	}) || slices.ContainsFunc(v.keys, func(key []byte) bool {
		return (m.from == nil || inside(bytes.Compare(key, m.from), m.after)) && (m.to == nil || inside(-bytes.Compare(key, m.to), m.before))
	})
}

// inside reports whether a value that compares so with a bound is on the right side of it.
func inside(c int, exclusive bool) bool { return c > 0 || c == 0 && !exclusive }

// place returns the test of a place.
func (t *Matcher) place(b bound) test {
	m, _ := b.(geoMatch)
	return func() bool {
		if !t.known {
			t.found, t.known = t.where(t.doc), true
		}
		return m.inside != nil && t.found.Point && m.inside(t.found.Lat, t.found.Lng) ||
			m.shapes != nil && slices.ContainsFunc(t.found.Shape, func(p geo.ShapePart) bool { return meets(m.shapes, &p) })
	}
}

// meets tests a shape as segments have it: coded, and on the globe, where a region may cross the antimeridian.
func meets(r *geo.Region, p *geo.ShapePart) bool {
	var d geo.Decoder
	coded, ok := d.Decode(geo.AppendPart(nil, p))
	if !ok {
		return false
	}
	for _, degrees := range [...]float64{0, -360, 360} {
		if r.Shifted(degrees).Meets(coded.Kind, coded.Rings) {
			return true
		}
	}
	return false
}

// Matches reports whether a document, compact, passes the filter.
func (t *Matcher) Matches(doc []byte) (bool, error) {
	t.doc, t.known = doc, false
	for i := range t.values {
		v := &t.values[i]
		*v = fieldValues{numbers: v.numbers[:0], keys: v.keys[:0], objects: v.objects[:0]}
	}
	if err := document.Walk(doc, (*matchReader)(t)); err != nil {
		return false, err
	}
	return t.root(), nil
}

// matchReader is the document.Visitor of a Matcher. Handles are slots; the one behind them is of paths that lead to others.
type matchReader Matcher

// Field returns the place of the values of a path; one past the last for a path that only leads to others; −1
// to skip the value.
func (r *matchReader) Field(path []byte) int {
	slot, ok := r.slots[string(path)]
	switch {
	case ok:
		r.values[slot].present = true
		return slot
	case r.above[string(path)]:
		return len(r.values)
	}
	return -1
}

// at returns the values of a slot, nil of the handle that has none.
func (r *matchReader) at(field int) *fieldValues {
	if field == len(r.values) {
		return nil
	}
	return &r.values[field]
}

func (r *matchReader) Visit(int) {}

// Enter implements document.ObjectVisitor.
func (r *matchReader) Enter(field, at, _ int) {
	if v := r.at(field); v != nil {
		v.opened = at
	}
}

func (r *matchReader) Leave(field, at int) {
	if v := r.at(field); v != nil {
		v.objects = append(v.objects, r.doc[v.opened:at])
	}
}

func (r *matchReader) NullIn(int, int)  {}
func (r *matchReader) EmptyIn(int, int) {}

func (r *matchReader) String(field int, s []byte, _ []int) {
	if v := r.at(field); v != nil {
		// As in a column, a string without content is no value.
		if r.key = text.FacetKey(r.key[:0], s); len(r.key) > 0 {
			v.keys = append(v.keys, bytes.Clone(r.key))
		}
	}
}

func (r *matchReader) Number(field int, _ []byte, value numeric.Value, _ []int) {
	if v := r.at(field); v != nil {
		v.numbers = append(v.numbers, value)
	}
}

func (r *matchReader) Bool(field int, value bool, _ []int) {
	if v := r.at(field); v != nil {
		v.keys = append(v.keys, boolKeys[value])
	}
}

var boolKeys = map[bool][]byte{true: []byte("true"), false: []byte("false")}

func (r *matchReader) Null(field int) {
	if v := r.at(field); v != nil {
		v.null = true
	}
}

func (r *matchReader) Empty(field int) {
	if v := r.at(field); v != nil {
		v.empty = true
	}
}
