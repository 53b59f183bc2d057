package analytics

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"svc/internal/jsontext"
)

// What bounds the memory of an hour.
const (
	maxQueries = 10_000 // distinct queries, by index
	maxFilters = 2_000
	maxRests   = 1_000 // indexes with a rest of their own; the rests of all others are counted together

	maxQueryBytes  = 128 // of a query; longer ones are cut
	maxFilterBytes = 256

	cutMark = "…"

	stripeCount = 64
)

// kind is the kind of event that an entry counts. Its values are stored in files.
type kind uint8

const (
	queryKind  kind = iota // a query in an index
	filterKind             // a filter in an index
	restOf                 // added to one of the others: all queries, or filters, of an index that have no entries
	kinds      = 2 * restOf
)

// Counts are the figures of a query or a filter. All except longest are sums.
type Counts struct {
	Searches    uint64 `json:"searches"`
	None        uint64 `json:"none,omitempty"`        // searches without hits
	Micros      uint64 `json:"micros,omitempty"`      // that searches took
	Longest     uint64 `json:"longest,omitempty"`     // of the slowest search, in µs
	Clicks      uint64 `json:"clicks,omitempty"`      // all
	Clicked     uint64 `json:"clicked,omitempty"`     // searches with a click
	Conversions uint64 `json:"conversions,omitempty"` // all
	Converted   uint64 `json:"converted,omitempty"`   // searches with a conversion
	Positioned  uint64 `json:"positioned,omitempty"`  // clicks with a position
	Positions   uint64 `json:"positions,omitempty"`   // sum of those
}

// numbers are all Counts, in the order in which the journal has them.
func (c *Counts) numbers() [10]*uint64 {
	return [...]*uint64{&c.Searches, &c.None, &c.Micros, &c.Longest, &c.Clicks, &c.Clicked, &c.Conversions, &c.Converted, &c.Positioned, &c.Positions}
}

func (c *Counts) add(n *Counts) {
	c.Searches += n.Searches
	c.None += n.None
	c.Micros += n.Micros
	c.Longest = max(c.Longest, n.Longest)
	c.Clicks += n.Clicks
	c.Clicked += n.Clicked
	c.Conversions += n.Conversions
	c.Converted += n.Converted
	c.Positioned += n.Positioned
	c.Positions += n.Positions
}

// raise makes each count at least that of n. Both count the same searches, at different times.
func (c *Counts) raise(n *Counts) {
	own, other := c.numbers(), n.numbers()
	for i := range own {
		*own[i] = max(*own[i], *other[i])
	}
}

// entry is a query or a filter with its Counts.
type entry struct {
	key     string
	hash    uint64
	changed bool // since the last write
	Counts
}

// A key is a kind, the uid of an index, a zero byte and the text.

func appendKey(dst []byte, k kind, index string) []byte {
	return append(append(append(dst, byte(k)), index...), 0)
}

// restKey is the key of what has no entries of its own.
func restKey(k kind, index string) string { return string(appendKey(nil, restOf+k, index)) }

func splitKey(key string) (k kind, index, text string) {
	index, text, _ = strings.Cut(key[1:], "\x00")
	return kind(key[0]), index, text
}

// validKey reports whether a key of a file has a valid form.
func validKey(key string) bool {
	return len(key) > 1 && kind(key[0]) < kinds && strings.IndexByte(key, 0) >= 0 && strings.IndexByte(key[1:], 0) >= 0 && utf8.ValidString(key)
}

// table has the entries of an hour.
type table struct {
	seed     maphash.Seed
	distinct [kinds]atomic.Int64 // entries of each kind
	stripes  [stripeCount]stripe
}

type stripe struct {
	mu      sync.Mutex
	entries map[uint64]*entry // by the hash of their keys
	changed []*entry
	_       [24]byte // the next stripe is in another cache line
}

func (t *table) init(seed maphash.Seed) {
	t.seed = seed
	for i := range t.stripes {
		t.stripes[i].entries = map[uint64]*entry{}
	}
}

var most = [kinds]int64{queryKind: maxQueries, filterKind: maxFilters, restOf + queryKind: maxRests, restOf + filterKind: maxRests}

// add adds to the entry of a key, which is created if there is room. It returns the hash of the key. ok is false if there is no room.
func (t *table) add(key []byte, n *Counts) (hash uint64, ok bool) {
	hash = maphash.Bytes(t.seed, key)
	s := &t.stripes[hash%stripeCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[hash]
	switch {
	case e == nil:
		distinct := &t.distinct[key[0]]
		if distinct.Add(1) > most[key[0]] {
			distinct.Add(-1)
			return 0, false
		}
		e = &entry{key: string(key), hash: hash}
		s.entries[hash] = e
	case e.key != string(key): // the hashes of two keys are the same
		return 0, false
	}
	e.add(n)
	s.change(e)
	return hash, true
}

// change notes that an entry is to be written. s.mu is held.
func (s *stripe) change(e *entry) {
	if !e.changed {
		e.changed = true
		s.changed = append(s.changed, e)
	}
}

// addRest adds to the rest of an index, or to the common rest if there is no room.
func (t *table) addRest(k kind, index string, n *Counts) {
	var buf [maxKeyBytes]byte
	if _, ok := t.add(appendKey(buf[:0], restOf+k, index), n); !ok {
		t.put(restKey(k, ""), *n)
	}
}

// put adds to the entry of a key whether there is room or not.
func (t *table) put(key string, n Counts) {
	hash := maphash.String(t.seed, key)
	s := &t.stripes[hash%stripeCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[hash]
	if e == nil {
		e = &entry{key: key, hash: hash}
		s.entries[hash] = e
		t.distinct[key[0]].Add(1)
	}
	e.add(&n)
	s.change(e)
}

// take removes all entries, and returns them.
func (t *table) take() []*entry {
	return t.remove(func(*entry) bool { return true })
}

// remove removes entries, and returns them.
func (t *table) remove(which func(*entry) bool) (removed []*entry) {
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		s.changed = s.changed[:0]
		for hash, e := range s.entries {
			switch {
			case which(e):
				delete(s.entries, hash)
				t.distinct[e.key[0]].Add(-1)
				removed = append(removed, e)
			case e.changed:
				s.changed = append(s.changed, e)
			}
		}
		s.mu.Unlock()
	}
	return removed
}

// copies returns copies of all entries.
func (t *table) copies() []*entry {
	var all []*entry
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		for _, e := range s.entries {
			c := *e
			all = append(all, &c)
		}
		s.mu.Unlock()
	}
	return all
}

