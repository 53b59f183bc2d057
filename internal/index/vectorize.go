package index

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/embed"
	"svc/internal/jsontext"
	"svc/internal/settings"
	"svc/segment"
)

// vectorizer computes the vectors of documents for each embedder. It gathers texts of several documents, so that providers
// get many texts at once. One worker uses it.
type vectorizer struct {
	b      *batch
	read   docReader
	floats []float32  // the vectors of all documents gathered
	texts  []gathered // by plan

	// Of the current document:
	id       []byte
	seg      int32 // where it is stored, or noSegment
	row      segment.Row
	state    *docState // nil when the batch does not name it
	versions []int32   // sources of the batch, oldest first
	doc      []byte    // as it will be stored
	stored   []byte    // as it is stored; nil until it is read
	folds    []fold    // by plan
	edited   []byte    // buffer of doc
	rendered int       // bytes of the texts gathered
}

// gathered has the inputs of the collected documents for one embedder, and the vectors generated from them.
type gathered struct {
	inputs  []embed.Input
	ids     []string // of the documents that they are of
	vectors [][]float32
}

// docEntry is what a document will have for an embedder.
type docEntry struct {
	plan  int
	id    segment.EmbedderID // of the shape
	v     segment.DocVectors // what there is; when made, it stays only if a call fails that may fail
	made  bool
	parts []part
}

// part is one vector of a docEntry that is made.
type part struct {
	fragment uint16
	input    int       // in gathered; −1: none, keep
	keep     []float32 // the vector that the fragment has; nil when it has none
}

// fold is the merged entry of one embedder over the versions of a document read so far.
type fold struct {
	has  bool               // there is an entry
	v    segment.DocVectors // what there is
	dims int                // of v; 0: none
	made bool               // new vectors are to be made
	text int                // the version whose text they are generated from, or that v belongs to; −1: the stored document
	was  []embed.Input      // what v was made of, if that was asked
	is   []embed.Input      // what the new vectors are made of, if that was asked
}

// ofStored numbers the stored document among its versions.
const ofStored = -1

func newVectorizer(b *batch) *vectorizer {
	return &vectorizer{b: b, read: docReader{b: b}, texts: make([]gathered, len(b.plans))}
}

func (z *vectorizer) close() { _ = z.read.close() }

// reset forgets what was collected.
func (z *vectorizer) reset() {
	z.floats = z.floats[:0]
	for i := range z.texts {
		clear(z.texts[i].inputs)
		z.texts[i] = gathered{inputs: z.texts[i].inputs[:0], ids: z.texts[i].ids[:0]}
	}
	z.rendered = 0
}

