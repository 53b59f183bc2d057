package rank

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment/rowlist"
)

// search is one ranking: the request, what the query finds, and working memory. A function takes the part that it needs; functions
// that need several parts take the search.
type search struct {
	job
	scratch
	out     page
	rounds  *rounds   // of the bucket that is searched in rounds; nil: none
	memo    *memo     // where the first hits are cached; nil: nowhere
	root    *bucket   // all documents that the query finds; nil while cached replaces it
	cached  cachedSet // the first hits that were cached
	lazy    lazySet   // documents with unexpanded typos
	partial bool      // not all documents that the query finds are ranked
	wide    bool      // the bucket being split has documents that may not be hits
}

// job is a request and what its query finds: everything that candidates depend on.
type job struct {
	request
	findings
}

// request has what the caller asks for, the rules, and the deadline.
type request struct {
	ctx    context.Context
	turn   turns.Turn // of ctx
	r      *Request
	rules  []rule
	chosen rows // documents that may be hits; nil: all that are ranked
	scored bool // scores are needed, so all rules judge every hit
	isLate bool
}

// findings are what the query finds in the segments of an index. prepare fills them; they do not change afterwards.
type findings struct {
	ix       *Index
	graph    *query.Graph   // without terms for a placeholder search
	fields   query.FieldSet // searched fields; nil: all
	ranks    []int          // by term: when it may be dropped
	docs     []rows         // by node: documents that match at any level
	matches  []bool         // by node: whether a document matches
	onlyAt   []int          // by node: the level at which all documents match; −1: at several
	byTerm   []int          // first node of each term, and the number of nodes
	grams    bool           // some n-gram matches a document
	nested   bool           // documents that miss fewer terms are also among those that miss more
	weights  []int32        // by field: weight, or −1 when it is not searched
	wordsMax uint64
	spelt    []speltWord // words whose accents may differ between documents
	typed    []byte      // how these are typed
}

// scratch is the working memory of a search, with intermediate results that are reused.
type scratch struct {
	*memory
	pos           positions.Reader
	usedWeights   []int // of the searched fields, ascending; nil: not computed yet
	stands        map[standingKey]*roaring.Bitmap
	starts        rows                // result of startingWith; nil if it did not fill the page
	startsOf      int                 // the node that starts belongs to
	declined      map[string]struct{} // keys of classes that this search does not use
	readPairs     map[pairKey][]uint8 // costs of pairs, for a bucket that is searched again and again
	readPairBytes int                 // that they take
	scores        *scorer             // nil: no rule has asked yet
}

