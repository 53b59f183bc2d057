package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// beginAll makes all documents that the query finds wait, except hits.
func beginAll(s *search) {
	root := find(&s.job, nil)
	for seg := range root.rows {
		root.n += countIn(&s.findings, root, seg)
	}
	s.stage("evaluate query")
	if s.lazy.bound != nil && root.n < s.r.MaxTotal { // the total counts the others
		s.lazy.expand()
		return
	}
	s.root = root
	if s.partial = len(s.out.hits) > 0; !s.partial {
		found, n := root.rows, root.n
		if s.chosen != nil {
			found = found.and(s.chosen)
			n = found.count()
		}
		s.out.start(s, found, n)
	} else {
		s.out.candidates = root.rows
		hits := make([]entry, len(s.out.hits))
		for i, h := range s.out.hits {
			hits[i] = entry{row: uint32(h.Row), segment: uint16(h.Segment)}
		}
		root = withoutHits(&s.findings, root, s.rowsOf(hits))
	}
	s.drop(0)
	s.push(set{bucket: root})
}

// withoutHits returns the documents of a root that are not hits yet.
func withoutHits(s *findings, root *bucket, hits rows) *bucket {
	rest := root.part(rowsOfAll(s, root).andNot(hits))
	if root.byCost != nil {
		if rest.byCost, rest.less = slices.Clone(root.byCost), hits; root.raw {
			refine(s, rest.byCost)
		}
	}
	rest.raw = false
	return rest
}

// hitsAlone reports whether, among the documents that miss the most terms, only as many are needed as fill the page.
func hitsAlone(s *request) bool {
	r := s.r
	return r.HitsOnly && s.chosen == nil && r.Distinct == "" && r.Threshold == nil && len(s.rules) > 0 && s.rules[0].traits().missing
}

// find returns the bucket of all documents that the query finds and the filter allows, in some segments or, if in is nil, in all. No
// rule has judged them yet. If they are those of all segments, results of the filter are cached, and the bucket may be raw.
func find(s *job, in func(seg int) bool) *bucket {
	r, words := s.r, len(s.graph.Nodes) > 0
	sift := words && s.filters() // evaluate words first: they leave few documents
	path := allowedRows
	if words {
		path = matchedRows
	}
	if sift {
		path = filteredMatches
	}
	r.Plan.begin("", path, 0)
	defer r.Plan.end(0)
	base := make(rows, len(s.ix.Segments))
	for seg := range base {
		switch {
		case in != nil && !in(seg):
			continue
		case sift:
			base[seg] = liveRows(s, seg)
		default:
			base[seg] = allowed(s, seg)
		}
		if x := s.graph.Excluded; x != nil {
			base[seg] = roaring.AndNot(base[seg], x[seg])
		}
	}
	if !words {
		return &bucket{rows: base}
	}
	byCost, isRaw := reached(&s.findings, base, s.graph.Excluded == nil && (sift || r.Universe == nil && r.Filter == nil || s.isLive(base)))
	raw := isRaw && !sift && in == nil && hitsAlone(&s.request)
	if isRaw && !raw {
		refine(&s.findings, byCost)
	}
	if sift {
		s.stage("evaluate query")
		byCost = siftByFilter(s, byCost, in == nil)
		s.stage("evaluate filter")
	}
	b := unite(&s.findings, byCost)
	b.raw = raw
	return b
}

// among returns the documents, including deleted ones, that the query finds and the filter allows. Nothing else restricts them.
func among(s *job, r rows) rows {
	if s.filters() {
		allowed := make(rows, len(r))
		for seg, b := range r {
			if b != nil {
				allowed[seg] = s.r.Filter.Among(seg, b, false)
			}
		}
		r = allowed
	}
	if len(s.graph.Nodes) > 0 {
		byCost, _ := reached(&s.findings, r, false)
		r = unite(&s.findings, byCost).rows
	}
	return r
}

// allowed returns the live rows of a segment that the filter allows.
func allowed(s *job, seg int) *roaring.Bitmap {
	switch {
	case seg < len(s.r.Universe) && s.r.Universe[seg] != nil:
		return s.r.Universe[seg]
	case s.filters():
		rows := s.r.Filter.Rows(seg)
		s.stage("evaluate filter")
		return rows
	}
	return liveRows(s, seg)
}

func liveRows(s *job, seg int) *roaring.Bitmap {
	if s.r.Live != nil {
		return s.r.Live[seg]
	}
	return s.ix.Segments[seg].LiveRows()
}

// siftByFilter returns the documents that the filter allows. It tests a few documents one by one, because evaluating the filter for a
// whole segment takes longer, and its results would be large bitmaps. keep says that results may be cached.
func siftByFilter(s *job, byCost []rows, keep bool) []rows {
	out := make([]rows, len(byCost))
	for cost := range out {
		if byCost[cost] != nil {
			out[cost] = make(rows, len(s.ix.Segments))
		}
	}
	for seg := range s.ix.Segments {
		found := anyOf(&s.findings, byCost, seg)
		if found == nil || found.IsEmpty() {
			continue
		}
		var allowed *roaring.Bitmap
		if int(found.GetCardinality())*fewOf < s.ix.Segments[seg].Rows() {
			allowed = s.r.Filter.Among(seg, found, keep)
		} else {
			allowed = s.r.Filter.Rows(seg)
		}
		for cost, r := range byCost {
			if r != nil {
				out[cost][seg] = and(r[seg], allowed)
			}
		}
	}
	return out
}

// anyOf returns the documents of a segment that are in any of the sets, or nil if there are none.
func anyOf(s *findings, byCost []rows, seg int) (found *roaring.Bitmap) {
	for _, r := range byCost {
		switch {
		case r == nil:
		case s.nested:
			found = r[seg]
		default:
			found = or(found, r[seg])
		}
	}
	return found
}

// candidatesIn returns the documents of a segment that the query finds.
func candidatesIn(s *job, seg int) *roaring.Bitmap {
	found := find(s, func(i int) bool { return i == seg }).rows
	if found[seg] == nil {
		return roaring.New()
	}
	return found[seg]
}

// candidatesAmong returns the rows of a segment, including deleted ones, that the query finds.
func candidatesAmong(s *job, seg int, r *roaring.Bitmap) *roaring.Bitmap {
	found := make(rows, len(s.ix.Segments))
	found[seg] = r
	if found = among(s, found); found[seg] == nil {
		return roaring.New()
	}
	return found[seg]
}

// collected returns the results of the page, with a key for the candidates if they may be cached.
func collected(s *search) *Result {
	r := s.out.result()
	if s.out.distinct == nil && s.r.Threshold == nil && lasting(&s.job) {
		r.AppendKey = func(key []byte, seg int) []byte { return appendCandidates(&s.job, key, seg) }
		r.among = func(seg int, rows *roaring.Bitmap) *roaring.Bitmap { return candidatesAmong(&s.job, seg, rows) }
	}
	return r
}
