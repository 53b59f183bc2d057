package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"svc/internal/vfs"
	"svc/simd"
)

// dictionaryOf makes a dictionary of generated documents, and n+2 more documents of that kind.
func dictionaryOf(r *rand.Rand, n int) (*s2.Dict, [][]byte) {
	words := make([]string, 300)
	for i := range words {
		words[i] = strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(3)) + fmt.Sprint(r.IntN(1000))
	}
	document := func() []byte {
		var b strings.Builder
		fmt.Fprintf(&b, `{"id":%d,"name":"%s","tags":[`, r.IntN(1<<20), words[r.IntN(len(words))])
		for range r.IntN(150) {
			b.WriteString(words[r.IntN(1+r.IntN(len(words)))])
			b.WriteByte(" ,\"a"[r.IntN(4)])
		}
		if r.IntN(4) == 0 {
			b.WriteString(strings.Repeat("ab", r.IntN(100)))
		}
		return []byte(b.String())
	}
	var all []byte
	for len(all) < 4000+r.IntN(80_000) {
		all = append(all, document()...)
	}
	docs := [][]byte{[]byte("x"), all[max(0, len(all)-70_000):]}
	for range n {
		docs = append(docs, document())
	}
	return s2.MakeDict(all, []byte(`{"id":`)), docs
}

// sameDecoding compares our decoder with the library's.
func sameDecoding(t *testing.T, ours *dictionary, theirs *s2.Dict, encoded []byte) {
	t.Helper()
	n, err := s2.DecodedLen(encoded)
	if err != nil || n > 1<<20 {
		return
	}
	withRoom, err := ours.Decode(make([]byte, n, n+simd.DecodedRoom), append(encoded, make([]byte, simd.ElementRoom)...)[:len(encoded)])
	room := bytes.Repeat([]byte{0xAA}, n+8)
	got, gotErr := ours.Decode(room[:n:n], encoded)
	want, wantErr := theirs.Decode(make([]byte, n), encoded)
	if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(withRoom, want) {
		t.Fatalf("%x: with room %v and %v, the same bytes: %v", encoded, err, wantErr, bytes.Equal(withRoom, want))
	}
	if (gotErr == nil) != (wantErr == nil) || gotErr == nil && !bytes.Equal(got, want) {
		t.Fatalf("%x: %v and %v, the same bytes: %v", encoded, gotErr, wantErr, bytes.Equal(got, want))
	}
	// In steps of random size.
	if _, at := binary.Uvarint(encoded); gotErr == nil || at > 0 {
		steps, src := bytes.Repeat([]byte{0xAA}, n+8), encoded[max(at, 0):]
		dst, c := steps[:n:n], ours.start()
		ok := true
		for enough := 1; ok && enough <= n; enough += 1 + enough/3 {
			if ok = ours.decode(&c, dst, src, enough); ok && gotErr == nil && !bytes.Equal(dst[:c.written], got[:c.written]) {
				t.Fatalf("%x: the first %d bytes differ", encoded, c.written)
			}
		}
		ok = ok && ours.decode(&c, dst, src, n) && c.ends(dst, src)
		if ok != (gotErr == nil) || ok && !bytes.Equal(dst, got) || !bytes.Equal(steps[n:], bytes.Repeat([]byte{0xAA}, 8)) {
			t.Fatalf("%x: ok in steps %v, error at once %v", encoded, ok, gotErr)
		}
	}
	if !bytes.Equal(room[n:], bytes.Repeat([]byte{0xAA}, 8)) {
		t.Fatalf("%x: written behind its %d bytes", encoded, n)
	}
}

func TestDictionaryAgainstLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 12 {
		theirs, docs := dictionaryOf(r, 40)
		ours := newDictionary(theirs.Bytes())
		for _, d := range docs {
			for _, encoded := range [][]byte{theirs.Encode(nil, d), theirs.EncodeBetter(nil, d), theirs.EncodeBest(nil, d)} {
				if got, err := ours.Decode(make([]byte, len(d)), encoded); err != nil || !bytes.Equal(got, d) {
					t.Fatalf("a document of %d bytes: %v, the same bytes: %v", len(d), err, bytes.Equal(got, d))
				}
				sameDecoding(t, ours, theirs, encoded)
				for range 60 { // damaged ones
					bad := bytes.Clone(encoded)
					for range 1 + r.IntN(3) {
						bad[r.IntN(len(bad))] = byte(r.Uint32() >> r.IntN(8))
					}
					sameDecoding(t, ours, theirs, bad[:len(bad)-r.IntN(min(len(bad), 3))])
				}
			}
		}
	}
	if newDictionary([]byte("too short")) != nil {
		t.Error("nine bytes are accepted as a dictionary")
	}
}

// TestPlainElements decodes with decodePlain only. It must stop at the elements that it leaves to decode, decode the others correctly, and
// most bytes must come from them.
func TestPlainElements(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	plain, all := 0, 0
	for range 4 {
		theirs, docs := dictionaryOf(r, 40)
		ours := newDictionary(theirs.Bytes())
		for _, doc := range docs {
			encoded := theirs.EncodeBest(nil, doc)
			_, at := binary.Uvarint(encoded)
			dst, src, c := make([]byte, len(doc)), encoded[at:], ours.start()
			for c.written < len(doc) {
				o, s, offset := ours.decodePlain(dst, src, c.written, c.read, c.offset, len(doc))
				if o < c.written || s < c.read || (o == c.written) != (s == c.read) || !bytes.Equal(dst[:o], doc[:o]) {
					t.Fatalf("from %d to %d of %d bytes, %d to %d of the block", c.written, o, len(doc), c.read, s)
				}
				plain += o - c.written
				if c = (dictionaryCursor{o, s, offset}); o < len(doc) && !ours.decode(&c, dst, src, o+1) {
					t.Fatalf("no element at %d of %x", s, src)
				}
			}
			all += len(doc)
		}
	}
	if plain < all/2 {
		t.Errorf("%d of %d bytes come from plain elements", plain, all)
	}
}

// TestRoomAfterDocuments checks that most stored documents may be read past their ends, and none beyond the page of its last byte.
func TestRoomAfterDocuments(t *testing.T) {
	rng := testRand(t)
	docs := randomDocs(rng, 1000)
	r := buildSegment(t, vfs.NewMem(), "a.seg", rng, docs, false)
	roomy := 0
	for row := range docs {
		p, err := r.docs.stored(uint32(row))
		if err != nil {
			t.Fatal(err)
		}
		if all := p[:cap(p)]; (r.blocks.offset(p)+len(p)-1)>>blockBits != (r.blocks.offset(p)+len(all)-1)>>blockBits {
			t.Fatalf("row %d: %d bytes at %d, with room %d", row, len(p), r.blocks.offset(p), cap(p))
		}
		if cap(p)-len(p) >= simd.ElementRoom {
			roomy++
		}
	}
	if roomy < len(docs)*9/10 {
		t.Errorf("%d of %d documents have room", roomy, len(docs))
	}
}

func FuzzDictionary(f *testing.F) {
	theirs, docs := dictionaryOf(rand.New(rand.NewPCG(8, 8)), 40)
	ours := newDictionary(theirs.Bytes())
	for _, d := range docs[:10] {
		f.Add(theirs.Encode(nil, d))
	}
	f.Add([]byte{20, 0, 'a', 1 << 2 & 0x1c, 0})
	f.Fuzz(func(t *testing.T, encoded []byte) { sameDecoding(t, ours, theirs, encoded) })
}

// BenchmarkDictionary decodes so many documents that the branch predictor cannot learn them.
func BenchmarkDictionary(b *testing.B) {
	theirs, docs := dictionaryOf(rand.New(rand.NewPCG(9, 9)), 4000)
	ours := newDictionary(theirs.Bytes())
	var encoded [][]byte
	size := 0
	for _, d := range docs[2:] {
		encoded = append(encoded, theirs.EncodeBest(nil, d))
		size += len(d)
	}
	room := make([]byte, 1<<17)
	for name, d := range map[string]interface {
		Decode(_, _ []byte) ([]byte, error)
	}{"ours": ours, "library": theirs} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				for _, e := range encoded {
					if _, err := d.Decode(room, e); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
