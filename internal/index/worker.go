package index

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// worker turns documents into segments: it takes the documents dealt to it, in ascending DocID, walks each into its own builder, and
// writes the builder whenever its share of the memory is used up. It is the document.KeyVisitor of its documents. The lists by handle
// have one entry per path; once they have grown, nothing is allocated per word or document. Only one goroutine at a time uses it.
type worker struct {
	w        *writer
	number   int          // among the workers of the batch
	pace     *pace.Worker // of the goroutine that has it; nil: it does not yield to searches
	read     docReader
	vectors  *vectorizer // nil when there are no embedders
	gathered []gatheredDoc
	builder  *segment.Builder
	items    []item // that it works on

	handles map[string]int // path → index in fields
	fields  []fieldState
	next    int   // index in fields of the path that probably comes next: the one that followed in the first document
	touched []int // of the document
	stamp   uint32
	field   segment.FieldID // that emit writes to
	emit    func(word []byte, position uint16)
	key     []byte // scratch for facet keys
	err     error  // of the document
	large   bool   // it may have texts with concordances
	geo     bool   // it has a field of settings.GeoField or settings.GeoJSONField
	doc     []byte // the document, where there are elements
	placeAt int    // where the open _geo of an element begins in it

	placeArrays int // on the way to it

	used text.Pipelines // by the texts in the builder

	flushed int // segments written, not counting merges of them
}

// fieldState is what a worker knows about a field, and its state within the current document.
type fieldState struct {
	name               string // the path
	id                 segment.FieldID
	searchable, column bool
	elements, scope    bool // of settings.FieldInfo
	place              bool // it is _geo of elements
	geo                bool // it is _geo or _geojson of documents
	locales            text.Locales
	concords           string // the key of the members of documents at this path, where long texts there get a concordance; else ""
	fingerprint        uint64 // of it
	stamp              uint32 // the document that positions are of
	positions          text.Positions
}

var (
	_ document.KeyVisitor = (*worker)(nil)
	_ document.Spooler    = (*worker)(nil)
)

func newWorker(w *writer, number int) *worker {
	k := &worker{w: w, number: number, read: docReader{b: w.b}, handles: make(map[string]int)}
	if len(w.b.plans) > 0 && !w.valuesOnly {
		k.vectors = newVectorizer(w.b)
	}
	k.emit = func(word []byte, position uint16) { k.builder.Word(k.field, word, position) }
	return k
}

// close gives back what the worker holds.
func (k *worker) close() {
	_ = k.read.close() // leftovers are removed at the next open
	if k.vectors != nil {
		k.vectors.close()
	}
	if k.builder != nil {
		k.builder.Reset()
	}
}

// step indexes the next documents of the worker. At the end it writes the rest and returns false.
func (k *worker) step(d *deal) (more bool, err error) {
	if k.items = d.take(k.items[:0], k.number); len(k.items) == 0 {
		return false, k.flush()
	}
	if err := k.w.ctx.Err(); err != nil {
		return false, err
	}
	if err := k.indexAll(k.items); err != nil {
		return false, err
	}
	k.w.progress(len(k.items))
	return true, nil
}

