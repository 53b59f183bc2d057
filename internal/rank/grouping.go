package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/segment"
	"svc/segment/rowlist"
)

// Grouping asks for the first documents of groups: those that share a value of a field. A document with several values is in several
// groups.
type Grouping struct {
	Field string
	Known map[GroupKey]int // how many hits are asked for of groups that are known before; nil: no group is
	New   int              // how many other groups are asked for, the best ones
	Hits  int              // how many hits are asked for of each of them
}

// GroupKey is a value that the documents of a group have: a number or a normalised string. The zero key is that of documents without any.
type GroupKey struct {
	Kind   KeyKind
	Number numeric.Value
	Text   string
}

// KeyKind says what a GroupKey holds.
type KeyKind uint8

const (
	NoKey KeyKind = iota
	NumberKey
	TextKey
)

// GroupColumns are the columns of a field by segment; nil where no document has it.
type GroupColumns []*segment.Column

// AppendKeys appends the keys of a document, ascending: at least one.
func (g GroupColumns) AppendKeys(dst []GroupKey, seg int, row segment.Row) []GroupKey {
	n := len(dst)
	if c := g[seg]; c != nil {
		var buf [8]uint32
		ords := c.RowNumbers(buf[:0], row)
		for _, ord := range ords {
			if int(ord) < c.Numbers() { // a forged segment may name others
				dst = append(dst, GroupKey{Kind: NumberKey, Number: c.Number(int(ord))})
			}
		}
		for _, ord := range c.RowStrings(ords[:0], row) {
			dst = append(dst, GroupKey{Kind: TextKey, Text: string(c.String(int(ord)))})
		}
	}
	if len(dst) == n {
		dst = append(dst, GroupKey{})
	}
	return dst
}

// Ordinal returns the ordinal that a key has in a segment: of its numbers, or of its strings. −1: it has none.
func (g GroupColumns) Ordinal(seg int, key *GroupKey) int {
	c := g[seg]
	switch {
	case c == nil || key.Kind == NoKey:
	case key.Kind == NumberKey:
		if ord := c.SearchNumber(key.Number); ord < c.Numbers() && c.Number(ord) == key.Number {
			return ord
		}
	default:
		if ord := c.SearchString([]byte(key.Text)); ord < c.Strings() && string(c.String(ord)) == key.Text {
			return ord
		}
	}
	return -1
}

// Filled reports whether it is known that each document of a segment has one value.
func (g GroupColumns) Filled(seg, rows int) bool {
	c := g[seg]
	switch {
	case c == nil:
		return false
	case c.Strings() == 0 && c.SingleNumbers():
		return entries(c.NumberEntries, c.NumberCounts, c.Numbers(), rows) == rows
	case c.Numbers() == 0 && c.SingleStrings():
		return entries(c.StringEntries, c.StringCounts, c.Strings(), rows) == rows
	}
	return false
}

// entries returns how many rows the values of a column have, a row as often as it has one; less, where it takes long to tell.
func entries(light func(lo, hi int) int, counts func(counts []uint32, lo int), values, enough int) (n int) {
	if n = light(0, values); n == enough || values > maxSummed {
		return n
	}
	of := make([]uint32, values)
	counts(of, 0)
	n = 0
	for _, rows := range of {
		n += int(rows)
	}
	return n
}

// maxSummed is of how many values all counts are read.
const maxSummed = 1 << 12

// AddMissing adds those of some rows of a segment that have no value.
func (g GroupColumns) AddMissing(dst *roaring.Bitmap, seg int, among *roaring.Bitmap) {
	c := g[seg]
	if c == nil {
		dst.Or(among)
		return
	}
	var batch [1024]uint32
	var ords, places []uint32
	for it := among.ManyIterator(); ; {
		n := it.NextMany(batch[:])
		if n == 0 {
			return
		}
		var has [len(batch)]bool
		ords, places = c.EachNumber(ords[:0], places[:0], batch[:n])
		for _, at := range places {
			has[at] = true
		}
		ords, places = c.EachString(ords[:0], places[:0], batch[:n])
		for _, at := range places {
			has[at] = true
		}
		for i, row := range batch[:n] {
			if !has[i] {
				dst.Add(row)
			}
		}
	}
}

// grouping keeps documents of groups that miss hits, in the order in which they are pulled.
//
// Nobody knows how many documents it takes to fill the groups, and most are of groups that have their hits. So all documents are searched
// for their first ones, then those that are left of groups that miss hits, and so on. As the order of two documents does not depend on what
// else is ranked, each group gets its best ones.
type grouping struct {
	*Grouping
	ix      *Index
	columns GroupColumns
	missing map[GroupKey]*metGroup
	noted   [][]*metGroup // by segment: of its numbers, then of its strings; see note
	new     int           // groups that were met, without the known ones
	open    int           // groups that miss hits
	rounds  int
	enough  bool // groups were met
	keys    []GroupKey
	ords    []uint32
	list    []uint32
}

type metGroup struct{ missing int } // hits

