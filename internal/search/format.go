package search

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
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// formatter makes the _formatted and _matchesPosition objects of hits. It is for one request and one goroutine.
type formatter struct {
	fields  *settings.Fields
	scan    textScan
	pre     string
	post    string
	marker  string
	shown   selection // paths in _formatted
	enabled bool
	hydrate *hydration // nil: no foreign keys

	highlightAll bool
	highlight    covering
	cropAll      int // words; -1: not cropped
	crop         covering
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

// newFormatter prepares formatting for the hits of r on v. h may be nil if there is no query.
func newFormatter(v *index.View, r *Request, h *query.Highlights) *formatter {
	f := &formatter{
		fields:  v.Fields,
		scan:    textScan{find: newHighlighter(v.Analyzer, h)},
		pre:     r.HighlightPreTag,
		post:    r.HighlightPostTag,
		marker:  r.CropMarker,
		cropAll: -1,
		kept:    keptCrops{view: v, highlights: h},
		options: make(map[string]*pathOptions),
		room:    math.MaxInt64,
	}
	displayed := v.Settings.DisplayedAttributes
	d, known := newDisplayedPaths(displayed), f.known(len(r.AttributesToHighlight)+len(r.AttributesToCrop))
	var highlight, crop []string
	for _, name := range r.AttributesToHighlight {
		if name == "*" {
			f.highlightAll = true
		} else if known(name) {
			highlight = d.appendWithin(highlight, name)
		}
	}
	for _, name := range r.AttributesToCrop {
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
			crop = d.appendWithin(crop, name)
			for len(f.cropWords) < len(crop) {
				f.cropWords = append(f.cropWords, words)
			}
		}
	}
	all := f.highlightAll || f.cropAll >= 0
	f.highlight, f.crop = newCovering(highlight), newCovering(crop)
	f.cut.perfect = perfectScore(f.scan.find)
	f.enabled = len(highlight)+len(crop) > 0 || all && (displayed == nil || len(displayed) > 0)
	shown := retrievedFields(v.Fields, displayed, r.AttributesToRetrieve)
	switch {
	case all:
		shown = displayed
	case shown != nil:
		shown = slices.Concat(shown, highlight, crop)
	}
	f.shown = newSelection(shown)
	return f
}

// known returns a function that reports whether any document has or had a path. paths is how many paths will be looked up.
func (f *formatter) known(paths int) func(path string) bool {
	isField := func(path string) bool { _, ok := f.fields.ID(path); return ok }
	if paths <= fewPaths {
		return func(path string) bool {
			if isField(path) {
				return true
			}
			for i := range f.fields.Len() {
				if pathCovers(path, f.fields.Info(segment.FieldID(i)).Name) {
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

// pathCovers reports whether a path is attribute or below it.
func pathCovers(attribute, path string) bool {
	return strings.HasPrefix(path, attribute) && (len(path) == len(attribute) || path[len(attribute)] == '.')
}

// optionsOf returns how values at path are formatted. Options for a path also apply to the paths below it.
func (f *formatter) optionsOf(path []byte) *pathOptions {
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
	o.highlight = o.highlight || f.highlight.first(o.path) >= 0
	if i := f.crop.first(o.path); i >= 0 {
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
func isVectors(path []byte) bool { return pathCovers(settings.VectorsField, string(path)) }

// brief reports whether the beginning of a long string is enough, because it is cropped, in a member that is not shown itself.
func (f *formatter) brief(key []byte) bool {
	f.path = jsontext.AppendUnquoted(f.path[:0], key)
	return f.optionsOf(f.path).crop > 0
}

// appendFormatted appends the _formatted object of a row's document, if f.enabled: the requested fields, with numbers as strings, and
// texts cropped and highlighted. Strings of the document's members may have tails.
func (f *formatter) appendFormatted(dst []byte, seg int, row segment.Row, doc []byte, tails []segment.Tail) ([]byte, error) {
	f.path, f.tails, f.segment, f.row = f.path[:0], tails, seg, row
	if f.shown.all {
		return f.appendObject(dst, doc)
	}
	var err error
	if f.parts, err = f.shown.appendParts(f.parts[:0], doc); err != nil {
		return dst, err
	}
	return f.appendObject(dst, f.parts)
}

// appendObject appends an object with formatted members. Embeddings are left out.
func (f *formatter) appendObject(dst, object []byte) ([]byte, error) {
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
			if f.rest, f.tail = nil, nil; outer == 0 && len(f.tails) > 0 && bytes.Equal(f.tails[0].Key(), key) {
				f.tail, f.tails = &f.tails[0], f.tails[1:]
				f.rest = f.tail
			}
			dst, err = f.appendValue(dst, value)
		}
		f.path = f.path[:outer]
		return err
	})
	return append(dst, '}'), err
}

// appendValue appends a value, formatted by the options of its path. Values that no option changes are copied
// as they are.
func (f *formatter) appendValue(dst, value []byte) ([]byte, error) {
	switch value[0] {
	case '{':
		return f.appendObject(dst, value)
	case '[':
		dst = append(dst, '[')
		first := true
		err := jsontext.EachElement(value, func(element []byte) error {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			var err error
			dst, err = f.appendValue(dst, element)
			return err
		})
		return append(dst, ']'), err
	case 't', 'f', 'n':
		return append(dst, value...), nil
	}
	if dst, found, err := f.hydrate.appendValueAt(dst, f.path, value); found || err != nil {
		return dst, err
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
func (f *formatter) format(s []byte, o *pathOptions) ([]byte, error) {
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
func (f *formatter) highlighted(s []byte, l text.Locales) ([]byte, error) {
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
func (f *formatter) concordance(length int) (*segment.Concordance, error) {
	switch {
	case f.tail != nil:
		return f.tail.Concordance(), nil
	case f.member == nil || length <= segment.LongText || f.kept.view == nil:
		return nil, nil
	}
	return f.kept.view.Segments[f.segment].Concordance(f.row, f.member)
}

// cutText works out the part of a text that a crop shows.
func (f *formatter) cutText(s []byte, o *pathOptions, concordance *segment.Concordance) error {
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
func (f *formatter) marked(c *croppedText, o *pathOptions) []byte {
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

// appendMatches appends the _matchesPosition object of a document: the matches in all displayed texts, by path.
func (f *formatter) appendMatches(dst, doc []byte) ([]byte, error) {
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
	f     *formatter
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
