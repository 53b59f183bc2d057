package search

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// columnsIn returns the columns of an attribute by segment; nil where no document has it.
func columnsIn(v *index.View, attribute string) rank.GroupColumns {
	columns := make(rank.GroupColumns, len(v.Segments))
	if id, ok := v.Fields.ID(attribute); ok {
		for i, s := range v.Segments {
			columns[i] = s.Column(id)
		}
	}
	return columns
}

// keysOf returns the keys of a document, ascending, until it is called again.
func (g *grouper) keysOf(seg int, row segment.Row) []rank.GroupKey {
	g.keys = g.columns.AppendKeys(g.keys[:0], seg, row)
	return g.keys
}

// groupsOf returns the groups of a document, ascending by their keys, until it is called again. It adds those that were not met before.
func (g *grouper) groupsOf(seg int, row segment.Row) []*group {
	g.of = g.of[:0]
	if c := g.columns[seg]; c != nil {
		g.ords = c.RowNumbers(g.ords[:0], row)
		for _, ord := range g.ords {
			if int(ord) < c.Numbers() { // a forged segment may name others
				g.of = append(g.of, g.groupAt(c, seg, int(ord)))
			}
		}
		g.ords = c.RowStrings(g.ords[:0], row)
		for _, ord := range g.ords {
			g.of = append(g.of, g.groupAt(c, seg, c.Numbers()+int(ord)))
		}
	}
	if len(g.of) == 0 {
		g.of = append(g.of, g.meet(rank.GroupKey{}))
	}
	return g.of
}

// groupAt returns the group of a value of a column: of its number with an ordinal, or behind them of a string.
func (g *grouper) groupAt(c *segment.Column, seg, ord int) *group {
	if n := c.Numbers() + c.Strings(); g.byOrd[seg] == nil && n <= maxByOrd {
		g.byOrd[seg] = make([]*group, n)
	}
	noted := ord < len(g.byOrd[seg]) // a forged segment may name others
	if noted && g.byOrd[seg][ord] != nil {
		return g.byOrd[seg][ord]
	}
	var one *group
	if at := ord - c.Numbers(); at < 0 {
		one = g.meet(rank.GroupKey{Kind: rank.NumberKey, Number: c.Number(ord)})
		one.setOrdinal(g.columns, seg, ord)
	} else {
		one = g.meet(rank.GroupKey{Kind: rank.TextKey, Text: string(c.String(at))})
		if at < c.Strings() { // a forged segment may name others
			one.setOrdinal(g.columns, seg, at)
		}
	}
	if noted {
		g.byOrd[seg][ord] = one
	}
	return one
}

// ordinal returns the result of GroupColumns.Ordinal for the key of a group. It looks the key up once. columns must be those of one
// index.
func (one *group) ordinal(columns rank.GroupColumns, seg int) int {
	if one.key.Kind == rank.NoKey || columns[seg] == nil {
		return -1
	}
	if one.ords == nil || one.ords[seg] == 0 {
		one.setOrdinal(columns, seg, columns.Ordinal(seg, &one.key))
	}
	return one.ords[seg] - 2
}

// setOrdinal notes what ordinal returns.
func (one *group) setOrdinal(columns rank.GroupColumns, seg, ord int) {
	if one.ords == nil {
		one.ords = make([]int, len(columns))
	}
	one.ords[seg] = ord + 2
}

// meet returns the group of a key, which it adds if it was not met before.
func (g *grouper) meet(key rank.GroupKey) *group {
	one := g.groups[key]
	if one == nil {
		hits := min(g.by.Hits, DefaultGroupHits)
		segments := len(g.columns)
		if len(g.room) == 0 {
			g.room, g.roomHits, g.roomOrds = make([]group, groupRoom), make([]rank.Hit, groupRoom*hits), make([]int, groupRoom*segments)
		}
		one = &g.room[0]
		*one = group{key: key, fresh: true, hits: g.roomHits[:0:hits], ords: g.roomOrds[:segments:segments]}
		g.room, g.roomHits, g.roomOrds = g.room[1:], g.roomHits[hits:], g.roomOrds[segments:]
		g.note(one)
		g.order = append(g.order, one)
	}
	return one
}

// note notes a group by its key.
func (g *grouper) note(one *group) {
	if g.groups == nil {
		g.groups = make(map[rank.GroupKey]*group, groupRoom)
	}
	g.groups[one.key] = one
}

// rowsOf returns those of some rows of a segment that are in a group.
func rowsOf(columns rank.GroupColumns, seg int, key *rank.GroupKey, among *roaring.Bitmap) *roaring.Bitmap {
	dst := roaring.New()
	switch ord := columns.Ordinal(seg, key); {
	case key.Kind == rank.NoKey:
		columns.AddMissing(dst, seg, among)
	case ord < 0:
	case key.Kind == rank.NumberKey:
		columns[seg].AddNumberRowsAmong(dst, ord, among)
	default:
		columns[seg].AddStringRowsAmong(dst, ord, among)
	}
	return dst
}

// unmet returns, by segment, the documents that are in a group which is not known.
func (g *grouper) unmet(ctx context.Context) ([]*roaring.Bitmap, error) {
	t := turns.Of(ctx)
	rest := make([]*roaring.Bitmap, len(g.base))
	for seg, base := range g.base {
		known := roaring.New()
		for _, one := range g.groups {
			known.Or(rowsOf(g.columns, seg, &one.key, base))
		}
		if c := g.columns[seg]; c != nil && !(c.SingleNumbers() && c.Strings() == 0 || c.SingleStrings() && c.Numbers() == 0) {
			n := 0
			for it := known.Clone().Iterator(); it.HasNext(); n++ {
				if n%clockRows == 0 {
					if err := t.Yield(); err != nil {
						return nil, err
					}
				}
				row := it.Next()
				if slices.ContainsFunc(g.keysOf(seg, segment.Row(row)), func(key rank.GroupKey) bool { return g.groups[key] == nil }) {
					known.Remove(row)
				}
			}
		}
		rest[seg] = roaring.AndNot(base, known)
	}
	return rest, t.Account().Hold(candidateBytes(rest))
}

// appendKey appends a key as JSON. shown is the spelling of a text.
func appendKey(dst []byte, k *rank.GroupKey, shown []byte) []byte {
	switch k.Kind {
	case rank.NoKey:
		return append(dst, "null"...)
	case rank.NumberKey:
		return k.Number.AppendText(dst)
	}
	return jsontext.AppendQuoted(dst, shown)
}

// leastSpelling returns the least of the spellings that documents have of a group's text, or shown if that is less; nil is none.
func leastSpelling(shown []byte, one *group, columns rank.GroupColumns) []byte {
	if one.key.Kind != rank.TextKey {
		return nil
	}
	for seg, c := range columns {
		if ord := one.ordinal(columns, seg); ord >= 0 {
			if s := c.Original(ord); shown == nil || string(s) < string(shown) {
				shown = s
			}
		}
	}
	return shown
}
