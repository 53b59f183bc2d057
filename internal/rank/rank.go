// Package rank orders the documents that a query finds: it returns the first k, with scores and their details.
//
// Ranking is lexicographic. Each rule gives a document a cost; documents compare by the cost of the first rule, then of
// the second, and last by their ids. Ranking is a best-first search over sets of documents that is pulled (planner.go).
// The planner takes the set with the least key. If all rules have been asked, its documents are the next ones.
// Otherwise the next rule divides it into parts, the best first. The page pulls until it is full (page.go). Costs
// compare across segments, so sets span all of them.
//
// A kind of rule is a type in a file of its own (rule.go, rule_*.go). A rule lists access paths that split a bucket
// into sets, each with an effort in nanoseconds (effort.go), and the path with the least effort is taken. Large buckets
// are bitmaps by segment. They are split by set operations, by the values of a column, or in rings around a point
// (rings.go). Other paths use cached costs (costclasses.go, costsums.go), or top-k pruning with bounds (pruner.go,
// near*.go). Other buckets are lists of rows whose costs are computed one by one from columns and positions (list.go,
// evaluate.go, judge.go). Package positions reads positions. docs/RANKING.md has all paths and a worked example.
//
// Caveats:
//   - No rule looks at the type of another one. What others have to know about a rule is a trait.
//   - Costs depend on the path through the query graph. A rule may drop paths of a document, and later rules see the rest.
//   - When time is over, the rest of a bucket follows in the order of ids, and the result is not cached.
//   - The number of ranks of a rule, by which scores divide, belongs to a bucket.
//   - A Plan records the paths that ran. Tests of a path assert that it ran.
package rank

import (
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/text"
	"svc/segment"
)

// Index is what ranking knows of an index view. It is shared by the searches on the view.
type Index = query.Index

// SortKey is one entry of the sort parameter: a field, a point, or a field of objects.
type SortKey struct {
	Field    string
	Geo      bool
	Lat, Lng float64
	Desc     bool
	Elements Elements // documents that contribute the values of the field; nil: the documents themselves
}

// Elements are objects inside documents, some of which are chosen.
type Elements interface {
	// Value returns the sort value of a document: the first of the values of its chosen objects.
	Value(seg int, row uint32, desc bool) SortValue
	// String identifies the chosen objects and the attribute that gives their values.
	String() string
	// Strays reports whether other objects will be chosen once a document has a field that none has yet.
	Strays() bool
}

// Request is one ranking job.
type Request struct {
	Universe   []*roaring.Bitmap // by segment: the live rows that are allowed; nil: what Filter says; not modified
	Filter     Filter            // nil: all live rows are allowed
	Counted    *Allowed          // documents that scores depend on, those of Universe or Filter among them; nil: these alone. See counted.go
	Live       []*roaring.Bitmap // by segment: the live rows; nil: they are looked up; not modified
	Query      string            // empty: placeholder
	Strategy   query.Strategy
	Locales    text.Locales // of the parameter; nil when absent
	SearchOn   []string     // attributesToSearchOn; nil when absent
	Sort       []SortKey
	Distinct   string    // field, or ""
	Grouping   *Grouping // hits are the first documents of groups; nil: all are. There is no offset, Distinct or Vectors with it
	Offset     int
	Limit      int
	PageSize   int               // hits on each page of this search; 0: no other page is requested
	Exhaustive bool              // page mode: totals are exact
	Brief      bool              // where top hits are cached, Candidates are nil, and In looks for them
	MaxTotal   int               // maxTotalHits
	WholeIfFew bool              // if fewer than MaxTotal documents are found, Hits are all of them, whatever the page, without duplicates under Distinct
	Threshold  *float64          // rankingScoreThreshold
	Scores     bool              // fill Hit.Score
	Details    bool              // fill Hit.Details
	Values     bool              // fill Hit.Values
	Deadline   time.Time         // searchCutoffMs; zero: none
	HitsOnly   bool              // Candidates, Counts and AppendKey are not needed and are not set
	Marks      bool              // Highlights will be called; else they may lack words with typos
	Stage      func(name string) // called at the end of each stage; nil: no
	Plan       *Plan             // records the access paths taken; nil: no
	Scoring    *Scoring          // of the rule score; nil: it does nothing
	Vectors    *VectorQuery      // the query and what belongs to it are not looked at; nil: keyword search
}

// skip returns how many documents come before the page.
func (r *Request) skip() int { return min(r.Offset, r.MaxTotal) }

// Hit is one ranked document.
type Hit struct {
	Segment int
	Row     segment.Row
	ID      segment.DocID
	Score   float64
	Details []byte // JSON object of _rankingScoreDetails
	Values  []ScoreValue

	// Spelling breaks the tie of hits with equal Values, and is set together with them. A word typed with accents counts −1 if the
	// document has it as typed. A word typed without accents counts 1 if all its occurrences in the document have accents.
	Spelling int
}

// Filter says which documents are allowed. Bitmaps are shared.
type Filter interface {
	// Rows returns the live rows of a segment that are allowed.
	Rows(segment int) *roaring.Bitmap

	// Among returns the rows that are allowed, including deleted ones. keep says that the result for the segment may be cached,
	// because the same question will be asked again.
	Among(segment int, rows *roaring.Bitmap, keep bool) *roaring.Bitmap

	// Key identifies the rows that the filter allows in a segment, including deleted ones. Filters that may allow other rows have other
	// keys; nil: there is no key.
	Key() []byte
}

// KeyOf appends a key that identifies the candidates in a segment. Searches whose candidates differ only by deleted rows have the
// same key.
type KeyOf func(key []byte, segment int) []byte

// Result is what a ranking found.
type Result struct {
	Hits       []Hit
	Groups     []*Group                 // of Grouping: those that were known, and others in the order of their best hits
	Candidates []*roaring.Bitmap        // by segment: what totals and facets count; nil: see In. The caller may keep but not modify them
	Counts     []int                    // number of candidates by segment; nil: all of Candidates are set
	Total      int                      // their number, at most MaxTotal
	AppendKey  KeyOf                    // of the candidates; nil: they have none
	Highlights func() *query.Highlights // what the query matched; valid as long as the view
	Degraded   bool                     // the deadline cut the ranking short
	Whole      bool                     // of WholeIfFew: Hits are all

	find  func(seg int) *roaring.Bitmap                       // see In
	among func(seg int, rows *roaring.Bitmap) *roaring.Bitmap // see Among
}

// In returns the candidates of a segment. The view is held.
func (r *Result) In(segment int) *roaring.Bitmap {
	if r.Candidates[segment] == nil {
		r.Candidates[segment] = r.find(segment)
	}
	return r.Candidates[segment]
}

// Among returns the rows of a segment that are candidates, including deleted ones. AppendKey must not be nil, and the view must be
// held.
func (r *Result) Among(segment int, rows *roaring.Bitmap) *roaring.Bitmap {
	return r.among(segment, rows)
}

// Count returns how many candidates there are in a segment.
func (r *Result) Count(segment int) int {
	if r.Counts != nil {
		return r.Counts[segment]
	}
	return cardinality(r.Candidates[segment])
}
