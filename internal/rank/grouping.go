package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/segment"
)

// Grouping asks for the first documents of groups: those that share a value of a field. A document with several values is in several
// groups.
type Grouping struct {
	Field string
	Known map[GroupKey]int // how many hits are asked for of groups that are known before; nil: no group is
	New   int              // how many other groups are asked for, the best ones
	Hits  int              // how many hits are asked for of each of them
}

// Group is a group that was met, or known before, and the hits that it missed.
type Group struct {
	Key  GroupKey
	Hits []int32 // places in the hits of the result, ascending
	Ords []int   // by segment: as GroupColumns.Ordinal returns it, but 0 is unknown and others are larger by 2

	missing int // hits
}

// GroupKey is the value that the documents of a group share: a number or a normalised string. The zero key is that of documents
// without a value.
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

// entries returns how many entries a column has: a row counts once for each of its values. If counting takes long, it returns a lower
// bound.
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

// grouping keeps documents of groups that lack hits, in the order in which they are pulled.
//
// It is not known in advance how many documents fill the groups, and most documents are in full groups. So the planner removes
// documents of full groups from each set before the next rule sees it. Once there are enough groups, it also removes documents of all
// other groups. The best documents of each group stay the same, because the order of two documents does not depend on the others. If
// it does, mayPrune is false. Sets for which rules read positions are searched in rounds (rounds.go).
type grouping struct {
	*Grouping
	ix      *Index
	columns GroupColumns
	met     []*Group            // those that were known, and others in the order in which they were met
	byKey   map[GroupKey]*Group // those of met; nil: they are fewGroups at most
	noted   [][]*Group          // by segment: of its numbers, then of its strings; see note
	full    []*Group            // those that miss no hits
	values  []valueBits         // by segment
	new     int                 // groups that were met, without the known ones
	open    int                 // groups that miss hits
	looked  int                 // how many groups there were when metAll was asked last
	prunes  bool                // documents may be left out
	enough  bool                // groups were met

	*groupMemory
	room     []Group // of groups that were not met yet
	roomOrds []int   // of these
	roomHits []int32 // of these
}

// groupMemory is what groupings work in. It belongs to the memory of a search.
type groupMemory struct {
	keys                       []GroupKey
	ords, places, list, chosen []uint32
	batch                      []uint32 // of pruneBatch rows; nil: not asked for yet
	marks                      []uint8
}

// unwanted stands for all groups that were not found before there were enough.
var unwanted = &Group{}

// maxNoted is the maximum number of values of a segment for which groups are recorded by ordinal. (A variable, so that tests can
// lower it.)
var maxNoted = 1 << 14

func newGrouping(ix *Index, asked *Grouping, memory *groupMemory) *grouping {
	usual := len(asked.Known) + min(asked.New, usualGroups)
	g := &grouping{Grouping: asked, ix: ix, columns: columnsOf(ix, asked.Field), met: make([]*Group, 0, usual), full: make([]*Group, 0, usual),
		groupMemory: memory}
	for key, hits := range asked.Known {
		g.add(key, hits)
	}
	g.noted = make([][]*Group, len(g.columns))
	g.values = make([]valueBits, len(g.columns))
	g.enough = g.New == 0
	return g
}

// usualGroups is the number of groups whose memory is allocated at once: those of a page.
const usualGroups = 20

// fewGroups is the largest number of groups that are looked through for a key. (A variable, so that tests can lower it.)
var fewGroups = 32

// usualHits is how many hits of a group get their memory at once.
const usualHits = 3

// find returns the group with a key; nil: it was not met.
func (g *grouping) find(key *GroupKey) *Group {
	if g.byKey != nil {
		return g.byKey[*key]
	}
	for _, of := range g.met {
		if of.Key == *key {
			return of
		}
	}
	return nil
}