// document processes one document: id is its external id, merged has all its versions merged. It returns the document as it will be
// stored, valid until the next call, and its entries, which are complete after embed.
func (z *vectorizer) document(it item, id, merged []byte) (doc []byte, entries []docEntry, err error) {
	z.id, z.seg, z.row, z.state, z.stored = id, it.seg, it.row, nil, nil
	z.versions, z.folds = z.versions[:0], z.folds[:0]
	if it.state >= 0 {
		z.history(z.b.states.at(int(it.state)))
	}
	if err := z.fold(merged); err != nil {
		return nil, nil, err
	}
	back, err := z.comeAndGo(merged)
	if err != nil {
		return nil, nil, err
	}
	if z.doc, err = document.SetVectors(z.edited, merged, z.configured, back); err != nil {
		return nil, nil, err
	}
	if &z.doc[0] != &merged[0] {
		z.edited = z.doc
	}
	for i, p := range z.b.plans {
		if p.is == nil {
			continue
		}
		e, err := z.entry(i)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
	return z.doc, entries, nil
}

// history finds the versions of a document that the batch names.
func (z *vectorizer) history(s *docState) {
	z.state, z.seg = s, noSegment
	at := s.head
	for ; at >= 0; at = z.b.versions.source(at).before {
		z.versions = append(z.versions, at)
	}
	slices.Reverse(z.versions)
	if at == stored {
		was := z.b.versions.stood.at(int(s.before))
		z.seg, z.row = was.seg, was.row
	}
}

// configured reports whether there is an embedder of the name before or after the batch.
func (z *vectorizer) configured(name []byte) bool {
	_, found := slices.BinarySearchFunc(z.b.plans, name, func(p *vectorPlan, name []byte) int { return strings.Compare(p.name, string(name)) })
	return found
}

// fold reads the vectors of the stored document and its versions for the embedders from before the batch.
func (z *vectorizer) fold(merged []byte) error {
	for _, p := range z.b.plans {
		f := fold{text: ofStored}
		if p.was != nil && z.seg != noSegment {
			var shape segment.EmbedderShape
			f.v, shape, f.has = z.entryOf(z.b.base.Segments[z.seg], p.was)
			f.v.Vectors, f.dims = z.keep(f.v.Vectors), shape.Dimensions
		}
		z.folds = append(z.folds, f)
	}
	for n, at := range z.versions {
		vectors, err := z.vectorsOf(z.b.versions.source(at), merged)
		if err != nil {
			return err
		}
		for i, p := range z.b.plans {
			if p.was == nil {
				continue
			}
			value, err := member(vectors, p.name)
			if err == nil {
				err = z.apply(i, n, value, p.was.Dimensions)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// entryOf reads the entry of the current document in a segment for an embedder, and its shape.
func (z *vectorizer) entryOf(l segment.Live, e *ViewEmbedder) (v segment.DocVectors, shape segment.EmbedderShape, ok bool) {
	for _, shape := range e.Shapes() {
		if vs := l.Vectors(shape.ID); vs != nil {
			if v, ok := vs.Row(z.floats[len(z.floats):], z.row); ok {
				return v, shape, true
			}
		}
	}
	return segment.DocVectors{}, shape, false
}

// vectorsOf returns the field _vectors of one version, or nil if it has none.
func (z *vectorizer) vectorsOf(src source, merged []byte) ([]byte, error) {
	switch {
	case !src.vectors:
		return nil, nil
	case len(z.versions) == 1 && src.replaces:
		return document.Vectors(merged)
	}
	line, err := z.read.line(src)
	if err != nil {
		return nil, err
	}
	return document.Vectors(line)
}

// member returns the raw value of a member of an object, nil when the object is nil or has none.
func member(object []byte, name string) (value []byte, err error) {
	if object == nil {
		return nil, nil
	}
	err = document.Fields(object, func(n, v []byte) error {
		if string(n) == name {
			value = v
		}
		return nil
	})
	return value, err
}

// keep puts vectors behind those of the other documents.
func (z *vectorizer) keep(v []float32) []float32 {
	start := len(z.floats)
	z.floats = append(z.floats, v...)
	return z.floats[start:len(z.floats):len(z.floats)]
}

// apply applies the entry of version n for an embedder (nil: none) to the earlier ones.
func (z *vectorizer) apply(plan, n int, value []byte, dimensions int) error {
	f := &z.folds[plan]
	e := document.VectorEntry{Regenerate: true}
	var err error
	if value != nil {
		if z.b.vectors.unfit != nil {
			dimensions = document.AnyDimensions // they were looked at
		}
		e, err = document.ReadVectorEntry(z.floats[len(z.floats):], value, dimensions, z.b.plans[plan].name, z.id)
	}
	switch {
	case err != nil:
		return err
	case value == nil && !f.has:
		*f = fold{has: true, made: true, text: n, v: segment.DocVectors{Regenerate: true}}
	case value == nil && !f.v.Regenerate:
		// They stay, whatever the new text.
	case e.Given || !e.Regenerate && !f.has:
		*f = fold{has: true, text: n, dims: e.Dimensions, v: segment.DocVectors{Regenerate: e.Regenerate, Given: true, Vectors: z.keep(e.Vectors)}}
	case !e.Regenerate:
		// The vectors from before this version are kept from now on.
		err = z.settle(plan, n-1)
		f.v.Regenerate = false
	case !f.v.Regenerate: // until now
		f.has, f.made, f.text, f.v.Regenerate = true, true, n, true
		f.was, f.is = nil, nil
	case n < len(z.versions)-1: // after the last one, entry does it
		err = z.settle(plan, n)
	}
	return err
}

// settle decides whether generated vectors are regenerated for the text of version n.
func (z *vectorizer) settle(plan, n int) error {
	f, p := &z.folds[plan], z.b.plans[plan]
	switch {
	case !f.v.Regenerate || p.is == nil:
		return nil
	case f.made:
		if f.text != n {
			f.text, f.is = n, nil
		}
		return nil
	case p.work == settings.RemakeVectors:
		f.made, f.text = true, n
		return nil
	case !p.is.generates() || f.text == n && p.work == settings.KeepVectors:
		return nil
	}
	was, is, same, err := z.compare(p, f.text, n)
	if err == nil && !same {
		f.made, f.text, f.was, f.is = true, n, was, is
	}
	return err
}

// compare renders version a as before the batch and version b as after it, and reports whether that is the same.
func (z *vectorizer) compare(p *vectorPlan, a, b int) (was, is []embed.Input, same bool, err error) {
	old, err := z.version(a)
	if err != nil {
		return nil, nil, false, err
	}
	if a != b {
		old = bytes.Clone(old) // the next one may take its place
	}
	doc, err := z.version(b)
	if err != nil {
		return nil, nil, false, err
	}
	if p.work == settings.KeepVectors && bytes.Equal(old, doc) {
		return nil, nil, true, nil
	}
	if is, err = z.render(p.is, z.b.settings, doc); err != nil {
		return nil, nil, false, err
	}
	was, err = z.render(p.was, z.b.base.Settings, old)
	if err == nil {
		return was, is, slices.Equal(was, is), nil
	}
	if apierr.From(err).Code != "invalid_document_fields" {
		return nil, nil, false, err
	}
	return nil, is, false, nil // its vectors were given: its text never had to be there
}

// render renders the texts of a document for an embedder by its template. Errors name the document and the
// embedder.
func (z *vectorizer) render(e *ViewEmbedder, s *settings.Settings, doc []byte) ([]embed.Input, error) {
	opened, err := e.Open(z.b.ctx)
	if err != nil {
		return nil, err
	}
	inputs, err := opened.Render(z.b.rendering, doc, s.SearchesWhole)
	if err != nil {
		return nil, during(err, "rendering the document `%s` for the embedder `%s`", z.id, e.Name)
	}
	return inputs, nil
}

// during adds the context to an error for users.
func during(err error, format string, args ...any) error {
	var known *apierr.Error
	if !errors.As(err, &known) {
		return err
	}
	more := *known
	more.Message += " It happened while " + fmt.Sprintf(format, args...) + "."
	return &more
}

// version returns the document as of one of its versions, without entries of embedders, valid until the next call.
func (z *vectorizer) version(n int) ([]byte, error) {
	if n == len(z.versions)-1 {
		return z.doc, nil
	}
	if n == ofStored {
		if z.stored == nil {
			var err error
			if z.stored, err = z.b.base.Segments[z.seg].AppendDocument(nil, z.row); err != nil {
				return nil, err
			}
		}
		return z.stored, nil
	}
	s := *z.state
	s.head = z.versions[n]
	doc, err := z.read.document(&s)
	if err != nil {
		return nil, err
	}
	return document.SetVectors(nil, doc, z.configured, nil)
}

// comeAndGo removes the entries of new embedders from the merged document. It returns the members that vectors of removed
// embedders leave in it: those that do not follow the text.
func (z *vectorizer) comeAndGo(merged []byte) (back []byte, err error) {
	for i, p := range z.b.plans {
		switch f := &z.folds[i]; {
		case p.was == nil:
			vectors, err := document.Vectors(merged)
			if err != nil {
				return nil, err
			}
			value, err := member(vectors, p.name)
			if err == nil {
				err = z.apply(i, len(z.versions)-1, value, p.is.Dimensions)
			}
			if err != nil {
				return nil, err
			}
		case p.is == nil && f.has && !f.made && !f.v.Regenerate:
			if len(back) > 0 {
				back = append(back, ',')
			}
			back = append(jsontext.AppendQuoted(back, p.name), ':')
			back = document.AppendVectorEntry(back, f.v.Vectors, f.dims, false)
		}
	}
	return back, nil
}

// entry completes the merged entry of an embedder, at the document's last version.
func (z *vectorizer) entry(plan int) (docEntry, error) {
	f, p := &z.folds[plan], z.b.plans[plan]
	last := len(z.versions) - 1
	if !f.has {
		*f = fold{has: true, made: true, text: last, v: segment.DocVectors{Regenerate: true}}
	}
	if err := z.settle(plan, last); err != nil {
		return docEntry{}, err
	}
	e := docEntry{plan: plan, id: p.is.ID, v: f.v, made: f.made}
	if !f.v.Regenerate {
		// They now belong to the document itself: the fragments may change, and their numbers may be reused.
		e.v.Fragments = nil
	}
	if !f.made {
		if len(f.v.Vectors) > 0 && f.dims != p.is.Dimensions { // they are kept, and no search compares them
			i := slices.IndexFunc(p.is.unfit, func(s segment.EmbedderShape) bool { return s.Dimensions == f.dims })
			if i < 0 {
				return e, fmt.Errorf("the document %s has vectors of %d dimensions for the embedder %s, which has no place for them", z.id, f.dims, p.name)
			}
			e.id = p.is.unfit[i].ID
		}
		return e, nil
	}
	if !p.is.generates() {
		return e, missingVectors(z.id, p.name, z.doc)
	}
	if f.is == nil {
		doc, err := z.version(f.text)
		if err == nil {
			f.is, err = z.render(p.is, z.b.settings, doc)
		}
		if err != nil {
			return e, err
		}
	}
	was := p.was
	if was != nil && f.dims != p.is.Dimensions { // then its vectors cannot stay, even if a call fails
		was, e.v = nil, segment.DocVectors{Regenerate: e.v.Regenerate}
	}
	for _, in := range f.is {
		t := part{input: -1}
		if in.Fragment != "" {
			t.fragment, _ = p.is.Fragment(in.Fragment)
			t.keep = fragmentVector(was, &f.v, in.Fragment)
		}
		if t.keep == nil || !slices.Contains(f.was, in) {
			t.input = len(z.texts[plan].inputs)
			z.texts[plan].inputs = append(z.texts[plan].inputs, in)
			z.texts[plan].ids = append(z.texts[plan].ids, string(z.id))
			z.rendered += len(in.Text)
		}
		e.parts = append(e.parts, t)
	}
	slices.SortFunc(e.parts, func(a, b part) int { return int(a.fragment) - int(b.fragment) })
	return e, nil
}

// fragmentVector returns the vector that a fragment has; nil when it has none.
func fragmentVector(e *ViewEmbedder, v *segment.DocVectors, name string) []float32 {
	if e == nil {
		return nil
	}
	number, ok := e.Fragment(name)
	if !ok {
		return nil
	}
	i := slices.Index(v.Fragments, number)
	if i < 0 {
		return nil
	}
	return v.Vectors[i*e.Dimensions:][:e.Dimensions]
}

// embed generates the vectors of what was collected.
func (z *vectorizer) embed() error {
	for i, p := range z.b.plans {
		t := &z.texts[i]
		if len(t.inputs) == 0 {
			continue
		}
		opened, err := p.is.Open(z.b.ctx)
		if err == nil {
			t.vectors, err = opened.EmbedDocuments(z.b.ctx, t.inputs, z.b.requests)
		}
		if failed := new(embed.InputsError); errors.As(err, &failed) {
			ids := slices.Compact(slices.Clone(t.ids[failed.From:failed.To])) // one may have several fragments
			what := "the document `"
			if len(ids) > 1 {
				what = "the documents `"
			}
			err = during(failed.Err, "embedding %s%s` for the embedder `%s`", what, strings.Join(ids, "`, `"), p.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// complete returns what an entry holds, once everything is embedded.
func (z *vectorizer) complete(e *docEntry) segment.DocVectors {
	if !e.made {
		return e.v
	}
	v := segment.DocVectors{Regenerate: e.v.Regenerate}
	start := len(z.floats)
	for _, t := range e.parts {
		vector := t.keep
		if t.input >= 0 {
			if made := z.texts[e.plan].vectors[t.input]; made != nil {
				vector = made
			} else if vector == nil && len(z.b.plans[e.plan].is.fragments) == 0 {
				e.v.Fragments = nil
				return e.v // the call failed
			}
		}
		if vector == nil {
			continue
		}
		z.floats = append(z.floats, vector...)
		if v.Regenerate && len(z.b.plans[e.plan].is.fragments) > 0 {
			v.Fragments = append(v.Fragments, t.fragment)
		}
	}
	v.Vectors = z.floats[start:len(z.floats):len(z.floats)]
	return v
}
