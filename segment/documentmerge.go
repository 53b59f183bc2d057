package segment

import (
	"bytes"
	"slices"

	"github.com/klauspost/compress/s2"
)

// documentMerger copies stored documents into one section.
type documentMerger struct {
	m     *merger
	dicts [][]byte // of the output, as s2.Dict.Bytes gives them
	// first maps, by input, the first byte of a stored document to that in the
	// output; nil when the documents of the input are compressed again.
	first [][]byte
	runs  []documentRun // by input
	doc   []byte        // scratch
}

// documentRun has the read-ahead of one input.
type documentRun struct{ index, data run }

// reach asks for what follows a row.
func (r *documentRun) reach(row uint32) {
	at := docOffsetBytes * int(row)
	r.index.reach(at)
	if i := r.index.section; at+docOffsetBytes <= len(i) {
		r.data.reach(int(min(documentOffset(i[at:]), uint64(len(r.data.section)))))
	}
}

// mergeDocuments writes the three sections of documents and records the sum of their lengths. Documents are copied as stored, except
// those of inputs without a dictionary, which are small and gain by one, or with more dictionaries than fit into the segment.
func (m *merger) mergeDocuments() error {
	d := documentMerger{m: m, first: make([][]byte, len(m.in))}
	var again []int
	for _, i := range d.bySize() {
		dicts, err := m.in[i].docs.dictionaries()
		if err != nil {
			return err
		}
		if len(dicts) == 0 || !d.keep(i, dicts) {
			again = append(again, i)
		}
	}
	var w documentWriter // for documents that are compressed again
	if len(again) > 0 || m.o.Document != nil {
		var err error
		if w, err = d.writer(again); err != nil {
			return err
		}
	}
	for _, l := range m.in {
		d.runs = append(d.runs, documentRun{run{blocks: &l.blocks, section: l.docs.index}, run{blocks: &l.blocks, section: l.docs.data}})
	}
	ends := make([]uint64, len(m.origins))
	m.f.begin(tagDocs, 0)
	var buf []byte
	for row, o := range m.origins {
		if row%1024 == 0 {
			if err := m.check(); err != nil {
				return err
			}
		}
		first, body, err := d.document(&w, Row(row), o)
		if err != nil {
			return err
		}
		if len(buf)+len(body) >= documentChunk { // it may be as large as a payload
			m.f.Write(append(buf, first))
			m.f.Write(body)
			buf = buf[:0]
		} else {
			buf = append(append(buf, first), body...)
		}
		if len(buf) >= 64<<10 {
			m.f.Write(buf)
			buf = buf[:0]
		}
		ends[row] = uint64(m.f.at()) + uint64(len(buf))
	}
	m.f.Write(buf)
	m.f.end()
	writeDocIndex(m.f, ends)
	m.f.add(tagDicts, 0, appendDictionaries(nil, d.dicts))
	return nil
}

// document returns the first byte and the rest of a document as the output stores it, valid until the next call.
func (d *documentMerger) document(w *documentWriter, row Row, o origin) (first byte, body []byte, err error) {
	if d.m.o.Document != nil {
		doc, err := d.m.o.Document(row)
		if err != nil {
			return 0, nil, err
		}
		if doc != nil {
			d.m.documentBytes += int64(len(doc))
			first, body = d.compress(w, doc)
			return first, body, nil
		}
	}
	d.runs[o.in].reach(o.row)
	docs := &d.m.in[o.in].docs
	p, err := docs.stored(o.row)
	if err != nil {
		return 0, nil, err
	}
	n, err := docs.length(p, o.row)
	if err != nil {
		return 0, nil, err
	}
	d.m.documentBytes += int64(n)
	first, body = p[0], p[1:]
	switch {
	case first&methodMask == documentZstd && n >= largeDocument: // of a file of format 1
	case d.first[o.in] != nil:
		return d.first[o.in][first], body, nil
	case first&methodMask >= documentZstd:
		return first, body, nil
	}
	if d.doc, err = docs.append(d.doc[:0], o.row); err != nil {
		return 0, nil, err
	}
	first, body = w.compress(d.doc)
	return first, body, nil
}

// compress returns the first byte and the rest of a new document, valid until the next call.
func (d *documentMerger) compress(w *documentWriter, doc []byte) (first byte, body []byte) {
	if len(doc) < largeDocument {
		return w.compress(doc)
	}
	table, pieces, size := compressPieces(doc)
	if size >= len(doc) {
		return documentPlain, doc
	}
	d.doc = append(d.doc[:0], table...)
	for _, p := range pieces {
		d.doc = append(d.doc, p...)
	}
	return documentPieces, d.doc
}

// copyDocuments is mergeDocuments for a single input without deleted rows.
func (m *merger) copyDocuments() error {
	if m.o.Document == nil {
		return m.copySections(tagDocs, tagDocIndex, tagDicts)
	}
	m.documentBytes = 0
	return m.mergeDocuments()
}

// bySize returns the numbers of the inputs, that with the most documents first.
func (d *documentMerger) bySize() []int {
	order := make([]int, len(d.m.in))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(d.m.in[b].meta.documentBytes - d.m.in[a].meta.documentBytes)
	})
	return order
}

// keep copies the dictionaries of input i to the output, if they fit.
func (d *documentMerger) keep(i int, dicts []*dictionary) bool {
	all := d.dicts
	first := make([]byte, 256)
	for b := range first {
		first[b] = byte(b)
	}
	for n, x := range dicts {
		content := x.Bytes()
		at := slices.IndexFunc(all, func(y []byte) bool { return bytes.Equal(content, y) })
		if at < 0 {
			at = len(all)
			all = append(all, content)
		}
		for method := range byte(methodMask + 1) {
			first[byte(n+1)<<methodBits|method] = byte(at+1)<<methodBits | method
		}
	}
	if len(all) > maxDictionaries {
		return false
	}
	d.dicts, d.first[i] = all, first
	return true
}

// writer returns the compressor for the documents that are not copied. It uses the first dictionary of the output, or makes one from
// samples of these documents.
func (d *documentMerger) writer(again []int) (documentWriter, error) {
	w := documentWriter{chosen: true}
	if len(d.dicts) > 0 {
		w.dict, w.dictByte = newEncodingDictionary(s2.NewDict(d.dicts[0])), 1<<methodBits
		return w, nil
	}
	live := 0
	for _, o := range d.m.origins {
		if slices.Contains(again, int(o.in)) {
			live++
		}
	}
	var samples [][]byte
	size := 0
	step := max(1, live/(sampleBytes>>10)) // about this many documents of 1 KiB
	seen := 0
	for _, o := range d.m.origins {
		if !slices.Contains(again, int(o.in)) {
			continue
		}
		if seen++; seen%step > 0 || size >= sampleBytes {
			continue
		}
		doc, err := d.m.in[o.in].docs.append(nil, o.row)
		if err != nil {
			return w, err
		}
		d.m.read(len(doc))
		samples = append(samples, doc)
		size += min(len(doc), sampleDocument)
	}
	if size >= minSampleBytes && len(samples) >= minSampleDocuments {
		if w.dict = makeDictionary(samples, min(size/dictionaryShare, s2.MaxDictSize)); w.dict != nil {
			w.dictByte = 1 << methodBits
			d.dicts = append(d.dicts, w.dict.Bytes())
		}
	}
	return w, nil
}
