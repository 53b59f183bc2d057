package filter

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// Env is what an index says to a filter.
type Env struct {
	Fields   *settings.Fields
	Code     apierr.Code // of errors: invalid_search_filter, invalid_document_filter, …
	Contains bool        // the experimental feature containsFilter

	Embedders []Embedder // of the index; filters on _vectors are open when this is not nil

	// Foreign opens the index that a foreign key names. It returns nil if the caller may read no such index. Its error, for an index
	// that cannot be opened, ends Bind. A nil Foreign means that the experimental feature foreignKeys is off.
	Foreign     func(uid string) (*Foreign, error)
	ForeignKeys []settings.ForeignKey // of the index

	// Shard finds the documents of a shard, by segment. It returns nil for an unknown shard. The bitmaps are shared. nil: there are
	// no shards.
	Shard func(name string) func(segment.Live) *roaring.Bitmap

	// Parted: other instances may hold documents of the index, too, so a field that no document here has may exist there. Then != on it
	// matches every document; otherwise it matches none. It counts as set if the filter has a condition on shards.
	Parted bool

	// Stop is called between the parts of the filters that Bind itself evaluates, to cancel them. It may be nil, and is not used
	// after Bind.
	Stop Stop

	strays   bool                         // a condition will bind differently once a document has its field
	scope    *scope                       // inside braces; nil: outside
	selected map[string][]*roaring.Bitmap // by foreign index and its segments: what _foreign has selected
}

// Stop says, between the parts of a filter, whether it is not wanted any more: the rows that are found then are meaningless. nil never
// does.
type Stop func() bool

// stops reports whether a filter is not wanted any more.
func (s Stop) stops() bool { return s != nil && s() }

// Bound is a filter checked against an index. It is immutable, and serves all segments of the index.
type Bound struct {
	root bound
	key  []byte // identifies the condition within the index; nil: results are not cached
}

// Bind checks that every attribute may be filtered in this way. A nil filter binds to one that all rows match.
func (e *Expr) Bind(env Env) (*Bound, error) {
	if e == nil {
		return &Bound{}, nil
	}
	if err := e.Check(Features{Contains: env.Contains, Foreign: env.Foreign != nil, Vectors: env.Embedders != nil, Shards: true}); err != nil {
		return nil, err
	}
	env.Parted = env.Parted || e.asksShards()
	root, err := env.bind(e.root)
	if err != nil {
		return nil, err
	}
	if env.strays {
		return &Bound{root, nil}, nil
	}
	key := e.key()
	if key == nil {
		root = keepParts(e.root, root)
	}
	return &Bound{root, key}, nil
}

// fewParts is how many parts of a filter are evaluated without a look at the clock.
const fewParts = 8

// stoppable is a part of a filter that need not be evaluated once the whole is not wanted.
type stoppable struct{ bound }

func (m stoppable) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	if s.stop.stops() {
		return roaring.New()
	}
	return m.bound.rows(s, among)
}

// bind checks a node and binds it to fields. Parts of long junctions ask between each other whether they are
// still wanted.
func (env *Env) bind(n node) (bound, error) {
	switch n := n.(type) {
	case *junction:
		kids := make([]bound, len(n.kids))
		for i, k := range n.kids {
			var err error
			if kids[i], err = env.bind(k); err != nil {
				return nil, err
			}
			if len(n.kids) > fewParts {
				kids[i] = stoppable{kids[i]}
			}
		}
		if n.or {
			return anyOf(kids), nil
		}
		return allOf(kids), nil
	case *not:
		kid, err := env.bind(n.kid)
		return noneOf{kid}, err
	case *condition:
		return env.bindCondition(n)
	case *elements:
		return env.bindElements(n)
	case *foreign:
		return env.bindForeign(n)
	case *vectors:
		return env.bindVectors(n)
	case *radius:
		return env.bindRadius(n)
	case *box:
		return env.bindBox(n)
	case *polygon:
		return env.bindPolygon(n)
	}
	// Check has refused the rest, whose features are off.
	return nil, apierr.New(env.Code, "The filter cannot be evaluated.")
}

// bindShards binds a condition on the shard of documents.
func (env *Env) bindShards(c *condition) (bound, error) {
	var match shardMatch
	for _, name := range c.values {
		var find func(segment.Live) *roaring.Bitmap
		if env.Shard != nil {
			find = env.Shard(name)
		}
		if find == nil {
			return nil, apierr.New("invalid_search_filter", "%s: There is no shard `%s`. The shards are those of the network, once it has a leader.", c.at, name)
		}
		match = append(match, find)
	}
	if c.op == notEqual {
		return noneOf{match}, nil
	}
	return match, nil
}

// shardMatch keeps the documents of some shards.
type shardMatch []func(segment.Live) *roaring.Bitmap

func (m shardMatch) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	if len(m) == 1 {
		return shared(m[0](s.Live), among)
	}
	rows := roaring.New()
	for _, find := range m {
		rows.Or(find(s.Live))
	}
	return within(rows, among)
}

