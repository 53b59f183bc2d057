package format

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/query"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// Formatter makes the _formatted and _matchesPosition objects of hits. It is for one request and one goroutine.
type Formatter struct {
	Enabled bool                // hits have a _formatted object; set by New, like Shown
	Shown   selection.Selection // the paths in it

	// Foreign appends the document that a scalar at a path names, and reports whether it names one; nil: there are no foreign keys.
	Foreign func(dst, path, value []byte) (_ []byte, found bool, _ error)

	fields *settings.Fields
	scan   textScan
	pre    string
	post   string
	marker string

	highlightAll bool
	highlight    selection.Covering
	cropAll      int // words; -1: not cropped
	crop         selection.Covering
	cropWords    []int // by the place in crop

	room  int64       // memory that the answer may still use
	holds budget.Room // of out and of the spans of walker

	options map[string]*pathOptions
	last    *pathOptions   // result of the last lookup; nil: none
	paths   []*pathOptions // the values of options, by index
	cut     crop
	kept    keptCrops
	segment int         // of the current document, in the view
	row     segment.Row // and its row there
	path    []byte
	tails   []segment.Tail // of members of the current document, in order
	rest    continuation   // of the current value; nil: the value is complete
	tail    *segment.Tail  // that rest
	member  []byte         // the raw key of the current value if that is a string member of the document itself; else nil
	text    []byte
	spans   []byteSpan
	parts   []byte // of the current document
	out     []byte
	walker  positionWalker
}

// pathOptions is how the values at one path are treated.
type pathOptions struct {
	index     int
	path      string
	highlight bool
	crop      int // words; -1: not cropped
	displayed bool
	locales   text.Locales

	fingerprint uint64 // of the analysis with these locales; 0: not computed yet

	found int // index among the matches of the current document, from 1; for another document the value names another path
}

// Options say what _formatted shows, and how.
type Options struct {
	Retrieve  []string // nil: all
	Highlight []string
	Crop      []string // name, or name:words

	CropLength      int // words, for names without a number
	Marker          string
	PreTag, PostTag string
}

// New prepares formatting for documents of an index. h may be nil if there is no query. Crops look through whole texts; see Stored.
func New(in *index.Outline, r *Options, h *query.Highlights) *Formatter {
	f := &Formatter{
		fields:  in.Fields,
		scan:    textScan{find: newHighlighter(in.Analyzer, h)},
		pre:     r.PreTag,
		post:    r.PostTag,
		marker:  r.Marker,
		cropAll: -1,
		kept:    keptCrops{highlights: h},
		options: make(map[string]*pathOptions),
		room:    math.MaxInt64,
	}
	displayed := in.Settings.DisplayedAttributes
	d, known := selection.NewDisplayed(displayed), f.known(len(r.Highlight)+len(r.Crop))
	var highlight, crop []string
	for _, name := range r.Highlight {
		if name == "*" {
			f.highlightAll = true
		} else if known(name) {
			highlight = d.AppendWithin(highlight, name)
		}
	}
	for _, name := range r.Crop {
		words := min(r.CropLength, math.MaxInt32) // as behind a colon
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			if n, err := strconv.ParseUint(name[i+1:], 10, 31); err == nil {
				words = int(n)
			}
			name = name[:i]
		}
		if name == "*" {
			f.cropAll = words
		} else if known(name) {
			crop = d.AppendWithin(crop, name)
			for len(f.cropWords) < len(crop) {
				f.cropWords = append(f.cropWords, words)
			}
		}
	}
	all := f.highlightAll || f.cropAll >= 0
	f.highlight, f.crop = selection.NewCovering(highlight), selection.NewCovering(crop)
	f.cut.perfect = perfectScore(f.scan.find)
	f.Enabled = len(highlight)+len(crop) > 0 || all && (displayed == nil || len(displayed) > 0)
	shown := selection.Retrieved(in.Fields, displayed, r.Retrieve)
	switch {
	case all:
		shown = displayed
	case shown != nil:
		shown = slices.Concat(shown, highlight, crop)
	}
	f.Shown = selection.Of(shown)
	return f
}

// Stored says that the documents are those of v. Crops then use the concordances of long texts, and are cached with their segments.
func (f *Formatter) Stored(v *index.View) { f.kept.view = v }

// Charge charges memory to the account of t, and has the formatter yield to other work. Formatting ends with the errors of both.
func (f *Formatter) Charge(t turns.Turn) {
	account := t.Account()
	f.cut.turn, f.room, f.holds = t, account.Room(), budget.NewRoom(account)
	f.cut.room, f.cut.concord.room = budget.NewRoom(account), budget.NewRoom(account)
}