// memory is the reusable working memory of a search.
type memory struct {
	list       lists
	sets       []set     // that wait, the least last
	stack      []verdict // verdicts of the rules on the way to the least set
	tokens     []text.Token
	inSet      []uint32    // rows of the set being read
	pruning    []costLists // of a pruner, by segment
	classified costLists   // of classes that are made
	sorting    sorting
	grouping   groupMemory
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// release forgets everything that belongs to the view, because mapped memory may be unmapped.
func (m *memory) release() {
	clear(m.tokens[:cap(m.tokens)])
	m.sorting.release()
	clear(m.grouping.keys[:cap(m.grouping.keys)])
	clear(m.stack[:cap(m.stack)])
	m.stack = m.stack[:0]
	clear(m.sets[:cap(m.sets)])
	m.sets = m.sets[:0]
	m.list.interpretations, m.list.sets, m.list.ids = nil, nil, nil
	m.list.entries.Reset()
	m.list.numbers.Reset()
	memories.Put(m)
}

// stage says what just ended.
func (s *request) stage(name string) {
	if s.r.Stage != nil {
		s.r.Stage(name)
	}
}

// late yields to other work. It reports whether the deadline has passed or the client is gone.
func (s *request) late() bool {
	if !s.isLate {
		s.isLate = s.turn.Yield() != nil || !s.r.Deadline.IsZero() && !time.Now().Before(s.r.Deadline)
	}
	return s.isLate
}

// filters reports whether the filter defines the universe.
func (s *request) filters() bool { return s.r.Universe == nil && s.r.Filter != nil }

// isLive reports whether a set is that of all live rows. It first compares bitmaps by identity with those of the request: counting is
// slow if many documents are deleted.
func (s *job) isLive(r rows) bool {
	if len(s.r.Live) == len(r) && slices.Equal(r, s.r.Live) {
		return true
	}
	return s.findings.isLive(r)
}

// isLive reports whether a set is that of all live rows.
func (s *findings) isLive(r rows) bool {
	for i, seg := range s.ix.Segments {
		n := seg.Rows()
		if seg.Deleted != nil {
			n -= int(seg.Deleted.GetCardinality())
		}
		if r[i] == nil && n > 0 || r[i] != nil && int(r[i].GetCardinality()) != n {
			return false
		}
	}
	return true
}

// live returns the rows of a set that are not deleted.
func (s *findings) live(r rows) rows {
	out := make(rows, len(r))
	for i, seg := range s.ix.Segments {
		out[i] = andNot(r[i], seg.Deleted)
	}
	return out
}

// liveOfBoth returns the rows of two sets that are not deleted.
func liveOfBoth(s *findings, a, b rows) rows {
	out := a.and(b)
	for i, seg := range s.ix.Segments {
		if r := out[i]; r != nil && seg.Deleted != nil && r.Intersects(seg.Deleted) {
			out[i], _ = less(r, seg.Deleted, r != a[i] && r != b[i])
		}
	}
	return out
}

// liveIn returns the number of live rows of a set in a segment.
func liveIn(s *findings, r rows, seg int) int {
	n := cardinality(r[seg])
	if d := s.ix.Segments[seg].Deleted; d != nil && n > 0 {
		n -= int(r[seg].AndCardinality(d))
	}
	return n
}

// rankOf returns the rank of a node: the highest of its terms.
func (s *findings) rankOf(n int) int {
	v := &s.graph.Nodes[n]
	rank := 0
	for _, r := range s.ranks[v.Term : v.Term+v.Len] {
		rank = max(rank, r)
	}
	return rank
}

// largestSegment returns the segment with the most documents, which outlives most views.
func (s *findings) largestSegment() int {
	largest := 0
	for seg := range s.ix.Segments {
		if s.ix.Segments[seg].Rows() > s.ix.Segments[largest].Rows() {
			largest = seg
		}
	}
	return largest
}

// rowsOf returns entries as a set.
func (s *findings) rowsOf(e []entry) rows {
	r := make(rows, len(s.ix.Segments))
	for i := range e {
		if r[e[i].segment] == nil {
			r[e[i].segment] = roaring.New()
		}
		r[e[i].segment].Add(e[i].row)
	}
	return r
}

// rowsIn returns the rows of a set of a segment, valid until the next call.
func (s *scratch) rowsIn(r *roaring.Bitmap) []uint32 {
	n := int(r.GetCardinality())
	s.inSet = slices.Grow(s.inSet[:0], n)[:n]
	return s.inSet[:r.ManyIterator().NextMany(s.inSet)]
}

// lessAll returns the rows of a that are in none of sets, or nil if there are none. rows is the number of rows of the segment. It may
// work on a plain bit set: removing rows from a bitmap with run compression, which frequent words use, is slow.
func (s *scratch) lessAll(a *roaring.Bitmap, sets []*roaring.Bitmap, rows int) *roaring.Bitmap {
	own := false
	for i, b := range sets {
		if a != nil && !own && a.HasRunCompression() && cardinality(a) >= rows/rowlist.BitsPer && int(a.Maximum()) < rows && a.Intersects(b) {
			bits := s.pos.Bits(rows)
			a.WriteDenseTo(bits)
			for _, b := range sets[i:] {
				for _, row := range s.rowsIn(b) {
					if w := int(row / 64); w < len(bits) {
						bits[w] &^= 1 << (row % 64)
					}
				}
			}
			if a = rowlist.FromBits(bits); a.IsEmpty() {
				return nil
			}
			return a
		}
		a, own = less(a, b, own)
	}
	return a
}

// touch reports whether node v begins in the query where u ends.
func (s *findings) touch(u, v int) bool { return s.graph.Nodes[u].End+1 == s.graph.Nodes[v].Start }

// sorting is the memory of sorts.
type sorting struct {
	values   []SortValue
	order    []int
	keys     []sortKey
	runs     []sortRun
	ordinals []uint32
	places   []uint32
	distinct positions.Stack[SortValue] // of the lists that are being ranked
	dirty    int                        // of distinct: the part beyond was never written
}

// release forgets the values, which are of the view.
func (m *sorting) release() {
	clear(m.values[:cap(m.values)])
	clear(m.runs[:cap(m.runs)])
	m.distinct.Clear(m.dirty)
	m.distinct.Reset()
	m.dirty = 0
}

// inRetry reports whether a bucket is in distinct retry.
func (s *search) inRetry() bool { return s.rounds != nil && s.rounds.retry != nil }

// leaveOut counts documents that a round removes before they are pulled. Paths that find the first documents of a bucket counted them
// among those that the round looks for, and left out later ones. Documents below a threshold need not be counted, because no later
// one scores higher.
func leaveOut(s *search, n int) {
	if s.rounds != nil {
		s.rounds.left = max(0, s.rounds.left-n)
	}
}