func (m shardMatch) size(s source) int {
	n := 0
	for _, find := range m {
		n += int(find(s.Live).GetCardinality())
	}
	return n
}

// bindCondition binds a condition on an attribute. An attribute that no document has ever had matches nothing. This is not an error.
func (env *Env) bindCondition(c *condition) (bound, error) {
	if c.attr == shardAttr {
		return env.bindShards(c)
	}
	if err := env.checkCondition(c); err != nil {
		return nil, err
	}
	id, known := env.Fields.ID(c.attr)
	if known {
		return env.scope.match(c, c.match(id)), nil
	}
	if c.op == notEqual {
		env.strays = true
		if env.Parted {
			return noneOf{nothing{}}, nil
		}
	}
	return nothing{}, nil
}

// checkCondition refuses an attribute that may not be filtered so.
func (env *Env) checkCondition(c *condition) error {
	info := env.Fields.InfoOf(c.attr)
	if !info.Filters() {
		return apierr.New(env.Code, "%s: The attribute `%s` is not filterable: add it to filterableAttributes of the index.", c.at, c.attr)
	}
	if allowed, feature := c.allowed(&info); !allowed {
		return apierr.New(env.Code, "%s: The operator %s is not allowed on the attribute `%s`: turn on `%s` in its rule of filterableAttributes.",
			c.at, c.op, c.attr, feature)
	}
	if env.scope != nil && !info.Elements {
		return undeclared(env.Code, c.at, env.scope.path, c.attr)
	}
	return nil
}

// match returns the test of a field.
func (c *condition) match(id segment.FieldID) bound {
	switch c.op {
	case exists:
		return presentMatch{id}
	case isNull:
		return nullMatch{id}
	case isEmpty:
		return emptyMatch{id}
	case contains:
		return eitherSigma(text.FacetPart(nil, []byte(c.values[0])), func(part []byte) bound { return containsMatch{id, part} })
	case startsWith:
		if c.values[0] == "" {
			// Everything begins with nothing: null, an empty list and an object, too.
			return presentMatch{id}
		}
		// Texts are compared without the blanks before them, so none begins with blanks alone.
		prefix := text.FacetPart(nil, []byte(strings.TrimLeftFunc(c.values[0], unicode.IsSpace)))
		if len(prefix) == 0 {
			return nothing{}
		}
		return eitherSigma(prefix, func(prefix []byte) bound { return prefixMatch{id, prefix} })
	case equal, in:
		return newEqualMatch(id, c.values)
	case notEqual:
		return noneOf{newEqualMatch(id, c.values)}
	}
	return newRangeMatch(id, c)
}

// eitherSigma returns the test for a part of a text. If the part ends in a sigma, the text may have a final sigma there or an ordinary one,
// because lower-casing writes a final one at the end of a word.
func eitherSigma(part []byte, test func(part []byte) bound) bound {
	const ordinary, final = "σ", "ς"
	switch {
	case bytes.HasSuffix(part, []byte(ordinary)):
		return anyOf{test(part), test(slices.Concat(part[:len(part)-len(ordinary)], []byte(final)))}
	case bytes.HasSuffix(part, []byte(final)):
		return anyOf{test(part), test(slices.Concat(part[:len(part)-len(final)], []byte(ordinary)))}
	}
	return test(part)
}

// allowed reports whether the rule that covers the attribute opens the operator, and which of its features would.
func (c *condition) allowed(info *settings.FieldInfo) (bool, string) {
	switch c.op {
	case exists, isNull, isEmpty:
		return true, ""
	case greater, greaterOrEqual, less, lessOrEqual, between:
		return info.Comparison, "comparison"
	}
	return info.Equality, "equality"
}

// rangeMatch tests for numbers and texts between bounds. It compares texts by their normalised forms. It compares numbers only if
// every bound parses as a number.
type rangeMatch struct {
	id       segment.FieldID
	numeric  bool
	low      *numeric.Value // nil: unbounded
	high     *numeric.Value
	from, to []byte // nil: unbounded
	after    bool   // the lower bound is exclusive
	before   bool   // the upper bound is exclusive
}

// newRangeMatch parses the bounds of a range. Unless all bounds are numbers, the range compares texts only.
func newRangeMatch(id segment.FieldID, c *condition) rangeMatch {
	m := rangeMatch{id: id, numeric: true, after: c.op == greater, before: c.op == less}
	lower, upper := "", ""
	hasLower := c.op == greater || c.op == greaterOrEqual || c.op == between
	hasUpper := c.op == less || c.op == lessOrEqual || c.op == between
	if hasLower {
		lower = c.values[0]
		m.from = text.FacetKey([]byte{}, []byte(lower))
		m.low, m.numeric = numericBound(lower, m.numeric)
	}
	if hasUpper {
		upper = c.values[len(c.values)-1]
		m.to = text.FacetKey([]byte{}, []byte(upper))
		m.high, m.numeric = numericBound(upper, m.numeric)
	}
	return m
}

func numericBound(s string, are bool) (*numeric.Value, bool) {
	x, ok := numeric.ParseBound(s)
	return &x, are && ok
}