// known returns a function that reports whether any document has or had a path. paths is how many paths will be looked up.
func (f *Formatter) known(paths int) func(path string) bool {
	isField := func(path string) bool { _, ok := f.fields.ID(path); return ok }
	if paths <= selection.FewPaths {
		return func(path string) bool {
			if isField(path) {
				return true
			}
			for i := range f.fields.Len() {
				if selection.Covers(path, f.fields.Info(segment.FieldID(i)).Name) {
					return true
				}
			}
			return false
		}
	}
	parents := sync.OnceValue(func() map[string]struct{} {
		m := make(map[string]struct{})
		for i := range f.fields.Len() {
			name := f.fields.Info(segment.FieldID(i)).Name
			for end := range len(name) {
				if name[end] == '.' {
					m[name[:end]] = struct{}{}
				}
			}
		}
		return m
	})
	return func(path string) bool {
		if isField(path) {
			return true
		}
		_, ok := parents()[path]
		return ok
	}
}

// optionsOf returns how values at path are formatted. Options for a path also apply to the paths below it.
func (f *Formatter) optionsOf(path []byte) *pathOptions {
	if o := f.last; o != nil && o.path == string(path) { // an element of the same array
		return o
	}
	if o := f.options[string(path)]; o != nil {
		f.last = o
		return o
	}
	info := f.fields.InfoOf(string(path))
	o := &pathOptions{path: string(path), highlight: f.highlightAll, crop: -1, displayed: info.Displayed && !isVectors(path)}
	// The index analysed the field by its own rule, so matches are found by that rule, whatever the locales of the query.
	o.locales = info.Locales
	o.highlight = o.highlight || f.highlight.First(o.path) >= 0
	if i := f.crop.First(o.path); i >= 0 {
		o.crop = f.cropWords[i]
	} else {
		o.crop = f.cropAll
	}
	o.index = len(f.paths)
	f.paths = append(f.paths, o)
	f.options[o.path], f.last = o, o
	return o
}

// isVectors reports whether path has embeddings, which are not text.
func isVectors(path []byte) bool { return selection.Covers(settings.VectorsField, string(path)) }

// Brief reports whether the beginning of a long string is enough, because it is cropped, in a member that is not shown itself.
func (f *Formatter) Brief(key []byte) bool {
	f.path = jsontext.AppendUnquoted(f.path[:0], key)
	return f.optionsOf(f.path).crop > 0
}

// AppendFormatted appends the _formatted object of a row's document, if f.enabled: the requested fields, with numbers as strings, and
// texts cropped and highlighted. Strings of the document's members may have tails.
func (f *Formatter) AppendFormatted(dst []byte, seg int, row segment.Row, doc []byte, tails []segment.Tail) ([]byte, error) {
	f.path, f.tails, f.segment, f.row = f.path[:0], tails, seg, row
	if f.Shown.All {
		return f.appendObject(dst, doc)
	}
	var err error
	if f.parts, err = f.Shown.AppendParts(f.parts[:0], doc); err != nil {
		return dst, err
	}
	return f.appendObject(dst, f.parts)
}

// appendObject appends an object with formatted members. Embeddings are left out.
func (f *Formatter) appendObject(dst, object []byte) ([]byte, error) {
	dst = append(dst, '{')
	first, outer := true, len(f.path)
	err := jsontext.EachMember(object, func(key, value []byte) error {
		if outer > 0 {
			f.path = append(f.path, '.')
		}
		f.path = jsontext.AppendUnquoted(f.path, key)
		var err error
		if outer > 0 || !isVectors(f.path) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(append(dst, key...), ':')
			if f.member = nil; outer == 0 && value[0] == '"' {
				f.member = key
			}
			if f.rest, f.tail = nil, nil; outer == 0 {
				f.takeTail(key)
			}
			dst, err = f.appendValue(dst, value)
		}
		f.path = f.path[:outer]
		return err
	})
	return append(dst, '}'), err
}

// takeTail takes the tail of a member of the document, if it has one. Members before it may have tails that are not needed: they have
// none of the paths that are shown below them.
func (f *Formatter) takeTail(key []byte) {
	for i := range f.tails {
		if t := &f.tails[i]; bytes.Equal(t.Key(), key) {
			f.rest, f.tail, f.tails = t, t, f.tails[i+1:]
			return
		}
	}
}

