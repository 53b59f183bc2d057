package search

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"svc/internal/aggregate"
	"svc/internal/numeric"
	"svc/internal/selection"
	"svc/internal/settings"
)

// Asked lists the members that a remote was asked for. Other members of its answer are ignored.
type Asked struct {
	Hits     int // at most
	Queries  int
	Metadata bool // which indexes answered
	Vectors  bool // the vectors that queries searched with
	Hidden   bool // values of hits that are not displayed
	Facets   []AskedFacets
	// Aggregations are those whose states it returns; nil: none.
	Aggregations *aggregate.Request
	Groups       int // of hits, at most; 0: hits are not grouped
	GroupHits    int // of a group, at most
}

// AskedFacets are the facets of one index.
type AskedFacets struct {
	UID   string
	Names []string
}

// Asked returns what AppendRemote requests from a remote for the given number of queries. vectors says whether one of them requests
// vectors.
func (r *FederatedRequest) Asked(facets []IndexFacets, queries int, vectors bool) Asked {
	a := Asked{Hits: r.asksFor(), Queries: queries, Metadata: r.Metadata, Vectors: vectors, Hidden: r.Distinct != nil || r.parts.distinct(), Aggregations: r.Aggregations}
	if r.GroupBy != nil {
		a.Groups, a.GroupHits = max(1, min(r.asksFor(), math.MaxInt32)), r.GroupBy.Hits
		a.Hits = a.Groups * a.GroupHits
	}
	for _, f := range facets {
		a.Facets = append(a.Facets, AskedFacets{f.View.UID, f.Names})
	}
	return a
}

// asksFor returns how many hits, or groups, are requested from a remote.
func (r *FederatedRequest) asksFor() int {
	if r.GroupKeys != nil {
		return len(r.GroupKeys)
	}
	return r.until()
}

// until returns how many hits a remote sends at most: up to the page's end, or Least.
func (r *FederatedRequest) until() int {
	offset, limit, _ := r.page()
	return max(offset+limit, r.Least)
}

// facetsOf returns the facets asked for of an index, or nil.
func (a *Asked) facetsOf(uid []byte) *AskedFacets {
	i := slices.IndexFunc(a.Facets, func(f AskedFacets) bool { return f.UID == string(uid) })
	if i < 0 {
		return nil
	}
	return &a.Facets[i]
}

// has reports whether a facet was asked for.
func (a *AskedFacets) has(facet string) bool {
	return slices.ContainsFunc(a.Names, func(name string) bool {
		return name == "*" || selection.Covers(name, facet) || isPattern(name) && settings.Covers(name, facet)
	})
}

// Reading limits the parsing of an answer. The parser charges each allocation in advance, because a few bytes of text can become many
// bytes of values. The zero Reading has no limits.
type Reading struct {
	Hold  func(bytes int64) error // charges bytes to an account; may be nil
	Yield func() error            // is called at short intervals; its error ends the parsing; may be nil

	spare int // bytes charged but not allocated yet
	steps int // since the last Yield
	ended error
}

const (
	chargedAtOnce = 16 << 10 // bytes; smaller charges are combined
	yieldSteps    = 256
)

// Ended returns the error of Yield or Hold that ended the parsing early. It is nil if the answer itself decided the outcome.
func (r *Reading) Ended() error { return r.ended }

// Charge charges bytes, or releases them if the number is negative. Its error is that of Hold, and stays.
func (r *Reading) Charge(bytes int64) error {
	if r.ended == nil && r.Hold != nil {
		r.ended = r.Hold(bytes)
	}
	return r.ended
}

// Wait calls Yield. Its error sticks.
func (r *Reading) Wait() error {
	if r.ended == nil && r.Yield != nil {
		r.ended = r.Yield()
	}
	return r.ended
}

// make charges bytes that the caller is about to allocate. Its error is that of Hold, and stays.
func (r *Reading) make(bytes int) error {
	if r.ended != nil {
		return r.ended
	}
	if r.spare -= bytes; r.spare >= 0 {
		return nil
	}
	more := max(-r.spare, chargedAtOnce)
	if r.Charge(int64(more)) == nil {
		r.spare += more
	}
	return r.ended
}

// step is called for each item. It yields every yieldSteps items.
func (r *Reading) step() error {
	if r.ended != nil {
		return r.ended
	}
	if r.steps++; r.steps >= yieldSteps {
		r.steps = 0
		return r.Wait()
	}
	return nil
}

// makeRoom returns list with room for n more items of the given size, and charges the growth.
func makeRoom[T any](r *Reading, list []T, n, bytes int) ([]T, error) {
	if cap(list)-len(list) >= n {
		return list, nil
	}
	grown := max(len(list)+n, 2*cap(list), 4)
	if err := r.make(grown * bytes); err != nil {
		return list, err
	}
	return append(make([]T, 0, grown), list...), nil
}

// keyLength is an upper bound of the length of text.FacetKey(s): a ligature becomes many letters.
func keyLength(s []byte) int {
	if !ascii(s) {
		return 12*len(s) + 64
	}
	return len(s)
}

// keyBytes is an upper bound of what text.FacetKey(s) allocates besides its result.
func keyBytes(s []byte) int {
	if !ascii(s) {
		return 36*len(s) + 64
	}
	return 0
}

func ascii(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// addSaturated adds two counts that are not negative. Remotes may send any count, so the sum could overflow.
func addSaturated(a, b int) int {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt
}

// maxNumber is the longest number of an answer in bytes.
const maxNumber = 400

var errNumber = errors.New("one of its numbers is too long")

// readCount parses a count of hits, or milliseconds. Values above most become most.
func readCount(number []byte, most int) (int, error) {
	if len(number) > maxNumber {
		return 0, errNumber
	}
	n, err := strconv.ParseUint(string(number), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // n is the largest uint64
	}
	return int(min(n, uint64(most))), err
}

// maxSpelling is the largest spelling value of a hit, because a query has fewer words.
const maxSpelling = 1 << 20

// readSpelling parses what the accents of a hit count.
func readSpelling(number []byte) (int, error) {
	if len(number) > maxNumber {
		return 0, errNumber
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // n is the nearest int64
	}
	return int(max(-maxSpelling, min(n, maxSpelling))), err
}

// readNumber parses the number of a document.
func readNumber(number []byte) (numeric.Value, error) {
	if len(number) > maxNumber {
		return numeric.Value{}, errNumber
	}
	x, ok := numeric.Parse(string(number))
	if !ok {
		return numeric.Value{}, errNumber
	}
	return x, nil
}

// readFloat parses a finite number.
func readFloat(number []byte) (float64, error) {
	if len(number) > maxNumber {
		return 0, errNumber
	}
	return strconv.ParseFloat(string(number), 64)
}
