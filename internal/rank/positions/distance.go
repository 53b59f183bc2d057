package positions

// FarPair is the distance of two neighbouring terms that are not near.
const FarPair = 3

// Distances measures the distance of two neighbouring nodes in each row: 0 if v is directly after u, 1 if one word is between them or
// v is directly before u, up to FarPair. For the more frequent node it reads only the occurrences in the rows and fields of the other
// one.
func (r *Reader) Distances(b *Batch, u, v int, distances []uint32) {
	if r.denseDistances(b, u, v, distances) {
		return
	}
	l, o := &r.Left, &r.Right
	l.Last = r.Gather(l.Last[:0], b, u, PhraseEnds)
	o.First = r.Gather(o.First[:0], b, v, PhraseStarts)
	beside := *b
	switch {
	case len(l.Last)+len(o.First) > 0:
		l.Words, o.Words = r.Gather(l.Words[:0], b, u, NodeWords), r.Gather(o.Words[:0], b, v, NodeWords)
	case r.matching(b, u) <= r.matching(b, v):
		l.Words, o.Words = r.Gather(l.Words[:0], b, u, NodeWords), o.Words[:0]
		if beside.beside = l.Words; len(l.Words) > 0 {
			o.Words = r.Gather(o.Words, &beside, v, NodeWords)
		}
	default:
		l.Words, o.Words = l.Words[:0], r.Gather(o.Words[:0], b, v, NodeWords)
		if beside.beside = o.Words; len(o.Words) > 0 {
			l.Words = r.Gather(l.Words, &beside, u, NodeWords)
		}
	}
	r.SideDistances(distances)
}

// matching returns how many documents of the segment match a node at the level that counts in a batch.
func (r *Reader) matching(b *Batch, node int) uint64 {
	rows := &r.Graph.Nodes[node].Segments[b.Segment]
	if b.Fixed {
		if level := b.Levels.Of(node); level != WordOnly {
			return rows.At[level].GetCardinality()
		}
	}
	return rows.Any.GetCardinality()
}

// SideDistances measures the distances of the nodes whose occurrences are Left and Right.
func (r *Reader) SideDistances(distances []uint32) {
	for i := range distances {
		distances[i] = FarPair
	}
	l, o := &r.Left, &r.Right
	if r.byField() {
		sameField(l.Words, o.Words, distances)
		sameField(l.Last, o.Words, distances)
		sameField(l.Words, o.First, distances)
		sameField(l.Last, o.First, distances)
		return
	}
	nearest(l.Words, o.Words, true, distances)
	nearest(l.Last, o.Words, false, distances)
	nearest(l.Words, o.First, false, distances)
	nearest(l.Last, o.First, false, distances)
}

// nearest lowers the distances of rows in which an occurrence of a is up to 3 before one of b or, with both, up to 2 after it, which
// costs one more.
func nearest(a, b []uint64, both bool, distances []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i] < y {
			i++
		}
		// a[i-1] < y ≤ a[i]
		if i > 0 && sameFieldAndRow(a[i-1], y) {
			if d := uint32(y - a[i-1] - 1); d < distances[IndexOf(y)] {
				distances[IndexOf(y)] = d
			}
		}
		if !both {
			continue
		}
		j := i
		for j < len(a) && a[j] == y { // twice, where a word counts as misspelt and by a part of it
			j++
		}
		if j < len(a) && sameFieldAndRow(a[j], y) {
			if d := uint32(a[j] - y); d < distances[IndexOf(y)] {
				distances[IndexOf(y)] = d
			}
		}
	}
}

// sameField sets the distances of the rows to 0 in which a and b are in one field, even at the same position: a word is in one field
// with itself.
func sameField(a, b []uint64, distances []uint32) {
	i := 0
	for _, y := range b {
		for i < len(a) && a[i]>>16 < y>>16 {
			i++
		}
		if i < len(a) && sameFieldAndRow(a[i], y) {
			distances[IndexOf(y)] = 0
		}
	}
}