// appendValue appends a value, formatted by the options of its path. Values that no option changes are copied
// as they are.
func (f *Formatter) appendValue(dst, value []byte) ([]byte, error) {
	switch value[0] {
	case '{':
		return f.appendObject(dst, value)
	case '[':
		return jsontext.AppendElements(dst, value, f.appendValue)
	case 't', 'f', 'n':
		return append(dst, value...), nil
	}
	if f.Foreign != nil {
		if dst, found, err := f.Foreign(dst, f.path, value); found || err != nil {
			return dst, err
		}
	}
	o := f.optionsOf(f.path)
	plain := o.crop <= 0 && (!o.highlight || f.scan.find.empty())
	if value[0] == '"' {
		if plain || o.crop <= 0 && bytes.IndexByte(value, '\\') < 0 && f.scan.find.isAbsent(value[1:len(value)-1], o.locales) {
			return append(dst, value...), nil
		}
		f.text = jsontext.AppendUnquoted(f.text[:0], value)
	} else {
		f.text = jsontext.AppendNumber(f.text[:0], value)
		if plain {
			return jsontext.AppendQuoted(dst, f.text), nil
		}
	}
	formatted, err := f.format(f.text, o)
	if err != nil {
		return nil, err
	}
	if int64(len(dst)+len(formatted)) > f.room {
		return nil, budget.ErrLarge
	}
	return jsontext.AppendQuoted(dst, formatted), nil
}

// format returns a text with its matches marked, cropped if o says so. It stops when it is longer than an answer may be.
func (f *Formatter) format(s []byte, o *pathOptions) ([]byte, error) {
	if o.crop <= 0 {
		return f.highlighted(s, o.locales)
	}
	concordance, err := f.concordance(len(s))
	if err != nil {
		return nil, err
	}
	long := f.rest != nil || concordance != nil
	if long {
		if c := f.kept.get(f.segment, f.row, o); c != nil {
			return f.marked(c, o), nil
		}
	}
	f.cut.length = o.crop
	if err := f.cutText(s, o, concordance); err != nil {
		return nil, err
	}
	s = f.scan.text
	if f.rest != nil {
		f.text = s
	}
	start, end := f.cut.start, f.cut.end
	f.spans = appendSpans(f.spans[:0], f.cut.shown, start, end)
	c := &croppedText{text: s[start:end], matches: f.spans, before: f.cut.offset+start > 0, after: end < len(s) || f.scan.partial()}
	if long {
		f.kept.put(f.segment, c)
	}
	return f.marked(c, o), nil
}

// highlighted returns a whole text with its matches marked.
func (f *Formatter) highlighted(s []byte, l text.Locales) ([]byte, error) {
	out, at := f.out[:0], 0
	err := f.scan.each(s, l, &f.cut.clock, func(m match) error {
		if m.start >= m.end {
			return nil
		}
		if int64(len(out)) > f.room {
			return budget.ErrLarge
		}
		out = append(append(out, s[at:m.start]...), f.pre...)
		out = append(append(out, s[m.start:m.end]...), f.post...)
		at = m.end
		if len(out) < budget.SmallBytes {
			return nil
		}
		return f.holds.Hold(len(out))
	})
	if err != nil {
		return nil, err
	}
	f.out = append(out, s[at:]...)
	return f.out, nil
}

// concordance returns the concordance of the current text, or nil. length is how many bytes of the text were read.
func (f *Formatter) concordance(length int) (*segment.Concordance, error) {
	switch {
	case f.tail != nil:
		return f.tail.Concordance(), nil
	case f.member == nil || length <= segment.LongText || f.kept.view == nil:
		return nil, nil
	}
	return f.kept.view.Segments[f.segment].Concordance(f.row, f.member)
}

// cutText works out the part of a text that a crop shows.
func (f *Formatter) cutText(s []byte, o *pathOptions, concordance *segment.Concordance) error {
	if concordance != nil {
		if o.fingerprint == 0 {
			o.fingerprint = f.scan.find.analyzer.Fingerprint(o.locales)
		}
		if ok, err := f.cut.locate(&f.scan, concordance, s, f.tail, o.fingerprint, o.locales); ok || err != nil {
			return err
		}
	}
	f.cut.offset = 0
	return f.cut.find(&f.scan, s, f.rest, o.locales)
}

