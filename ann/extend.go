package ann

import (
	"context"
	"fmt"
	"slices"
)

// Dropped marks a row without a new number in the renumbering for Extend.
const Dropped = ^uint32(0)

// Limits of the search through dropped rows for their replacements.
const (
	repairThrough    = 64  // dropped rows looked through, a row and level
	repairCandidates = 256 // rows weighed, a row and level
)

// Extend builds a graph over rows of codes from the graph of some of them: base's row i becomes row renumbered[i], or is Dropped.
// Remaining rows keep their links. A row with dropped neighbours chooses again among the others and the neighbours of the dropped
// ones (A. Singh et al., "FreshDiskANN: A Fast and Accurate Graph-Based ANN Index for Streaming Similarity Search", 2021, section
// 4.4). Rows that base does not have are inserted.
//
// Of equal rows only one is linked in this way: see originals. A row that base has as a copy, and that is equal to no other now, is
// inserted, too.
//
// base may have another scale than codes, must be valid (see Check), and is read only until Extend returns. No two of its rows may
// become the same one. o.Degree is ignored: the degree is base's. With one thread the same input always gives the same graph. If more
// than half of base's rows are dropped, base is a small part of the whole, or an older program linked many equal rows, a new graph is
// built. It stops with the context's error.
func Extend(ctx context.Context, base *Graph, renumbered []uint32, codes Codes, o BuildOptions) (*Graph, error) {
	if len(renumbered) != base.rows {
		return nil, fmt.Errorf("%d rows are renumbered, the graph has %d", len(renumbered), base.rows)
	}
	o.Degree = base.degree
	b, err := newBuilder(codes, o)
	if err != nil {
		return nil, err
	}
	rows := codes.Rows()
	known := make([]bool, rows)
	kept := 0
	for _, row := range renumbered {
		if row == Dropped {
			continue
		}
		if int(row) >= rows || known[row] {
			return nil, fmt.Errorf("row %d of %d is outside, or named twice", row, rows)
		}
		known[row] = true
		kept++
	}
	if kept == 0 || kept < base.rows/2 || kept < rows/8 {
		return Build(ctx, codes, o)
	}
	bases := base.codes
	bases.Bytes = bases.Bytes[:base.rows*bases.Stride]
	a := &adoption{builder: b, base: base, original: originals(bases, nil), renumbered: renumbered}
	if a.linksCopies() {
		return Build(ctx, codes, o)
	}
	b.original = originals(codes, known)
	nodes := a.inherit()
	repairing := o
	repairing.Progress = nil
	if err := each(ctx, repairing, len(nodes), func(w *walker, i int) {
		a.adopt(w, nodes[i])
	}); err != nil {
		return nil, err
	}
	// A row that has lost all neighbours is inserted like the new rows.
	missing := make([]uint32, 0, rows-kept)
	linked := 0
	for row, old := range known {
		switch {
		case isCopy(b.original, uint32(row)):
			continue
		case !old:
			b.place(uint32(row), b.levelOf(uint32(row)))
			missing = append(missing, uint32(row))
		case b.slotsLocked(uint32(row), 0)[0] == none:
			missing = append(missing, uint32(row))
		default:
			b.offerEntry(uint32(row))
			linked++
		}
	}
	if entry := renumbered[base.entry]; entry != Dropped && b.top.any && int(b.levels[entry]) == b.top.level && b.slotsLocked(entry, 0)[0] != none {
		b.top.entry = entry
	}
	if err := b.insertAll(ctx, o, missing, linked); err != nil {
		return nil, err
	}
	b.hang()
	return b.graph(), nil
}

// adoption gives a builder the links of a base.
type adoption struct {
	*builder
	base       *Graph
	original   []uint32 // of base's rows, by base's codes; nil: no rows are equal
	renumbered []uint32
}

// linksCopies reports whether an older program built the base, which linked copies like other rows, and many rows are copies.
func (a *adoption) linksCopies() bool {
	if a.original == nil || len(a.base.upper) == 0 {
		return false
	}
	copies := 0
	for _, node := range a.base.upper[0].nodes {
		if isCopy(a.original, node) {
			copies++
		}
	}
	return copies > len(a.base.upper[0].nodes)/64
}

// inherit places base's rows on their levels, and returns those that keep their links: originals that still are originals.
func (a *adoption) inherit() (nodes []uint32) {
	heights := make([]uint8, a.base.rows)
	for l, lv := range a.base.upper {
		for _, node := range lv.nodes {
			heights[node] = uint8(l + 1)
		}
	}
	for i, row := range a.renumbered {
		switch {
		case row == Dropped || isCopy(a.builder.original, row):
		case isCopy(a.original, uint32(i)):
			a.place(row, a.levelOf(row))
		default:
			a.place(row, heights[i])
			nodes = append(nodes, uint32(i))
		}
	}
	return nodes
}

// offerEntry makes the row the entry if it is higher than all before it.
func (b *builder) offerEntry(row uint32) {
	if l := int(b.levels[row]); !b.top.any || l > b.top.level {
		b.top.entry, b.top.level, b.top.any = row, l, true
	}
}

// to returns the row to which a link of base to one of its rows leads now, or Dropped.
func (a *adoption) to(id uint32) uint32 {
	if a.original != nil && a.renumbered[a.original[id]] != Dropped {
		id = a.original[id]
	}
	row := a.renumbered[id]
	if row != Dropped && a.builder.original != nil {
		row = a.builder.original[row]
	}
	return row
}

// takes reports whether a row on a level may get a link to another one. Links to copies lead to originals, which may be the row itself,
// or have been met before, or not be on the level.
func (a *adoption) takes(row, to uint32, l int, met []uint32) bool {
	if a.original == nil && a.builder.original == nil {
		return true
	}
	return to != row && int(a.levels[to]) >= l && !slices.Contains(met, to)
}

// adopt fills in the links that base's node has, on all its levels.
func (a *adoption) adopt(w *walker, node uint32) {
	row := a.renumbered[node]
	for l := range int(a.levels[row]) + 1 {
		s := a.slotsLocked(row, l) // not shared until all rows are adopted
		n, whole := 0, true
		for _, id := range neighbours(a.base.slots(nil, node, l)) {
			to := a.to(id)
			if to == Dropped {
				whole = false
				break
			}
			if a.takes(row, to, l, s[:n]) {
				s[n] = to
				n++
			}
		}
		if !whole {
			fill(s, a.diverse(a.standIns(w, node, l), len(s)))
		}
	}
}

// standIns returns the rows to choose a node's neighbours from, best first:
// those it has, and those that the dropped ones lead to.
func (a *adoption) standIns(w *walker, node uint32, l int) []Neighbour {
	w.met.Reset(a.base.rows)
	w.met.Add(node)
	own := a.renumbered[node]
	through := []uint32{node}
	var found []uint32
	for i := 0; i < len(through) && i <= repairThrough && len(found) < repairCandidates; i++ {
		for _, id := range neighbours(a.base.slots(nil, through[i], l)) {
			if !w.met.Add(id) {
				continue
			}
			if row := a.to(id); row == Dropped {
				through = append(through, id)
			} else if a.takes(own, row, l, found) {
				found = append(found, row)
			}
		}
	}
	scores := make([]int32, len(found))
	a.codes.gather(scores, a.codes.row(own), found)
	all := nearest{keep: len(found)}
	for i, row := range found {
		all.add(row, scores[i])
	}
	return all.sorted()
}
