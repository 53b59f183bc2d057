package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
	"svc/segment/rowlist"
)

// valueBits marks the values of a segment whose documents can still be hits.
type valueBits struct {
	bits rowBits // by ordinal of the numbers, then of the strings; behind them that of documents without a value; nil: not asked for yet
	full int     // how many of grouping.full have been cleared in bits
	only bool    // groups that were not met are left out
}

// pruneBatch is the number of rows whose values are read at once.
const pruneBatch = 1024

// pruneSample is the number of rows whose values are read first. (A variable, so that tests can change it.)
var pruneSample = 128

// pruneRows is the size of the smallest list or set that is pruned. (A variable, so that tests can lower it.)
var pruneRows = 4

// idle reports whether all documents may still be hits.
func (g *grouping) idle() bool { return !g.prunes || len(g.full) == 0 && g.new < g.New }

// state changes whenever more documents can no longer become hits.
func (g *grouping) state() int {
	if g.new == g.New {
		return 2*len(g.full) + 2
	}
	return 2*len(g.full) + 1
}

// maxBits is the maximum number of values of a segment for which bits are made to prune lists. (A variable, so that tests can lower it.)
var maxBits = 1 << 17

// pruneList leaves documents that cannot be hits out of a list, which it overwrites. pruned is the state at which it was pruned before; the
// state now is returned.
func (g *grouping) pruneList(s *search, entries []entry, pruned int) ([]entry, int) {
	if len(entries) < pruneRows || g.idle() {
		return entries, pruned
	}
	g.lookForAll()
	if pruned == g.state() {
		return entries, pruned
	}
	left := entries[:0]
	for begin := 0; begin < len(entries); {
		seg, end := entries[begin].segment, begin
		g.list = g.list[:0]
		for ; end < len(entries) && entries[end].segment == seg && len(g.list) < pruneBatch; end++ {
			g.list = append(g.list, entries[end].row)
		}
		if c := g.columns[seg]; c != nil && c.Numbers()+c.Strings() > maxBits { // bits for all of its values take too long
			left = append(left, entries[begin:end]...)
			begin = end
			continue
		}
		next := begin
		for _, row := range g.choose(int(seg), g.list) {
			for entries[next].row != row {
				next++
			}
			left = append(left, entries[next])
			next++
		}
		begin = end
	}
	if len(left) < len(entries) {
		leaveOut(s, len(entries)-len(left))
		s.r.Plan.note("", groupPrune)
	}
	return left, g.state()
}

// hopeless reports whether no document of a set can be a hit.
func (g *grouping) hopeless(r rows) bool { return !g.idle() && g.left(r).isEmpty() }

// left returns the documents of a set that can be hits: those of groups that still need hits and, until there are enough groups,
// documents of new groups. If it removes none, it returns the bitmaps of the set itself.
func (g *grouping) left(r rows) rows {
	g.lookForAll()
	out := make(rows, len(r))
	for seg, in := range r {
		switch {
		case in == nil:
		case g.new < g.New:
			out[seg] = g.without(seg, in)
		default:
			out[seg] = g.of(seg, in)
		}
	}
	return out
}

// lookForAll stops the search for new groups once every group has been met.
func (g *grouping) lookForAll() {
	if g.new < g.New && g.looked < len(g.met) {
		if g.looked = len(g.met); g.metAll() {
			g.New = g.new
		}
	}
}

// metAll reports whether it is known that every group has been met.
func (g *grouping) metAll() bool {
	for _, c := range g.columns {
		if c == nil || c.Numbers()+c.Strings() > len(g.met) {
			return false
		}
	}
	for seg, c := range g.columns {
		if !g.columns.Filled(seg, g.ix.Segments[seg].Rows()) {
			return false
		}
		for ord := range c.Numbers() {
			if g.find(&GroupKey{Kind: NumberKey, Number: c.Number(ord)}) == nil {
				return false
			}
		}
		for ord := range c.Strings() {
			if g.find(&GroupKey{Kind: TextKey, Text: string(c.String(ord))}) == nil {
				return false
			}
		}
	}
	return true
}