// appendSpans appends what matches cover of a text between start and end, counted from there.
func appendSpans(dst []byteSpan, matches []match, start, end int) []byteSpan {
	for _, m := range matches {
		if from, to := max(m.start, start), min(m.end, end); from < to {
			dst = append(dst, byteSpan{from - start, to - start})
		}
	}
	return dst
}

// marked returns the shown part of a text, with marked matches if o says so, as far as there is memory for it.
func (f *Formatter) marked(c *croppedText, o *pathOptions) []byte {
	out := f.out[:0]
	if c.before {
		out = append(out, f.marker...)
	}
	at := 0
	if o.highlight {
		for _, m := range c.matches {
			if int64(len(out)) > f.room {
				break
			}
			out = append(append(out, c.text[at:m.start]...), f.pre...)
			out = append(append(out, c.text[m.start:m.end]...), f.post...)
			at = m.end
		}
	}
	out = append(out, c.text[at:]...)
	if c.after {
		out = append(out, f.marker...)
	}
	f.out = out
	return out
}

// AppendMatches appends the _matchesPosition object of a document: the matches in all displayed texts, by path.
func (f *Formatter) AppendMatches(dst, doc []byte) ([]byte, error) {
	if f.scan.find.empty() {
		return append(dst, "{}"...), nil
	}
	w := &f.walker
	w.f, w.found, w.spans, w.err = f, w.found[:0], 0, nil
	if err := cmp.Or(document.Walk(doc, w), w.err); err != nil {
		return dst, err
	}
	found := w.found
	slices.SortFunc(found, func(a, b pathMatches) int { return strings.Compare(a.options.path, b.options.path) })
	dst = append(dst, '{')
	for i, p := range found {
		if i > 0 {
			dst = append(dst, ',')
		}
		if int64(len(dst)) > f.room {
			return nil, budget.ErrLarge
		}
		dst = append(jsontext.AppendQuoted(dst, []byte(p.options.path)), ":["...)
		for i, m := range p.spans {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, `{"start":`...), int64(m.start), 10)
			dst = strconv.AppendInt(append(dst, `,"length":`...), int64(m.end-m.start), 10)
			if len(p.indices) > 0 {
				dst = append(dst, `,"indices":[`...)
				for i, n := range p.indices {
					if i > 0 {
						dst = append(dst, ',')
					}
					dst = strconv.AppendInt(dst, int64(n), 10)
				}
				dst = append(dst, ']')
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// pathMatches are the matches at a path: those of the last array element there with any.
type pathMatches struct {
	options *pathOptions
	spans   []byteSpan
	indices []int
}

type byteSpan struct{ start, end int }

// spanBytes is how many bytes a byteSpan takes.
const spanBytes = 16

// positionWalker collects the matches of a document.
type positionWalker struct {
	f     *Formatter
	found []pathMatches
	spans int   // of all that were found
	err   error // of the first text that could not be read to its end
}

func (w *positionWalker) Field(path []byte) int {
	if isVectors(path) {
		return -1
	}
	return w.f.optionsOf(path).index
}

// String records the matches in a value. For each path that is shown, the first value with matches counts.
func (w *positionWalker) String(field int, value []byte, indices []int) {
	o := w.f.paths[field]
	if !o.displayed || len(value) == 0 || w.err != nil {
		return
	}
	f := w.f
	f.spans = f.spans[:0]
	w.err = f.scan.each(value, o.locales, &f.cut.clock, func(m match) error {
		f.spans = append(f.spans, byteSpan{m.start, m.end})
		return w.hold(len(f.spans))
	})
	if len(f.spans) == 0 || w.err != nil {
		return
	}
	if o.found == 0 || o.found > len(w.found) || w.found[o.found-1].options != o {
		w.found = append(w.found, pathMatches{options: o})
		o.found = len(w.found)
	}
	p := &w.found[o.found-1]
	w.spans += len(f.spans) - len(p.spans)
	p.spans, p.indices = append(p.spans[:0], f.spans...), slices.Clone(indices)
	w.err = w.hold(0)
}

// hold charges the memory for what was found, and for more spans.
func (w *positionWalker) hold(more int) error {
	if n := w.spans + more; n >= 1<<10 {
		return w.f.holds.Hold(n * spanBytes)
	}
	return nil
}

func (w *positionWalker) Number(field int, value []byte, _ numeric.Value, indices []int) {
	w.String(field, value, indices)
}

func (w *positionWalker) Bool(int, bool, []int) {}
func (w *positionWalker) Null(int)              {}
func (w *positionWalker) Empty(int)             {}
func (w *positionWalker) Visit(int)             {}
