package positions

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
	"svc/segment/rowlist"
)

// positionBytes is how much is read to find the rows of words in some fields by their displacements.
func positionBytes(fields []segment.FieldPosting) (n int) {
	for _, f := range fields {
		n += f.PositionBytes()
	}
	return n
}

// Displaced are the rows of a segment by the displacement of one node at the levels of a batch. No sum over several nodes is less.
type Displaced struct {
	segment int
	levels  Levels
	Rows    []*roaring.Bitmap // by displacement, of each field, so that a row may stand in several; nil for none
}

// Find finds the rows like those of a batch that have a displacement. Rows that are further away, up to most, may be found, too. It
// returns false where to look for them in the whole segment reads more than so many bytes.
func (p *Displaced) Find(r *Reader, b *Batch, nodes []int, displacement, most, bytes int) bool {
	if displacement < len(p.Rows) && p.segment == b.Segment && p.levels == b.Levels {
		return true
	}
	*p = Displaced{segment: b.Segment, levels: b.Levels}
	var v *query.Node
	var fields []segment.FieldPosting
	for _, node := range nodes {
		if !r.isFrequent(b, node) || r.hasPhrases(b, node) {
			continue
		}
		of := r.nodeFields(b, node, NodeWords)
		if n := positionBytes(of); n <= bytes {
			v, fields, bytes = &r.Graph.Nodes[node], of, n-1
		}
	}
	if v != nil {
		most = min(most, 2*displacement) // they are more and more
		p.Rows = r.rowsByDisplacement(b.Segment, int(v.Start), v.Len, fields, most)
	}
	return len(p.Rows) > 0
}

// rowsByDisplacement returns the rows of a segment where words in some fields, of a node of n terms with its place at start, are no
// further than most from it, by displacement; nil where these would be too many. What is nearer in another field stands there, too.
func (r *Reader) rowsByDisplacement(seg, start, n int, fields []segment.FieldPosting, most int) []*roaring.Bitmap {
	if start >= tableStarts || n > 255/Farthest {
		return nil
	}
	nearest := fillDisplacements(&r.costs, start, n)
	if int(r.costs[max(nearest, segment.CostsApart)]) <= most {
		return nil
	}
	for len(r.byCost) <= most {
		r.byCost = append(r.byCost, nil)
	}
	lists := r.byCost[:most+1]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	for _, f := range fields {
		f.AppendByCost(lists, r.costs[:], nearest)
	}
	sets := make([]*roaring.Bitmap, len(lists))
	for displacement, list := range lists {
		if len(list) > 0 {
			sets[displacement] = rowlist.SetOf(list, r.Segments[seg].Rows())
		}
	}
	return sets
}

// Beginning returns those of some rows of a segment in which a field begins with a word or phrase as it is written, or with the first word
// of the phrase; false where that reads more than so many bytes. The rows have the word or phrase, and its place is the first one.
func (r *Reader) Beginning(node, seg int, in *roaring.Bitmap, bytes int) (*roaring.Bitmap, bool) {
	v := &r.Graph.Nodes[node]
	words, weights := v.Words[seg], r.Words
	if v.Phrase {
		p, only := v.PhraseIn(seg)
		if !only {
			return nil, false
		}
		words, weights = p.Segments[seg].Words, r.Searched
	}
	fields := fieldsIn(words[0], weights)
	if positionBytes(fields) > bytes {
		return nil, false
	}
	var found *roaring.Bitmap
	for _, f := range fields {
		r.rows = f.AppendStarting(r.rows[:0])
		if len(r.rows) == 0 {
			continue
		}
		rows := rowlist.SetOf(r.rows, r.Segments[seg].Rows())
		if v.Phrase || r.Restricted || in != v.Segments[seg].Word { // else all of them are
			rows = and(rows, in)
		}
		switch {
		case found == nil:
			found = rows
		case rows != nil:
			found = roaring.Or(found, rows)
		}
	}
	return found, true
}