// unwanted stands for all groups that were not met before there were enough.
var unwanted = &metGroup{}

// maxNoted is the largest number of values of a segment for which groups are noted by ordinal. (A variable, so that tests can lower it.)
var maxNoted = 1 << 14

// roundHits is how many hits are looked for at least. (A variable, so that tests can lower it.)
var roundHits = 32

func newGrouping(ix *Index, asked *Grouping) *grouping {
	g := &grouping{Grouping: asked, ix: ix, columns: columnsOf(ix, asked.Field), missing: make(map[GroupKey]*metGroup, len(asked.Known)+min(asked.New, pageHits))}
	for key, hits := range asked.Known {
		if g.missing[key] = (&metGroup{hits}); hits > 0 {
			g.open++
		}
	}
	g.noted = make([][]*metGroup, len(g.columns))
	g.enough = g.New == 0
	return g
}

// wants reports whether a group misses hits, or is not met yet.
func (g *grouping) wants() bool { return g.new < g.New || g.open > 0 }

// turned reports, once, whether there have become enough groups: from then on, all other documents can be left out.
func (g *grouping) turned() bool {
	turns := g.new == g.New && !g.enough
	g.enough = g.enough || turns
	return turns
}

// note returns the groups of the values of a segment, which are made for its first document. A group is nil until it is looked up. The list
// is nil if no document has the attribute, or if the segment has more than maxNoted values.
func (g *grouping) note(seg int) []*metGroup {
	if c := g.columns[seg]; g.noted[seg] == nil && c != nil && c.Numbers()+c.Strings() <= maxNoted {
		g.noted[seg] = make([]*metGroup, c.Numbers()+c.Strings())
	}
	return g.noted[seg]
}

// keep reports whether a document is a hit of a group that missed one.
func (g *grouping) keep(seg int, row segment.Row) (kept bool) {
	noted := g.note(seg)
	if noted == nil {
		g.keys = g.columns.AppendKeys(g.keys[:0], seg, row)
		for _, key := range g.keys {
			kept = g.give(g.group(key)) || kept
		}
		return kept
	}
	c, met := g.columns[seg], false
	g.ords = c.RowNumbers(g.ords[:0], row)
	numbers := len(g.ords)
	g.ords = c.RowStrings(g.ords, row)
	for i, ord := range g.ords {
		at, last := int(ord), c.Numbers()
		if i >= numbers {
			at, last = int(ord)+c.Numbers(), len(noted)
		}
		if at >= last { // a forged segment may name others
			continue
		}
		if met = true; noted[at] == nil {
			key := GroupKey{Kind: NumberKey}
			if i < numbers {
				key.Number = c.Number(at)
			} else {
				key = GroupKey{Kind: TextKey, Text: string(c.String(int(ord)))}
			}
			noted[at] = g.group(key)
		}
		kept = g.give(noted[at]) || kept
	}
	if !met {
		kept = g.give(g.group(GroupKey{}))
	}
	return kept
}

// group returns the group with a key, which it meets if there are not enough.
func (g *grouping) group(key GroupKey) *metGroup {
	of, met := g.missing[key]
	switch {
	case met:
		return of
	case g.new == g.New:
		return unwanted
	}
	g.new++
	g.open++
	of = &metGroup{g.Hits}
	g.missing[key] = of
	return of
}

// give gives a hit to a group, and reports whether it missed one.
func (g *grouping) give(of *metGroup) bool {
	if of.missing == 0 {
		return false
	}
	if of.missing--; of.missing == 0 {
		g.open--
	}
	return true
}

// round returns how many documents the next round looks for.
func (g *grouping) round() int {
	n := (g.New - g.new) * g.Hits
	for _, of := range g.missing {
		n += of.missing
	}
	g.rounds++
	return max(2*n, roundHits<<min(2*(g.rounds-1), 10))
}

// left returns the documents of a set that can be hits: those of groups that miss some and, until there are enough groups, of others.
func (g *grouping) left(r rows) rows {
	if g.new < g.New && g.metAll() {
		g.New = g.new
	}
	out := make(rows, len(r))
	for seg, in := range r {
		if in == nil {
			continue
		}
		if g.new < g.New {
			out[seg] = g.without(seg, in)
		} else {
			out[seg] = g.of(seg, in)
		}
	}
	return out
}

// metAll reports whether it is known that there is no group which was not met.
func (g *grouping) metAll() bool {
	for seg, c := range g.columns {
		if !g.columns.Filled(seg, g.ix.Segments[seg].Rows()) || c.Numbers()+c.Strings() > len(g.missing) {
			return false
		}
		for ord := range c.Numbers() {
			if _, met := g.missing[GroupKey{Kind: NumberKey, Number: c.Number(ord)}]; !met {
				return false
			}
		}
		for ord := range c.Strings() {
			if _, met := g.missing[GroupKey{Kind: TextKey, Text: string(c.String(ord))}]; !met {
				return false
			}
		}
	}
	return true
}

