package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
	"svc/segment/synonym"
)

// Index is the state of an index from which a query graph is built.
type Index struct {
	Segments []segment.Live
	Settings *settings.Settings
	Fields   *settings.Fields
	Analyzer *text.Analyzer
	Older    []*text.Analyzer // of older versions that made the words of some segments
	Synonyms *synonym.Table   // of the settings
	Cache    *Cache
}

// FieldSet is a set of fields by FieldID. nil stands for all fields.
type FieldSet []bool

func (s FieldSet) Has(f segment.FieldID) bool { return s == nil || int(f) < len(s) && s[f] }

// prepared is what every query on a view needs of its settings, computed once a view.
type prepared struct {
	weights []int32
	all     FieldSet // searchable fields; nil when no other has words in a segment
	exact   FieldSet // fields in which words match only as written; nil: none
	infix   FieldSet // fields in which words also match by parts; nil: none
	numbers bool     // numbers are treated as if they stood in an exact field
	noTypos map[string]bool
	stamps  []uint32 // by segment: see SegmentCache
	spelt   []bool   // by segment: it has spellings
}

// prepared returns what queries need of the settings. The first query on a view computes it; others wait.
func (ix *Index) prepared() *prepared {
	c := ix.Cache
	if p := c.prepared.Load(); p != nil {
		return p
	}
	c.preparing.Lock()
	defer c.preparing.Unlock()
	if p := c.prepared.Load(); p != nil {
		return p
	}
	p := &prepared{}
	p.weights = make([]int32, ix.Fields.Len())
	for i := range p.weights {
		f := ix.Fields.Info(segment.FieldID(i))
		if p.weights[i] = -1; f.Searchable {
			p.weights[i] = int32(f.Weight)
		}
		if f.Searchable && f.Exact {
			if p.exact == nil {
				p.exact = make(FieldSet, ix.Fields.Len())
			}
			p.exact[i] = true
		}
		if f.Searchable && f.Infix {
			if p.infix == nil {
				p.infix = make(FieldSet, ix.Fields.Len())
			}
			p.infix[i] = true
		}
	}
	p.all = ix.searchable(p.weights)
	t := &ix.Settings.TypoTolerance
	p.numbers = t.DisableOnNumbers
	p.noTypos = make(map[string]bool, len(t.DisableOnWords))
	for _, w := range t.DisableOnWords {
		p.noTypos[text.Fold(w)] = true
	}
	c.scopes(len(ix.Segments))
	p.stamps = make([]uint32, len(ix.Segments))
	for i, s := range ix.Segments {
		p.stamps[i] = c.segments[i].Stamp(ix.stamp(p, s))
	}
	p.spelt = make([]bool, len(ix.Segments))
	for i := range p.spelt {
		p.spelt[i] = hasSpellings(ix.Segments[i], "", true)
	}
	c.prepared.Store(p)
	return p
}

// searchable returns the fields of a search in all searchable fields. Segments may have words of fields that are no longer
// searchable.
func (ix *Index) searchable(weights []int32) FieldSet {
	stale := false
	for _, s := range ix.Segments {
		stale = stale || slices.ContainsFunc(s.WordFields(), func(f segment.FieldID) bool { return weights[f] < 0 })
	}
	if !stale {
		return nil
	}
	set := make(FieldSet, len(weights))
	for i, w := range weights {
		set[i] = w >= 0
	}
	return set
}

// in returns the set for fields. It is nil for all.
func (ix *Index) in(fields FieldSet) FieldSet {
	if fields == nil {
		return ix.prepared().all
	}
	return fields
}

// budget returns how many typos a word may have.
func (ix *Index) budget(word string) int {
	t := &ix.Settings.TypoTolerance
	n := utf8.RuneCountInString(word)
	switch {
	case !t.Enabled || n < int(t.OneTypo) || ix.prepared().noTypos[word]:
		return 0
	case n < int(t.TwoTypos):
		return 1
	default:
		return 2
	}
}

// isNumber reports whether a word has numeric characters and ASCII punctuation only.
func isNumber(word []byte) bool {
	for len(word) > 0 {
		c, n := utf8.DecodeRune(word)
		if !unicode.IsNumber(c) && (c >= utf8.RuneSelf || !strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c)) {
			return false
		}
		word = word[n:]
	}
	return true
}

// tolerates reports whether a word can be meant by a misspelt or joined one at all.
func (ix *Index) tolerates(word []byte) bool { return !ix.prepared().numbers || !isNumber(word) }

// tolerant returns the fields of a set where misspelt and joined words count: the exact ones left out.
func (ix *Index) tolerant(fields FieldSet) FieldSet {
	exact := ix.prepared().exact
	if exact == nil {
		return fields
	}
	rest := make(FieldSet, len(exact))
	for i := range rest {
		rest[i] = !exact[i] && fields.Has(segment.FieldID(i))
	}
	return rest
}

// rowsIn returns the rows that have a word in one of the fields. The bitmap is shared and must not be modified.
func rowsIn(s segment.Live, p segment.Posting, fields FieldSet) *roaring.Bitmap {
	if fields == nil {
		return p.Rows()
	}
	return s.Union([]segment.Posting{p}, fields.Has)
}

// isLive reports whether a word occurs in one of the fields of a live row.
func isLive(s segment.Live, p segment.Posting, fields FieldSet) bool {
	if s.Deleted == nil || s.Deleted.IsEmpty() {
		if fields == nil {
			return p.Fields() > 0
		}
		for i := range p.Fields() {
			if fields.Has(p.Field(i).ID()) {
				return true
			}
		}
		return false
	}
	for i := range p.Fields() {
		f := p.Field(i)
		if !fields.Has(f.ID()) {
			continue
		}
		if rows := f.Rows(); rows.AndCardinality(s.Deleted) < rows.GetCardinality() {
			return true
		}
	}
	return false
}

// Locales returns the languages that the localised rules of the searched
// fields name together; nil when none does.
func (ix *Index) Locales(fields FieldSet) text.Locales {
	if len(ix.Settings.LocalizedAttributes) == 0 {
		return nil
	}
	var all text.Locales
	for i := range ix.Fields.Len() {
		f := ix.Fields.Info(segment.FieldID(i))
		if f.Searchable && fields.Has(segment.FieldID(i)) {
			all = append(all, f.Locales...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Weights returns the weight of each field by FieldID, −1 for fields that are not searchable. It is shared.
func (ix *Index) Weights() []int32 { return ix.prepared().weights }