// of returns those of some rows of a segment that are in groups that lack hits.
func (g *grouping) of(seg int, in *roaring.Bitmap) *roaring.Bitmap {
	if out, ok := g.read(seg, in, func(missing int) bool { return missing > 0 }); ok {
		return out
	}
	bits := newRowBits(g.ix.Segments[seg].Rows())
	unkeyed := false
	for _, of := range g.met {
		if of.missing > 0 {
			g.mark(bits, seg, of)
			unkeyed = unkeyed || of.Key.Kind == NoKey
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

// without returns those of some rows of a segment that are in groups that lack hits, or in groups that were not found yet.
func (g *grouping) without(seg int, in *roaring.Bitmap) *roaring.Bitmap {
	if out, ok := g.read(seg, in, func(missing int) bool { return missing == 0 }); ok {
		return out
	}
	bits := newRowBits(g.ix.Segments[seg].Rows())
	unkeyed, full := false, 0
	for _, of := range g.met {
		if of.missing == 0 {
			g.mark(bits, seg, of)
			unkeyed = unkeyed || of.Key.Kind == NoKey
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
				if of := g.find(&key); of == nil || of.missing > 0 {
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

// bitsOf returns the values that documents of a segment may have that can be hits. There is a column.
func (g *grouping) bitsOf(seg int) rowBits {
	c, v := g.columns[seg], &g.values[seg]
	if v.bits == nil {
		v.bits = make(rowBits, (c.Numbers()+c.Strings())/64+1)
		for i := range v.bits {
			v.bits[i] = ^uint64(0)
		}
	}
	if g.new == g.New && !v.only {
		v.only, v.full = true, len(g.full)
		clear(v.bits)
		for _, of := range g.met {
			if of.missing > 0 {
				if at := g.place(seg, of); at >= 0 {
					v.bits.set(uint32(at))
				}
			}
		}
	}
	for ; v.full < len(g.full); v.full++ {
		if at := g.place(seg, g.full[v.full]); at >= 0 {
			v.bits[at/64] &^= 1 << (at % 64)
		}
	}
	return v.bits
}

// choose returns those of some rows that can be hits. The result is valid until the next call.
func (g *grouping) choose(seg int, rows []uint32) []uint32 {
	c := g.columns[seg]
	if c == nil {
		if of := g.find(&GroupKey{}); of != nil && of.missing == 0 || of == nil && g.new == g.New {
			return nil
		}
		return rows
	}
	bits := g.bitsOf(seg)
	switch numbers, none := c.Numbers(), c.Numbers()+c.Strings(); {
	case c.Strings() == 0 && c.SingleNumbers():
		g.chosen = c.ChooseByNumber(g.chosen[:0], rows, bits)
	case numbers == 0 && c.SingleStrings():
		g.chosen = c.ChooseByString(g.chosen[:0], rows, bits)
	default:
		const valued, wanted = 1, 2
		g.marks = slices.Grow(g.marks[:0], len(rows))[:len(rows)]
		clear(g.marks)
		note := func(from int) {
			for i, ord := range g.ords {
				g.marks[g.places[i]] |= valued
				if bits.has(uint32(from) + ord) {
					g.marks[g.places[i]] |= wanted
				}
			}
		}
		g.ords, g.places = c.EachNumber(g.ords[:0], g.places[:0], rows)
		note(0)
		g.ords, g.places = c.EachString(g.ords[:0], g.places[:0], rows)
		note(numbers)
		missing := bits.has(uint32(none))
		g.chosen = g.chosen[:0]
		for i, row := range rows {
			if g.marks[i]&wanted != 0 || g.marks[i] == 0 && missing {
				g.chosen = append(g.chosen, row)
			}
		}
	}
	return g.chosen
}

// readRow is how many rows of groups can be marked in the time of reading the group of a row. (A variable, so that tests can lower
// it.)
var readRow = 4

// read returns those rows of a segment that can be hits, by reading the values of each row. chosen reports whether a group that
// misses so many hits is among the chosen ones. ok is false if marking the rows of the chosen groups is faster.
func (g *grouping) read(seg int, in *roaring.Bitmap, chosen func(missing int) bool) (_ *roaring.Bitmap, ok bool) {
	c := g.columns[seg]
	if c == nil {
		return nil, false
	}
	found := int(in.GetCardinality())
	effort := found * readRow
	if !(c.SingleNumbers() && c.Strings() == 0 || c.SingleStrings() && c.Numbers() == 0) {
		effort *= 4
	}
	if entries := g.ix.Segments[seg].Rows() / 64; effort > entries {
		if v := &g.values[seg]; v.bits == nil || g.new == g.New && !v.only { // bitsOf sets all of them, once
			effort += (c.Numbers() + c.Strings()) / 64
		}
		for _, of := range g.met {
			if !chosen(of.missing) || of.Key.Kind == NoKey {
				continue
			}
			switch at := g.place(seg, of); {
			case at < 0:
			case of.Key.Kind == NumberKey:
				entries += c.NumberCount(at)
			default:
				entries += c.StringCount(at - c.Numbers())
			}
		}
		if effort > entries {
			return nil, false
		}
	}
	if g.batch == nil {
		g.batch = make([]uint32, pruneBatch)
	}
	batch, list := g.batch, g.list[:0]
	for it, sample := in.ManyIterator(), pruneSample; ; sample = pruneBatch {
		n := it.NextMany(batch[:sample])
		if n == 0 {
			break
		}
		if list = append(list, g.choose(seg, batch[:n])...); sample == pruneSample && n == sample && n-len(list) < n/8 {
			return in, true // nearly all rows remain: building the set costs more than it saves
		}
	}
	g.list = list
	switch len(list) {
	case 0:
		return nil, true
	case found:
		return in, true
	}
	return rowlist.FromRows(list), true
}

// mark sets the bits of the documents of a group that has a key.
func (g *grouping) mark(bits rowBits, seg int, of *Group) {
	c := g.columns[seg]
	if c == nil || of.Key.Kind == NoKey {
		return
	}
	switch at := g.place(seg, of); {
	case at < 0:
	case of.Key.Kind == NumberKey:
		c.MarkNumbers(bits, at, at+1)
	default:
		c.MarkStrings(bits, at-c.Numbers(), at-c.Numbers()+1)
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
