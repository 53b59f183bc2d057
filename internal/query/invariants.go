package query

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
)

// checkGraph checks that the nodes of a graph are in order, cover existing terms, and fit the limits. It is called only under
// invariant.Enabled.
func checkGraph(g *Graph) {
	if len(g.Terms) > MaxTerms || len(g.Nodes) > MaxNodes {
		invariant.Fail("a graph has %d terms and %d nodes, at most %d and %d are allowed", len(g.Terms), len(g.Nodes), MaxTerms, MaxNodes)
	}
	for i := range g.Terms {
		if t := &g.Terms[i]; t.End < t.Start || i > 0 && t.Start <= g.Terms[i-1].End {
			invariant.Fail("term %d stands from %d to %d, behind one that ends at %d", i, t.Start, t.End, g.Terms[max(0, i-1)].End)
		}
	}
	joined := 0
	for k := range g.Nodes {
		v := &g.Nodes[k]
		if v.Len > maxGram {
			joined++
		}
		if v.Len < 1 || v.Term+v.Len > len(g.Terms) || v.Start != g.Terms[v.Term].Start || v.End != g.Terms[v.Term+v.Len-1].End {
			invariant.Fail("node %d covers terms %d to %d of %d, at %d to %d", k, v.Term, v.Term+v.Len, len(g.Terms), v.Start, v.End)
		}
		if k > 0 {
			if o := &g.Nodes[k-1]; o.Term > v.Term || o.Term == v.Term && o.Len >= v.Len {
				invariant.Fail("node %d covers terms from %d, comes behind one that covers them from %d", k, v.Term, o.Term)
			}
		}
		checkMatch(g.ix, v)
	}
	if joined > maxJoined {
		invariant.Fail("a graph has %d nodes of more than %d terms, at most %d are allowed", joined, maxGram, maxJoined)
	}
}

// checkMatch checks that each row of a match is at one level, and all of them in Any.
func checkMatch(ix *Index, v *Node) {
	if len(v.Segments) != len(ix.Segments) {
		invariant.Fail("%q matches in %d segments of %d", v.Key, len(v.Segments), len(ix.Segments))
	}
	for seg := range v.Segments {
		r, rows := &v.Segments[seg], ix.Segments[seg].Rows()
		sum := uint64(0)
		all := roaring.New()
		for level, at := range r.At {
			sum += at.GetCardinality()
			all.Or(at)
			if level >= v.Sought && !at.IsEmpty() {
				invariant.Fail("%q has rows of segment %d at level %d, which nobody looked for", v.Key, seg, level)
			}
		}
		switch {
		case all.GetCardinality() != sum:
			invariant.Fail("%q has rows of segment %d at two levels", v.Key, seg)
		case !all.Equals(r.Any):
			invariant.Fail("%q has %d rows of segment %d, and %d at its levels", v.Key, r.Any.GetCardinality(), seg, sum)
		case sum > 0 && int(all.Maximum()) >= rows, !r.Word.IsEmpty() && int(r.Word.Maximum()) >= rows:
			invariant.Fail("%q has a row of segment %d, which has %d", v.Key, seg, rows)
		case r.Piece == 0 && sum > 0:
			invariant.Fail("%q has rows of segment %d without a number for them", v.Key, seg)
		}
	}
}
