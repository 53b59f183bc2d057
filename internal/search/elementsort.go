package search

import (
	"context"
	"errors"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// sortElements are the objects in documents that a sort uses, as in variants.{color = red}.price. It is a rank.Elements.
type sortElements struct {
	view     *index.View
	text     string
	field    segment.FieldID
	bound    *filter.BoundElements
	strays   bool             // see rank.Elements
	stop     filter.Stop      // once it returns true, the values have no meaning
	segments []chosenElements // once they were asked for
	ordinals []uint32
}

// chosenElements are the chosen elements of a segment.
type chosenElements struct {
	known    bool
	elements *segment.Elements
	column   *segment.Column
	chosen   *roaring.Bitmap // nil: none has a value
}

// parseElementSort parses an entry of a sort without its direction.
func parseElementSort(ctx context.Context, v *index.View, name string, contains bool, code apierr.Code) (rank.SortKey, error) {
	bad := func(what string) error {
		return apierr.New(code, "Cannot sort by %q: %s Write a path, a filter in braces and an attribute, such as `variants.{color = red}.price:asc`.", name, what)
	}
	at := strings.LastIndex(name, "}.")
	if at < 0 || at+2 == len(name) {
		return rank.SortKey{}, bad("there is no attribute behind the braces.")
	}
	e, err := filter.ParseElements(name[:at+1])
	if syntax := (*filter.SyntaxError)(nil); errors.As(err, &syntax) {
		return rank.SortKey{}, bad(syntax.Error())
	}
	if err != nil {
		return rank.SortKey{}, err
	}
	env := filter.Env{Fields: v.Fields, Code: code, Contains: contains}
	bound, err := e.Bind(env)
	if err != nil {
		return rank.SortKey{}, err
	}
	field := e.Path() + name[at+1:]
	if info := v.Fields.InfoOf(field); !info.Elements {
		return rank.SortKey{}, apierr.New(code, "Cannot sort by %q: objects cannot be sorted by %q. Add a rule like "+
			`{"attributePatterns": ["%s.*"], "features": {"elements": true}}`+" to filterableAttributes of the index.", name, field, e.Path())
	}
	s := &sortElements{view: v, text: e.String() + name[at+1:], bound: bound, strays: bound.Strays(), stop: stopOf(turns.Of(ctx)), segments: make([]chosenElements, len(v.Segments))}
	if id, ok := v.Fields.ID(field); ok {
		s.field = id
	} else { // no object has the attribute
		s.bound = &filter.BoundElements{}
	}
	return rank.SortKey{Field: field, Elements: s}, nil
}

func (s *sortElements) String() string { return s.text }

func (s *sortElements) Strays() bool { return s.strays }

// Value returns the first value, in the order of the sort, of the elements of a row that satisfy the condition in braces.
func (s *sortElements) Value(seg int, row uint32, desc bool) rank.SortValue {
	first := rank.SortValue{Class: rank.OfNothing}
	c := &s.segments[seg]
	if !c.known {
		c.known = true
		if c.elements = s.view.Segments[seg].Elements(); c.elements != nil {
			if c.column = c.elements.Column(s.field); c.column != nil {
				c.chosen = s.bound.In(s.view.Segments[seg], s.stop)
			}
		}
	}
	if c.chosen == nil {
		return first
	}
	for i, to := c.elements.Span(row); i < to; i++ {
		if !c.elements.Inside(i, c.chosen) {
			continue
		}
		if v := rank.FirstValue(c.column, uint32(i), desc, &s.ordinals); v.Compare(&first, desc) < 0 {
			first = v
		}
	}
	return first
}
