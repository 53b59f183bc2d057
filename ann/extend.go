package ann

import (
	"context"
	"fmt"
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
// base may have another scale than codes, must be valid (see Check), and is read only until Extend returns. No two of its rows may
// become the same one. o.Degree is ignored: the degree is base's. With one thread the same input always gives the same graph. If more
// than half of base's rows are dropped, or base is a small part of the whole, a new graph is built. It stops with the context's
// error.
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
	b.inherit(base, renumbered)
	nodes := make([]uint32, 0, kept)
	for i, row := range renumbered {
		if row != Dropped {
			nodes = append(nodes, uint32(i))
		}
	}
	repairing := o
	repairing.Progress = nil
	if err := each(ctx, repairing, len(nodes), func(w *walker, i int) {
		b.adopt(w, base, renumbered, nodes[i])
	}); err != nil {
		return nil, err
	}
	// A row that has lost all neighbours is inserted like the new rows.
	missing := make([]uint32, 0, rows-kept)
	for row, old := range known {
		switch {
		case !old:
			b.place(uint32(row), b.levelOf(uint32(row)))
			missing = append(missing, uint32(row))
		case b.slotsLocked(uint32(row), 0)[0] == none:
			missing = append(missing, uint32(row))
		default:
			b.offerEntry(uint32(row))
		}
	}
	if entry := renumbered[base.entry]; entry != Dropped && b.top.any && int(b.levels[entry]) == b.top.level && b.slotsLocked(entry, 0)[0] != none {
		b.top.entry = entry
	}
	if err := b.insertAll(ctx, o, len(missing), func(i int) uint32 { return missing[i] }); err != nil {
		return nil, err
	}
	return b.graph(), nil
}

// inherit places base's rows on their levels.
func (b *builder) inherit(base *Graph, renumbered []uint32) {
	heights := make([]uint8, base.rows)
	for l, lv := range base.upper {
		for _, node := range lv.nodes {
			heights[node] = uint8(l + 1)
		}
	}
	for i, row := range renumbered {
		if row != Dropped {
			b.place(row, heights[i])
		}
	}
}

// offerEntry makes the row the entry if it is higher than all before it.
func (b *builder) offerEntry(row uint32) {
	if l := int(b.levels[row]); !b.top.any || l > b.top.level {
		b.top.entry, b.top.level, b.top.any = row, l, true
	}
}

// adopt fills in the links that base's node has, on all its levels.
func (b *builder) adopt(w *walker, base *Graph, renumbered []uint32, node uint32) {
	row := renumbered[node]
	for l := range int(b.levels[row]) + 1 {
		links := neighbours(base.slots(nil, node, l))
		s := b.slotsLocked(row, l) // not shared until all rows are adopted
		whole := true
		for i, id := range links {
			s[i] = renumbered[id]
			whole = whole && s[i] != Dropped
		}
		if !whole {
			fill(s, b.diverse(b.standIns(w, base, renumbered, node, l), len(s)))
		}
	}
}

// standIns returns the rows to choose a node's neighbours from, best first:
// those it has, and those that the dropped ones lead to.
func (b *builder) standIns(w *walker, base *Graph, renumbered []uint32, node uint32, l int) []Neighbour {
	w.met.Reset(base.rows)
	w.met.Add(node)
	through := []uint32{node}
	var found []uint32
	for i := 0; i < len(through) && i <= repairThrough && len(found) < repairCandidates; i++ {
		for _, id := range neighbours(base.slots(nil, through[i], l)) {
			if !w.met.Add(id) {
				continue
			}
			if row := renumbered[id]; row == Dropped {
				through = append(through, id)
			} else {
				found = append(found, row)
			}
		}
	}
	scores := make([]int32, len(found))
	b.codes.gather(scores, b.codes.row(renumbered[node]), found)
	all := nearest{keep: len(found)}
	for i, row := range found {
		all.add(row, scores[i])
	}
	return all.sorted()
}
