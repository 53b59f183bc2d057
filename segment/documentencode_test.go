package segment

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/s2"
)

// decodesAs fails unless both the library and our decoder decode a block as doc.
func decodesAs(t *testing.T, d *encodingDictionary, block, doc []byte) {
	t.Helper()
	if got, err := d.Decode(nil, block); err != nil || !bytes.Equal(got, doc) {
		t.Fatalf("%q: the library decodes %q (%v)", doc, got, err)
	}
	if got, err := newDictionary(d.Bytes()).Decode(make([]byte, len(doc)), block); err != nil || !bytes.Equal(got, doc) {
		t.Fatalf("%q is decoded as %q (%v)", doc, got, err)
	}
}

func TestEncoderRoundTrip(t *testing.T) {
	rng := testRand(t)
	ours, theirs := 0, 0
	for range 30 {
		d, docs := dictionaryOf(rng, 40)
		dict := newEncodingDictionary(d)
		var e documentEncoder
		e.generation = 1<<(32-placeBits) - 3 // the generation soon wraps around
		for _, doc := range docs {
			for n := range 20 {
				docs = append(docs, doc[:min(n, len(doc))])
			}
		}
		for _, doc := range docs {
			if doc = doc[:min(len(doc), largeDocument-1)]; rng.IntN(20) == 0 {
				doc = bytes.Repeat(doc, largeDocument/(len(doc)+1))
			}
			block := e.encode(dict, doc)
			decodesAs(t, dict, block, doc)
			ours += len(block)
			theirs += len(d.EncodeBetter(nil, doc))
		}
	}
	t.Logf("%d bytes, the library %d", ours, theirs)
	if ours > theirs*21/20 {
		t.Errorf("%d bytes, more than the library's %d", ours, theirs)
	}
}

// TestEncoderOfDocuments checks which encoder compresses documents of which size.
func TestEncoderOfDocuments(t *testing.T) {
	rng := testRand(t)
	d, _ := dictionaryOf(rng, 0)
	text := bytes.Repeat(d.Bytes(), 1+largeDocument/len(d.Bytes())) // the dictionary's contents compress well
	ours, theirs := 0, 0
	for _, n := range []int{60, tinyDocument - 1, tinyDocument, shortDocument - 1, shortDocument, largeDocument - 1} {
		at := rng.IntN(len(text) - n)
		doc := text[at : at+n]
		w, own := documentWriter{dict: newEncodingDictionary(d)}, documentEncoder{}
		_, body := w.compress(doc)
		decodesAs(t, w.dict, body, doc)
		if want := own.encode(w.dict, doc); n < tinyDocument || n >= shortDocument {
			if ours++; !bytes.Equal(body, want) {
				t.Errorf("%d bytes are encoded as %q, want %q", n, body, want)
			}
		} else if theirs++; !bytes.Equal(body, d.Encode(nil, doc)) {
			t.Errorf("%d bytes are not encoded as by the library: %q", n, body)
		}
	}
	if ours != 4 || theirs != 2 {
		t.Errorf("%d of ours, %d of the library", ours, theirs)
	}
}

func FuzzEncodeDocument(f *testing.F) {
	f.Add([]byte(`{"id":1,"name":"a name"}, {"id":2,"name":"another name"}`), []byte(`{"id":12,"name":"a name of others"}`), uint16(3))
	f.Fuzz(func(t *testing.T, content, doc []byte, first uint16) {
		d := s2.MakeDictManual(content, first)
		if d == nil || len(doc) >= largeDocument {
			return
		}
		dict := newEncodingDictionary(d)
		var e documentEncoder
		for range 2 {
			decodesAs(t, dict, e.encode(dict, doc), doc)
		}
	})
}
