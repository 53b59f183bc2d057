package aggregate

import (
	"slices"
	"time"

	"svc/internal/numeric"
)

// Limits of a request.
const (
	MaxAggregations = 100    // of a request, nested ones included
	MaxDepth        = 3      // levels
	MaxBuckets      = 10_000 // that an answer shows
	maxBands        = 100
	maxPercents     = 100
	maxName         = 200 // bytes
	defaultTerms    = 10
)

// maxGroups is the maximum number of groups of documents in a result. (A variable, so that tests can lower it.)
var maxGroups = 1_000_000

// Request is the aggregations of a request.
type Request struct {
	Set
	Text []byte // as they came, in compact JSON
}

// Set is the aggregations of a request, or of the buckets of another one, in the order of the request.
type Set []*Spec

// Spec is one aggregation.
type Spec struct {
	Name      string
	Attribute string
	Nested    Set

	kind     *kind
	limit    int       // of terms
	byKey    bool      // order of terms: by key instead of count
	rising   bool      // order of terms: ascending
	minCount int       // of buckets; 0: gaps are filled
	interval float64   // of a histogram
	offset   float64   // of a histogram
	calendar *calendar // of a dateHistogram
	zone     *time.Location
	perUnit  float64 // of dates as numbers: units a second
	percents []float64
	bands    []band
}

// band is a range of numbers: from ≤ x < to. A bound that is not given is nil.
type band struct{ from, to *numeric.Value }

// Attributes calls f for the attribute of each aggregation until it fails.
func (s Set) Attributes(f func(attribute string) error) error {
	for _, a := range s {
		if err := f(a.Attribute); err != nil {
			return err
		}
		if err := a.Nested.Attributes(f); err != nil {
			return err
		}
	}
	return nil
}

// kind is a kind of aggregation: the name of the member that names its attribute, which options it takes, and its state.
type kind struct {
	name    string
	options []string // see options
	needs   string   // an option that has no default; "": none
	exact   bool     // states merge to the same answer: sums of fractions up to about 2⁻¹⁰⁰ of the largest partial sum
	make    func(*Spec) node
}

// kinds are all kinds of aggregations. A new one is a file and a row.
var kinds []kind

func init() { // the functions refer to the table
	kinds = []kind{
		{"terms", []string{"limit", "order", "minCount", nested}, "", true, newTerms},
		{"stats", nil, "", true, newStats},
		{"percentiles", []string{"percents"}, "", false, newPercentiles},
		{"histogram", []string{"interval", "offset", "minCount", nested}, "interval", true, newHistogram},
		{"dateHistogram", []string{"interval", "timeZone", "unit", "minCount", nested}, "interval", true, newDateHistogram},
		{"range", []string{"bands", nested}, "bands", true, newRange},
		{"cardinality", nil, "", false, newCardinality},
	}
}

// nested is the option with the aggregations of each bucket.
const nested = "aggregations"

// pairs are rows of a segment, ascending, and the group of each one. If groups is nil, all are in group 0. A row in several groups
// occurs several times.
type pairs struct {
	rows, groups []uint32
	end          int // all groups are below it; 0: not known
}

// most returns a number that all groups are below.
func (p *pairs) most() int {
	switch {
	case p.groups == nil:
		return 1
	case p.end == 0 && len(p.groups) > 0:
		p.end = int(slices.Max(p.groups)) + 1
	}
	return p.end
}

// group returns the group of the row at a place.
func (p *pairs) group(i int) uint32 {
	if p.groups == nil {
		return 0
	}
	return p.groups[i]
}

// batch is how many pairs are walked at once.
const batch = 1024

// node is the state of an aggregation: a column with an entry for each group. Groups that a node has not met are empty.
type node interface {
	// open begins a segment whose column of the attribute is c.
	open(w *work, c columnOf) error
	// walk folds the values of rows into their groups.
	walk(w *work, p pairs) error
	// tally folds the values of all candidates of the segment into group 0, by their ordinals. False: only walk does that.
	tally(w *work) (bool, error)
	// merge folds the state of another node of the same Spec into this one: its group i into group to[i].
	merge(w *work, from node, to []uint32) error
	// appendJSON appends the answer for a group.
	appendJSON(r *render, group int)
	// appendPeer appends the state of groups groups, and readPeer reads it into an empty node.
	appendPeer(w *work, dst []byte, groups int) []byte
	readPeer(w *work, r Reader, groups int) error
}

// newNodes returns empty states.
func (s Set) newNodes() []node {
	nodes := make([]node, len(s))
	for i, a := range s {
		nodes[i] = a.kind.make(a)
	}
	return nodes
}
