package segment

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// plainEncoder is the reference implementation of documentEncoder: it looks at one candidate after another.
type plainEncoder struct {
	d          *encodingDictionary
	text       []byte   // content of the dictionary, document, margin
	places     []uint32 // by the hash of shortBytes bytes: generation << placeBits | the last place in the document with such
	generation uint32
}

func (e *plainEncoder) encode(d *encodingDictionary, doc []byte) []byte {
	base := e.begin(d, doc)
	text, end, mark := e.text, base+len(doc), e.generation<<placeBits
	places := (*[1 << documentBits]uint32)(e.places)
	dictLong, dictShort := d.long, d.short
	dst := binary.AppendUvarint(nil, uint64(len(doc)))
	emitted, repeat := base, d.repeat
	for s := base; s <= end-encodeMargin; {
		v := binary.LittleEndian.Uint64(text[s:])
		from, n := 0, 0
		if p := s - repeat; p >= 0 && binary.LittleEndian.Uint32(text[p:]) == uint32(v) {
			from, n = p, matching(text, p, s, base, end)
		}
		place := &places[shortHash(v, documentBits)]
		before := *place
		*place = mark | uint32(s-base)
		if before>>placeBits == e.generation {
			from, n = better(text, base+int(before&(1<<placeBits-1)), s, base, end, from, n)
		}
		if n < enough {
			if p := int(dictShort[shortHash(v, contentBits)]); binary.LittleEndian.Uint32(text[p:]) == uint32(v) {
				from, n = better(text, p, s, base, end, from, n)
				from, n = better(text, int(dictLong[longHash(v, contentBits)]), s, base, end, from, n)
			}
		}
		if n < 4 || n == 4 && s-from >= 1<<11 && s-from != repeat || n < 6 && s-from >= 1<<16 {
			s += 1 + (s-emitted)>>4
			continue
		}
		if n < enough && s < end-encodeMargin { // the next byte may begin a longer match
			w := binary.LittleEndian.Uint64(text[s+1:])
			p := int(dictLong[longHash(w, contentBits)])
			if m := matching(text, p, s+1, base, end); m > n+1 {
				from, n = p, m
				s++
			}
		}
		for s > emitted && from > 0 && from != base && text[from-1] == text[s-1] {
			from, s, n = from-1, s-1, n+1
		}
		dst = appendLiteral(dst, text[emitted:s])
		if offset := s - from; offset == repeat {
			dst = appendRepeat(dst, n)
		} else {
			dst, repeat = appendCopy(dst, offset, n), offset
		}
		for i := s + 1; i < min(s+n, end-encodeMargin); i += 8 {
			places[shortHash(binary.LittleEndian.Uint64(text[i:]), documentBits)] = mark | uint32(i-base)
		}
		s += n
		emitted = s
	}
	return appendLiteral(dst, text[emitted:end])
}

func (e *plainEncoder) begin(d *encodingDictionary, doc []byte) int {
	base := len(d.content)
	if e.d != d {
		e.d = d
		d.once.Do(d.index)
		e.text = append(make([]byte, 0, base+4<<10), d.content...)
	}
	if e.places == nil {
		e.places = make([]uint32, 1<<documentBits)
	}
	e.text = append(append(e.text[:base], doc...), make([]byte, encodeMargin)...)
	if e.generation++; e.generation == 1<<(32-placeBits) {
		clear(e.places)
		e.generation = 1
	}
	return base
}

// better returns the place and length of the longer of two matches with s: that at p, and one that is known.
func better(text []byte, p, s, base, end, from, n int) (int, int) {
	if binary.LittleEndian.Uint32(text[p:]) != binary.LittleEndian.Uint32(text[s:]) {
		return from, n
	}
	if m := matching(text, p, s, base, end); m > n {
		return p, m
	}
	return from, n
}

// copiesOf counts the copies of a block by their length, up to 8.
func copiesOf(t *testing.T, block []byte) (counts [9]int) {
	t.Helper()
	_, at := binary.Uvarint(block)
	for at < len(block) {
		op := block[at]
		n := int(op>>2) + 1
		switch op & 3 {
		case 0:
			switch n {
			case 61:
				n = int(block[at+1]) + 1
				at++
			case 62:
				n = int(binary.LittleEndian.Uint16(block[at+1:])) + 1
				at += 2
			}
			at += n
		case tagCopy1:
			if n = int(op>>2&7) + 4; op>>5 == 0 && block[at+1] == 0 && n >= 9 { // a repetition with a length behind it
				n, at = 8, at+n-8
			}
			at++
		case tagCopy2:
			at += 2
		default:
			at += 4
		}
		if at++; op&3 != 0 {
			counts[min(n, 8)]++
		}
	}
	if at != len(block) {
		t.Fatalf("an element ends at %d of %d", at, len(block))
	}
	return counts
}

// TestEncoderIsPlain compares the blocks of documentEncoder with those of its reference implementation.
func TestEncoderIsPlain(t *testing.T) {
	rng := testRand(t)
	var counts [9]int
	for range 20 {
		d, docs := dictionaryOf(rng, 40)
		dict := newEncodingDictionary(d)
		for range 40 {
			docs = append(docs, mixed(rng, dict.content))
		}
		var e documentEncoder
		var plain plainEncoder
		for _, doc := range docs {
			doc = doc[:min(len(doc), largeDocument-1)]
			block, want := e.encode(dict, doc), plain.encode(dict, doc)
			if !bytes.Equal(block, want) {
				t.Fatalf("%q is encoded as\n%q, want\n%q with %q", doc, block, want, dict.content)
			}
			decodesAs(t, dict, block, doc)
			for n, c := range copiesOf(t, block) {
				counts[n] += c
			}
		}
	}
	for n := 4; n < len(counts); n++ { // shorter than what is compared at once, and not
		if counts[n] < 10 {
			t.Errorf("%d copies of %d bytes: %v", counts[n], n, counts)
		}
	}
}

// mixed returns a document of pieces of the dictionary, also of its ends, of noise of few and of many letters, and of itself.
func mixed(rng *rand.Rand, content []byte) (doc []byte) {
	for range rng.IntN(60) {
		n := 1 + rng.IntN(40)
		switch rng.IntN(6) {
		case 0:
			doc = append(doc, content[len(content)-min(n, len(content)):]...)
		case 1:
			doc = append(doc, content[:min(n, len(content))]...)
		case 2:
			at := rng.IntN(len(content))
			doc = append(doc, content[at:min(at+n, len(content))]...)
		case 3:
			for range n {
				doc = append(doc, 'a'+byte(rng.IntN(2)))
			}
		case 4:
			for range n * rng.IntN(12) {
				doc = append(doc, byte(rng.Uint32()))
			}
		default:
			if len(doc) > 0 {
				at := rng.IntN(len(doc))
				doc = append(doc, doc[at:min(at+n, len(doc))]...)
			}
		}
	}
	return doc
}
