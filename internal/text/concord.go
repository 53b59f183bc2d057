package text

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// concordRevision changes when a Concorder gets other calls for a text, apart from its words: these have the versions of pipelines.
const concordRevision = 3

// Concorder gets all words of a text, in order, and marks in between.
type Concorder interface {
	// Word is the next word, by its folded form, or the entry of a stop word, which is valid during the call.
	Word(form []byte)
	// Inner is an inner word that ends in the last word, by its folded form, which is valid during the call. A word has several
	// different ones, unless they are Chinese.
	Inner(form []byte)
	// Mark says that the text from a byte on can be segmented separately, and how. No token begins before that byte and ends after
	// it.
	Mark(at int, r Resume)
}

// markApart is the minimum number of bytes between marks. (A variable, so that tests can lower it.)
var markApart = 1 << 10

// Resume is how a text is cut from a place in it on: the script of the run of text there, and its language.
type Resume uint16

func (g group) resume() Resume { return Resume(g.script)<<8 | Resume(g.language) }

// CursorAt returns a cursor at the start of a text that is the rest of a longer one, from a mark on. More returns the same tokens as
// for the longer text.
func CursorAt(r Resume) Cursor {
	return Cursor{group: group{script(r >> 8), language(r)}, open: true}
}

// Fingerprint returns a number that changes with the calls that a Concorder gets for a text: it depends on the settings of the index
// that cut words, the locales, and the version of the program.
func (a *Analyzer) Fingerprint(l Locales) uint64 {
	b := slices.Clone(a.cuts)
	if l != nil {
		b = appendList(b, l)
	}
	if own := germanReplacement.Load(); own != nil && l.allow(deu) {
		b = appendList(b, []string{*own})
	}
	return xxhash.Sum64(b)
}

// appendCuts appends what of the settings decides on where words are cut.
func appendCuts(dst []byte, c Config) []byte {
	dst = append(dst, concordRevision)
	for _, list := range [...][]string{c.Separators, c.NonSeparators, c.Dictionary, c.StopWords} {
		dst = appendList(dst, slices.Sorted(slices.Values(list)))
	}
	return dst
}

func appendList(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	return dst
}

// IndexConcord is Index for one value of a field. It also passes the words of s, as More cuts them, to c.
func (a *Analyzer) IndexConcord(p *Positions, s []byte, l Locales, emit func(word []byte, position uint16), c Concorder) {
	p.visited = true
	if p.base > maxPosition {
		a.concord(s, l, c, nil)
		return
	}
	if len(s) > 0 {
		a.begin(p)
	}
	a.concord(s, l, c, &indexing{p: p, emit: emit, counter: counter{at: p.base}})
}

// concord passes all words of s to c, until c has enough, and to to. Either may be nil.
func (a *Analyzer) concord(s []byte, l Locales, c Concorder, to *indexing) {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	if to != nil {
		to.sc = sc
	}
	w := concording{a: a, sc: sc, to: c, index: to}
	yield := func(p piece) bool {
		w.piece(s[p.start:p.end], p)
		return true
	}
	var used *Pipelines
	if to != nil {
		used = &to.p.used
	}
	for start, marked := 0, 0; start < len(s); {
		g, n := a.firstGroup(s[start:], l, used)
		end := start + n
		plain := segmenterFor(g) == nil
		for start < end {
			next := 0
			if plain {
				next = w.plain(s, start, end, g)
			}
			if next == 0 {
				next, _ = a.stretch(s, start, end, g, yield)
			}
			if start = next; start-marked >= markApart && start < len(s) {
				marked = start
				c.Mark(start, g.resume())
			}
		}
	}
}

// concording is a walk through a text.
type concording struct {
	a     *Analyzer
	sc    *scratch
	to    Concorder
	index *indexing
	told  bool // to was told of the last piece
}

// piece takes the next piece.
func (w *concording) piece(raw []byte, p piece) {
	a := w.a
	if p.inner != whole {
		w.inner(raw, p)
		return
	}
	w.told, w.sc.parts = false, w.sc.parts[:0]
	kind := p.kind
	if kind == Word {
		kind = a.classify(w.sc, raw, p, false)
	}
	indexed := kind
	if len(a.stop) > 0 {
		indexed = a.classify(w.sc, raw, p, true)
	}
	form := w.sc.form[:0]
	var with article
	if kind == Word || indexed < Soft {
		form, with = appendForm(form, raw, p.group, nil)
		w.sc.form = form
	}
	if kind == Word {
		w.word(form, indexed == StopWord)
	}
	if w.index == nil {
		return
	}
	if !w.index.takeBoth(indexed, form, with) {
		w.index = nil
	} else if indexed == Word {
		w.index.spell(raw, form, p.group)
	}
}

// inner takes an inner word of the last piece.
func (w *concording) inner(raw []byte, p piece) {
	a, sc := w.a, w.sc
	if p.inner == across {
		if sc.form = a.appendInner(sc.form[:0], raw, p); w.told && len(sc.form) > 0 {
			w.to.Inner(sc.form)
		}
		if w.index != nil {
			w.index.inner(a, raw, p)
		}
		return
	}
	if form := a.partForm(sc, raw, p); len(form) > 0 {
		if w.told {
			w.to.Inner(form)
		}
		if w.index != nil {
			w.index.part(form)
		}
	}
}

func (w *concording) word(form []byte, stop bool) {
	if len(form) == 0 {
		return // it has no position
	}
	if stop {
		form = w.sc.entry(form)
	}
	w.to.Word(form)
	w.told = true
}

// plain handles a word of plain ASCII, as nearly all are, and the separator after it, and returns where that ends. It does the same
// as stretch. It returns 0 and does nothing for other text.
func (w *concording) plain(s []byte, start, end int, g group) int {
	a := w.a
	class := &a.class
	i, capital := start, byte(0)
	for ; i < end; i++ {
		b := s[i]
		if class[b] != classWord { // so are all that are not ASCII
			break
		}
		capital |= b ^ lower[b&0x7f]
	}
	if i == end {
		return 0
	}
	kind, size := Soft, 1
	switch class[s[i]] {
	case classSoft:
	case classHard:
		kind = Hard
	case classPattern:
		if size, kind = a.match(s[i:end]); size == 0 || kind == Word {
			return 0
		}
	default:
		return 0
	}
	if i > start {
		form := s[start:i]
		if capital != 0 {
			form = w.sc.form[:0]
			for _, b := range s[start:i] {
				form = append(form, lower[b])
			}
			w.sc.form = form
		}
		indexed := Word
		if len(a.stop) > 0 && a.isStopWord(w.sc, s[start:i]) {
			indexed = StopWord
		}
		w.word(form, indexed == StopWord)
		if w.index != nil {
			if !w.index.take(indexed, form) {
				w.index = nil
			}
		}
	}
	if w.index != nil {
		if a.stopSeparators {
			w.separator(s[i:i+size], kind, g)
		} else {
			w.index.take(kind, nil)
		}
	}
	return i + size
}

// separator emits a separator that may be a stop word, because the index treats a stop word as a word.
func (w *concording) separator(raw []byte, kind Kind, g group) {
	var form []byte
	if w.a.isStopWord(w.sc, raw) {
		kind = StopWord
		form = appendFold(w.sc.form[:0], raw, g, nil)
	}
	if !w.index.take(kind, form) {
		w.index = nil
	}
}