// add adds a group that misses hits.
func (g *grouping) add(key GroupKey, hits int) *Group {
	segments, places := len(g.columns), min(g.Hits, usualHits)
	if len(g.room) == 0 {
		g.room, g.roomOrds, g.roomHits = make([]Group, usualGroups), make([]int, usualGroups*segments), make([]int32, usualGroups*places)
	}
	of := &g.room[0]
	*of = Group{Key: key, Hits: g.roomHits[:0:places], Ords: g.roomOrds[:segments:segments], missing: hits}
	g.room, g.roomOrds, g.roomHits = g.room[1:], g.roomOrds[segments:], g.roomHits[places:]
	g.met = append(g.met, of)
	switch {
	case g.byKey != nil:
		g.byKey[key] = of
	case len(g.met) > fewGroups:
		g.byKey = make(map[GroupKey]*Group, 2*len(g.met))
		for _, of := range g.met {
			g.byKey[of.Key] = of
		}
	}
	if hits > 0 {
		g.open++
	} else {
		g.full = append(g.full, of)
	}
	return of
}

// wants reports whether a group misses hits, or is not met yet.
func (g *grouping) wants() bool { return g.new < g.New || g.open > 0 }

// misses returns an upper bound of the number of hits that fill all groups.
func (g *grouping) misses() int {
	missing := (g.New - g.new) * g.Hits
	for _, of := range g.met {
		missing += of.missing
	}
	return missing
}

// turned reports, once, whether there have become enough groups: from then on, all other documents can be left out.
func (g *grouping) turned() bool {
	turns := g.new == g.New && !g.enough
	g.enough = g.enough || turns
	return turns
}

// note returns the groups of the values of a segment. It creates the list for the first document of the segment. A group is nil until
// it is looked up. The list is nil if no document has the attribute, or if the segment has more than maxNoted values.
func (g *grouping) note(seg int) []*Group {
	if c := g.columns[seg]; g.noted[seg] == nil && c != nil && c.Numbers()+c.Strings() <= maxNoted {
		g.noted[seg] = make([]*Group, c.Numbers()+c.Strings())
	}
	return g.noted[seg]
}

// keep reports whether a document is a hit of a group that missed one: then it is the n-th hit, from 0.
func (g *grouping) keep(seg int, row segment.Row, n int) (kept bool) {
	noted := g.note(seg)
	if noted == nil {
		g.keys = g.columns.AppendKeys(g.keys[:0], seg, row)
		for _, key := range g.keys {
			kept = g.give(g.group(key), n) || kept
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
			setOrdinal(seg, noted[at], int(ord))
		}
		kept = g.give(noted[at], n) || kept
	}
	if !met {
		kept = g.give(g.group(GroupKey{}), n)
	}
	return kept
}

// group returns the group with a key, which it meets if there are not enough.
func (g *grouping) group(key GroupKey) *Group {
	of := g.find(&key)
	switch {
	case of != nil:
		return of
	case g.new == g.New:
		return unwanted
	}
	g.new++
	return g.add(key, g.Hits)
}

// give gives a group the n-th hit, and reports whether it missed one.
func (g *grouping) give(of *Group, n int) bool {
	if of.missing == 0 {
		return false
	}
	of.Hits = append(of.Hits, int32(n))
	if of.missing--; of.missing == 0 {
		g.open--
		g.full = append(g.full, of)
	}
	return true
}

// place returns the bit of a group in the valueBits of a segment; −1: no document has its key. It looks the key up once. There is a column.
func (g *grouping) place(seg int, of *Group) int {
	c := g.columns[seg]
	if of.Key.Kind == NoKey {
		return c.Numbers() + c.Strings()
	}
	if of.Ords[seg] == 0 {
		setOrdinal(seg, of, g.columns.Ordinal(seg, &of.Key))
	}
	at := of.Ords[seg] - 2
	if at >= 0 && of.Key.Kind == TextKey {
		at += c.Numbers()
	}
	return at
}

// setOrdinal notes what GroupColumns.Ordinal returns for the key of a group.
func setOrdinal(seg int, of *Group, ord int) {
	if of != unwanted {
		of.Ords[seg] = ord + 2
	}
}