// indexAll adds documents to the builder, which it writes out whenever the memory is used.
func (k *worker) indexAll(items []item) error {
	if k.vectors == nil {
		for _, it := range items {
			k.pace.Yield()
			external, doc, err := k.document(it)
			if err == nil {
				err = k.index(it, external, doc, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for len(items) > 0 {
		n, err := k.gather(items)
		if err == nil {
			err = k.vectors.embed()
		}
		if err != nil {
			return err
		}
		for i, it := range items[:n] {
			k.pace.Yield()
			g := &k.gathered[i]
			if err := k.index(it, g.external, g.doc, g.entries); err != nil {
				return err
			}
		}
		items = items[n:]
	}
	return nil
}

// gatheredDoc is a document that waits for its vectors.
type gatheredDoc struct {
	external, doc []byte
	entries       []docEntry
}

// gather reads documents, up to gatherBytes of them, and works out their vectors. It returns how many.
func (k *worker) gather(items []item) (int, error) {
	k.vectors.reset()
	clear(k.gathered)
	k.gathered = k.gathered[:0]
	bytesHeld := 0
	for _, it := range items {
		external, merged, err := k.document(it)
		if err != nil {
			return 0, err
		}
		doc, entries, err := k.vectors.document(it, external, merged)
		if err != nil {
			return 0, err
		}
		k.gathered = append(k.gathered, gatheredDoc{bytes.Clone(external), bytes.Clone(doc), entries})
		if bytesHeld += len(doc); bytesHeld+k.vectors.rendered+4*len(k.vectors.floats) >= gatherBytes {
			break
		}
	}
	return len(k.gathered), nil
}

// document reads a document with its external id, both valid until the next call.
func (k *worker) document(it item) (external, doc []byte, err error) {
	if it.state >= 0 {
		doc, err = k.read.document(k.w.b.states.at(int(it.state)))
		return k.w.b.table.id(int(it.state)), doc, err
	}
	l := k.w.b.base.Segments[it.seg]
	doc, err = k.read.stored(l, it.row)
	return l.ExternalID(it.row), doc, err
}

// index adds one document to the builder.
func (k *worker) index(it item, external, doc []byte, entries []docEntry) error {
	if len(doc) > document.MaxBytes {
		return apierr.New("payload_too_large", "The document `%s` would have %d bytes; the maximum is %d. Split it, or remove fields.", external, len(doc), document.MaxBytes)
	}
	if k.builder == nil {
		o := k.w.builder
		o.Throttle = func(int) error { k.pace.Yield(); return k.w.ctx.Err() }
		k.builder = segment.NewBuilder(o)
	}
	k.begin(doc)
	if k.w.valuesOnly {
		k.builder.StartDoc(it.id, external, noDocument)
	} else {
		k.builder.StartDoc(it.id, external, doc)
	}
	visitor := document.Visitor(k)
	if k.w.fields.base.HasElements() {
		k.doc, visitor = doc, elementWorker{k}
	}
	if err := document.Walk(doc, visitor); err != nil {
		return fmt.Errorf("cannot index the document %s: %w", external, err)
	}
	if k.err != nil {
		return k.err
	}
	for _, h := range k.touched {
		if f := &k.fields[h]; f.searchable {
			k.used |= f.positions.Used()
			if n := f.positions.Words(); n > 0 {
				k.builder.WordCount(f.id, n)
			}
		}
	}
	if k.geo {
		k.location(doc)
	}
	for i := range entries {
		e := &entries[i]
		k.builder.Vectors(e.id, k.vectors.complete(e))
	}
	k.builder.EndDoc()
	if k.builder.MemoryBytes() < k.share() {
		return nil
	}
	if spilled, err := k.builder.Spill(k.share()); spilled || err != nil {
		return err
	}
	if err := k.flush(); err != nil || k.w.valuesOnly {
		return err
	}
	return k.w.merge(k.pace)
}

// begin prepares the state of the fields for a document.
func (k *worker) begin(doc []byte) {
	k.stamp++
	k.touched, k.err, k.large, k.geo, k.next = k.touched[:0], nil, len(doc) > segment.LongText, false, 0
}

// location adds the point and the shape of the document.
func (k *worker) location(doc []byte) {
	if p, ok, _ := geoOf(doc); ok {
		k.builder.Geo(p.lat, p.lng)
	}
	if shape, reason := shapeOf(doc); reason == "" {
		for i := range shape {
			k.builder.Shape(&shape[i])
		}
	}
}

// share returns how many bytes to gather before they are written. A worker that has written earlySegments gathers more: searches go through
// all segments of a large batch until they are merged.
func (k *worker) share() int64 {
	if k.flushed < earlySegments {
		return k.w.share
	}
	return max(k.w.share, k.w.laterShare)
}

// noDocument is stored for each document in segments of values only.
var noDocument = []byte("{}")

// flush writes what the builder holds as a segment.
func (k *worker) flush() error {
	if k.builder == nil || k.builder.Rows() == 0 {
		return nil
	}
	f, err := k.write()
	if scarce(err) && k.w.written.makeRoom() {
		f, err = k.write()
	}
	if err != nil {
		return fmt.Errorf("cannot write a segment of index %s: %w", k.w.b.base.UID, err)
	}
	k.w.written.add(f)
	k.flushed++
	k.builder.Reset()
	k.used = 0
	return nil
}

// write is flush that leaves the builder as it is.
func (k *worker) write() (*file, error) {
	ix := k.w.b.ix
	number := k.w.numberOf(k)
	name := path.Join(ix.dir, segmentName(number))
	if !ix.catalog.unrecorded {
		k.builder.Analyzed(recorded(k.w.analyzer.Analysis(k.used)))
	}
	_, err := k.builder.Write(k.w.ctx, ix.options.FS, name)
	if err == nil {
		var f *file
		if f, err = ix.openNew(number); err == nil {
			return f, nil
		}
	}
	_ = ix.options.FS.Remove(name) // or the next open does it
	return nil, err
}

// Field implements document.Visitor.
func (k *worker) Field(path []byte) int {
	if k.err != nil { // the rest of the document does not matter
		return -1
	}
	h := k.next
	if h >= len(k.fields) || k.fields[h].name != string(path) {
		var ok bool
		if h, ok = k.handles[string(path)]; !ok {
			if h = k.newField(string(path)); h < 0 {
				return h
			}
		}
	}
	f := &k.fields[h]
	k.next = h + 1
	k.geo = k.geo || f.geo
	if f.stamp != k.stamp {
		f.stamp, f.positions = k.stamp, text.Positions{}
		k.touched = append(k.touched, h)
		k.builder.Present(f.id)
	}
	if f.elements {
		k.builder.ElementPresent(f.id)
	}
	return h
}

// newField makes a handle for a path that the worker has not met.
func (k *worker) newField(name string) int {
	if name == settings.VectorsField { // kept in the document only
		return -1
	}
	id, err := k.w.fields.id(name)
	if err != nil {
		k.err = err
		return -1
	}
	info := k.w.fields.base.InfoOf(name)
	h := len(k.fields)
	f := fieldState{name: name, id: id, searchable: info.Searchable && !k.w.valuesOnly, column: info.Column, locales: info.Locales,
		elements: info.Elements, scope: info.Scope}
	f.geo = name == settings.GeoField || name == settings.GeoJSONField
	f.place = f.elements && strings.HasSuffix(name, "."+settings.GeoField)
	if f.searchable && !strings.Contains(name, ".") { // others may be keys or paths
		f.concords, f.fingerprint = name, k.w.analyzer.Fingerprint(f.locales)
	}
	k.fields = append(k.fields, f)
	k.handles[name] = h
	return h
}

// Spool implements document.Spooler.
func (k *worker) Spool() (*mapped.Spool, error) { return k.w.b.ix.newSpool() }

// DottedKey implements document.KeyVisitor.
func (k *worker) DottedKey(field int) { k.builder.DottedKey(k.fields[field].id) }

// Visit implements document.Visitor.
func (k *worker) Visit(field int) { k.fields[field].positions.Visit() }

// String implements document.Visitor.
func (k *worker) String(field int, s []byte, indices []int) {
	f := &k.fields[field]
	if !(k.large && len(s) > segment.LongText && f.concords != "" && indices == nil && k.concord(f, s)) {
		k.words(f, s, f.locales)
	}
	if f.column {
		// As in columnBuilder.String, an empty string is not a value.
		if k.key = text.FacetKey(k.key[:0], s); len(k.key) > 0 {
			k.value(f, k.key, s)
		}
	}
}

// Number implements document.Visitor.
func (k *worker) Number(field int, s []byte, value numeric.Value, _ []int) {
	f := &k.fields[field]
	k.words(f, s, nil)
	switch {
	case f.elements:
		k.builder.ElementNumber(f.id, value)
	case f.column:
		k.builder.Number(f.id, value)
	}
}

// Bool implements document.Visitor.
func (k *worker) Bool(field int, value bool, _ []int) {
	f := &k.fields[field]
	s := boolText(value)
	k.words(f, s, nil)
	if f.column {
		k.value(f, s, s)
	}
}

// value adds a string to the column of a field.
func (k *worker) value(f *fieldState, normalized, original []byte) {
	if f.elements {
		k.builder.ElementString(f.id, normalized, original)
	} else {
		k.builder.String(f.id, normalized, original)
	}
}

// Null implements document.Visitor.
func (k *worker) Null(field int) {
	if f := &k.fields[field]; f.column {
		k.builder.Null(f.id)
	}
}

// Empty implements document.Visitor.
func (k *worker) Empty(field int) {
	if f := &k.fields[field]; f.column {
		k.builder.Empty(f.id)
	}
}

// words feeds the words of a text to the builder if the field is searchable. Positions continue after the earlier texts in the same
// field of the document.
func (k *worker) words(f *fieldState, s []byte, l text.Locales) {
	if f.searchable {
		k.field = f.id
		k.w.analyzer.Index(&f.positions, s, l, k.emit)
	}
}

// concord indexes a long text and builds its concordance. It returns false if it does neither.
func (k *worker) concord(f *fieldState, s []byte) bool {
	c := k.builder.Concordance([]byte(f.concords), f.fingerprint)
	if c == nil {
		return false
	}
	k.field = f.id
	k.w.analyzer.IndexConcord(&f.positions, s, f.locales, k.emit, concorder{c})
	c.End(len(s))
	return true
}

// concorder passes the places from which a text can be read on to the segment, which does not interpret them.
type concorder struct{ *segment.Concordancer }

func (c concorder) Mark(at int, r text.Resume) { c.Concordancer.Mark(at, uint16(r)) }

var trueText, falseText = []byte("true"), []byte("false")

// boolText is how a boolean is indexed.
func boolText(v bool) []byte {
	if v {
		return trueText
	}
	return falseText
}