// of returns those of some rows of a segment that are in groups that miss hits.
func (g *grouping) of(seg int, in *roaring.Bitmap) *roaring.Bitmap {
	if out, ok := g.read(seg, in, func(missing int) bool { return missing > 0 }, false); ok {
		return out
	}
	bits := newRowBits(g.ix.Segments[seg].Rows())
	unkeyed := false
	for key, of := range g.missing {
		if of.missing > 0 {
			g.mark(bits, seg, &key)
			unkeyed = unkeyed || key.Kind == NoKey
		}
	}
	out := bits.among(in)
	if unkeyed {
		g.columns.AddMissing(out, seg, in)
	}
	if out.IsEmpty() {
		return nil
	}
	return out
}

// without returns those of some rows of a segment that are in groups that miss hits, or were not met.
func (g *grouping) without(seg int, in *roaring.Bitmap) *roaring.Bitmap {
	if out, ok := g.read(seg, in, func(missing int) bool { return missing == 0 }, true); ok {
		return out
	}
	bits := newRowBits(g.ix.Segments[seg].Rows())
	unkeyed, full := false, 0
	for key, of := range g.missing {
		if of.missing == 0 {
			g.mark(bits, seg, &key)
			unkeyed = unkeyed || key.Kind == NoKey
			full++
		}
	}
	if full == 0 {
		return in
	}
	c := g.columns[seg]
	if c != nil && !(c.SingleNumbers() && c.Strings() == 0 || c.SingleStrings() && c.Numbers() == 0) { // some may be in other groups, too
		for it := bits.among(in).Iterator(); it.HasNext(); {
			row := it.Next()
			g.keys = g.columns.AppendKeys(g.keys[:0], seg, segment.Row(row))
			for _, key := range g.keys {
				if of, met := g.missing[key]; !met || of.missing > 0 {
					bits[row/64] &^= 1 << (row % 64)
				}
			}
		}
	}
	out := bits.without(in)
	if unkeyed && out != nil {
		missing := roaring.New()
		g.columns.AddMissing(missing, seg, out)
		out = andNot(out, missing)
	}
	return out
}

// readRow is how many rows of groups are marked in the time in which the group of a row is read. (A variable, so that tests can lower it.)
var readRow = 4

// read returns those of some rows of a segment that are in chosen groups; others: that are not. A group is chosen by how many hits it
// misses. Each row's value is read. false: rows may have several values, or it takes less time to mark the rows of the groups.
func (g *grouping) read(seg int, in *roaring.Bitmap, chosen func(missing int) bool, others bool) (_ *roaring.Bitmap, ok bool) {
	c := g.columns[seg]
	switch {
	case c == nil:
		return nil, false
	case !(c.SingleNumbers() && c.Strings() == 0 || c.SingleStrings() && c.Numbers() == 0):
		return nil, false
	}
	choose, values := c.ChooseByString, c.Strings()
	if c.Strings() == 0 {
		choose, values = c.ChooseByNumber, c.Numbers()
	}
	keep := make(rowBits, values/64+1) // by ordinal, and behind them that of rows without a value
	if others {
		for i := range keep {
			keep[i] = ^uint64(0)
		}
	}
	entries := 0
	for key, of := range g.missing {
		if !chosen(of.missing) {
			continue
		}
		ord := values
		if key.Kind != NoKey {
			if ord = g.columns.Ordinal(seg, &key); ord < 0 {
				continue
			}
			if key.Kind == NumberKey {
				entries += c.NumberCount(ord)
			} else {
				entries += c.StringCount(ord)
			}
		}
		keep[ord/64] ^= 1 << (ord % 64)
	}
	if readRow*(int(in.GetCardinality())+values/64) > entries {
		return nil, false
	}
	var batch [1024]uint32
	list := g.list[:0]
	for it := in.ManyIterator(); ; {
		n := it.NextMany(batch[:])
		if n == 0 {
			break
		}
		list = choose(list, batch[:n], keep)
	}
	g.list = list
	if len(list) == 0 {
		return nil, true
	}
	return rowlist.FromRows(list), true
}

// mark sets the bits of the documents of a group that has a key.
func (g *grouping) mark(bits rowBits, seg int, key *GroupKey) {
	switch ord := g.columns.Ordinal(seg, key); {
	case ord < 0:
	case key.Kind == NumberKey:
		g.columns[seg].MarkNumbers(bits, ord, ord+1)
	default:
		g.columns[seg].MarkStrings(bits, ord, ord+1)
	}
}

// among returns the rows of a set that have a bit.
func (b rowBits) among(r *roaring.Bitmap) *roaring.Bitmap {
	if int(r.GetCardinality()) < len(b) {
		out := roaring.New()
		for it := r.Iterator(); it.HasNext(); {
			if row := it.Next(); b.has(row) {
				out.Add(row)
			}
		}
		return out
	}
	in := make(rowBits, len(b))
	r.WriteDenseTo(in)
	for i := range in {
		in[i] &= b[i]
	}
	return roaring.FromDense(in, false)
}