// Search is a search that was answered.
type Search struct {
	Index  string
	Query  string
	Filter []byte // as it was sent, in JSON or as it is in a query string; nil: none
	None   bool   // nothing matches
	Took   time.Duration
	At     time.Time

	Request  [16]byte // its requestUid
	Position int      // among the searches with this requestUid, from 0
}

// Bytes is how much memory a search takes.
func (q *Search) Bytes() int { return len(q.Index) + len(q.Query) + len(q.Filter) + 160 }

// maxKeyBytes is the length of the longest key: an index uid has at most 400 bytes.
const maxKeyBytes = 1 + 400 + 1 + max(maxQueryBytes, maxFilterBytes) + utf8.UTFMax + len(cutMark)

// Count counts a search. It allocates nothing if its query and its filter were counted in this hour.
func (r *Recorder) Count(q *Search) {
	micros := uint64(max(q.Took, 0) / time.Microsecond)
	n := Counts{Searches: 1, Micros: micros, Longest: micros}
	if q.None {
		n.None = 1
	}
	var buf [maxKeyBytes]byte
	key := appendKey(buf[:0], queryKind, q.Index)
	hash, ok := r.live.add(appendText(key, q.Query, maxQueryBytes, folded), &n)
	if ok {
		r.requests.add(q, hash)
	} else {
		r.folded.Add(1)
		r.live.addRest(queryKind, q.Index, &n)
	}
	if len(q.Filter) == 0 {
		return
	}
	key = appendKey(buf[:0], filterKind, q.Index)
	start := len(key)
	if key = appendFilter(key, q.Filter); len(key) == start {
		return
	}
	if _, ok := r.live.add(key, &n); !ok {
		r.live.addRest(filterKind, q.Index, &n)
	}
}

// appendFilter appends the text of a filter: the content of a JSON string without its quotes, or another value as sent.
func appendFilter(dst, filter []byte) []byte {
	if filter[0] != '"' {
		return appendText(dst, filter, maxFilterBytes, asSent)
	}
	var buf [4 * maxFilterBytes]byte // the part beyond is cut off anyway
	if end := len(filter) - 1; end > 0 {
		filter = filter[1:end]
	}
	text := jsontext.AppendUnescaped(buf[:0], filter[:wholeEscapes(filter, 3*maxFilterBytes)])
	return appendText(dst, text, maxFilterBytes, asSent)
}

// wholeEscapes returns where to cut the inside of a JSON string to about most bytes, so that no escape sequence is cut.
func wholeEscapes(s []byte, most int) int {
	if len(s) <= most {
		return len(s)
	}
	i := 0
	for i < most {
		if s[i] == '\\' {
			i++
			if i < len(s) && s[i] == 'u' {
				i += 4
			}
		}
		i++
	}
	return min(i, len(s))
}

// letters is a table for normalising counted texts: what each ASCII character becomes, where 0 stands for a space, and each other
// character.
type letters struct {
	ascii [utf8.RuneSelf]byte
	other func(rune) rune
}

func lettersBy(of func(rune) rune) *letters {
	l := &letters{other: of}
	for c := range rune(len(l.ascii)) {
		if !blank(c) {
			l.ascii[c] = byte(of(c))
		}
	}
	return l
}

var (
	folded = lettersBy(unicode.ToLower)
	asSent = lettersBy(func(c rune) rune { return c })
)

func blank(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }

// appendText appends a text in its counted form: with single spaces, trimmed, and cut to most bytes.
func appendText[T string | []byte](dst []byte, text T, most int, by *letters) []byte {
	start, space := len(dst), false
	for i := 0; i < len(text); {
		end := len(dst)
		if c := text[i]; c < utf8.RuneSelf {
			i++
			letter := by.ascii[c]
			if letter == 0 {
				space = end > start
				continue
			}
			if space {
				dst, space = append(dst, ' '), false
			}
			dst = append(dst, letter)
		} else {
			c, size := utf8.DecodeRuneInString(string(text[i:min(len(text), i+utf8.UTFMax)]))
			i += size
			if blank(c) {
				space = end > start
				continue
			}
			if space {
				dst, space = append(dst, ' '), false
			}
			dst = utf8.AppendRune(dst, by.other(c))
		}
		if len(dst)-start > most {
			return append(dst[:end], cutMark...)
		}
	}
	return dst
}
