package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
	"svc/segment/rowlist"
)

// smallNeighbours shrinks the buffers that gather neighbours until restore is called.
func smallNeighbours(numbers, tail, occurrences int) (restore func()) {
	n, s, w := pairNumbers, spoolTail, windowOccurrences
	pairNumbers, spoolTail, windowOccurrences = numbers, tail, occurrences
	return func() { pairNumbers, spoolTail, windowOccurrences = n, s, w }
}

// neighbourTexts adds documents of words, some of them frequent, and returns the rows to delete. Document i of segment n has the
// number i·of + n.
func neighbourTexts(b *Builder, rng *rand.Rand, documents, words, n, of int) *roaring.Bitmap {
	deleted := roaring.New()
	for row := range documents {
		b.StartDoc(DocID(row*of+n), fmt.Append(nil, n, "-", row), []byte(`{}`))
		for f := range FieldID(3) {
			at := uint16(rng.IntN(3) * rng.IntN(200))
			for range rng.IntN(10) * (1 + rng.IntN(50)/49*20) {
				b.Word(f, neighbourWord(rng.IntN(1+rng.IntN(words))), at)
				if rng.IntN(9) == 0 { // two words at one position
					b.Word(f, fmt.Append(nil, "z", rng.IntN(2)), at)
				}
				at += 1 + uint16(rng.IntN(2)*rng.IntN(2))
			}
		}
		if row/100%2 == 0 { // in every row of a range
			b.Word(1, []byte("often"), 60_000)
			b.Word(1, []byte("so"), 60_001)
		}
		b.EndDoc()
		if rng.IntN(5) == 0 {
			deleted.Add(uint32(row))
		}
	}
	return deleted
}

func neighbourWord(i int) []byte { return fmt.Appendf(nil, "w%03d", i) }

// TestNeighboursMatchPositions builds and merges segments with many pairs of adjacent words, and compares the section with the positions.
func TestNeighboursMatchPositions(t *testing.T) {
	defer lowerThresholds(1<<20, 1<<20)()
	prefixes := unionBytes
	defer func() { unionBytes = prefixes }()
	rng := testRand(t)
	known, deltas, bitmaps := 0, 0, 0
	for round := range 8 {
		restore := smallNeighbours([]int{256 << 10, 10, 100}[round%3], []int{1 << 20, 10, 100}[round%3], []int{128 << 10, 1, 50}[rng.IntN(3)])
		unionBytes = []int{prefixes, 50, 500}[round%3]
		mem := vfs.NewMem()
		words, inputs := 4+rng.IntN(8), 1+rng.IntN(3)
		documents := func() int { return 1 + rng.IntN(200) }
		switch round {
		case 0: // more than are sorted at once
			documents = func() int { return 2*neighbourWindow + rng.IntN(200) }
		case 1: // more than a byte can number
			words, inputs, documents = 400, 2, func() int { return 700 }
			NeighbourRows = 1
		default:
			NeighbourRows = 2
		}
		var in []Live
		for i := range inputs {
			b := NewBuilder(BuilderOptions{Prefixes: true})
			deleted := neighbourTexts(b, rng, documents(), words, i, inputs)
			name := fmt.Sprintf("%d.seg", i)
			if _, err := b.Write(context.Background(), mem, name); err != nil {
				t.Fatal(err)
			}
			r := openSegment(t, mem, name)
			known += compareNeighbours(t, rng, r)
			in = append(in, Live{Reader: r, Deleted: deleted})
		}
		if _, err := Merge(context.Background(), mem, "merged.seg", in, MergeOptions{Prefixes: true}); err != nil {
			t.Fatal(err)
		}
		merged := openSegment(t, mem, "merged.seg")
		known += compareNeighbours(t, rng, merged)
		if round == 1 && len(merged.allNeighbours().words) <= 300*neighbourWordBytes {
			t.Errorf("words take %d bytes, want more than 300 words", len(merged.allNeighbours().words))
		}
		d, b := codesOfPairs(merged)
		deltas, bitmaps = deltas+d, bitmaps+b
		restore()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if known < 100 || deltas == 0 || bitmaps == 0 {
		t.Errorf("%d pairs were known, %d lists of deltas, %d bitmaps", known, deltas, bitmaps)
	}
}

func codesOfPairs(r *Reader) (deltas, bitmaps int) {
	n := r.allNeighbours()
	for i := range n.blockCount() {
		b, _ := n.block(i)
		for k := range b.pairs() {
			if l, _ := b.list(nil, k); l.Code == rowlist.Delta {
				deltas++
			} else {
				bitmaps++
			}
		}
	}
	return deltas, bitmaps
}

// knownPair is a pair of words in a field.
type knownPair struct {
	left, right string
	field       FieldID
}

// compareNeighbours returns the number of pairs in the section.
func compareNeighbours(t *testing.T, rng *rand.Rand, r *Reader) (known int) {
	t.Helper()
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	var words []string
	var postings []Posting
	of := map[FieldID]map[Row]map[uint16][]string{} // the known words by position
	it := r.Terms(nil, nil, nil)
	for it.Next() {
		p, word := it.Posting(), string(it.Word())
		if !r.KnowsNeighbours(p) {
			continue
		}
		words, postings = append(words, word), append(postings, p)
		for k := range p.Fields() {
			f := p.Field(k)
			positions := f.Positions()
			if of[f.ID()] == nil {
				of[f.ID()] = map[Row]map[uint16][]string{}
			}
			for _, row := range f.AppendRows(nil) {
				if of[f.ID()][Row(row)] == nil {
					of[f.ID()][Row(row)] = map[uint16][]string{}
				}
				for _, at := range positions.Append(nil, Row(row)) {
					of[f.ID()][Row(row)][at] = append(of[f.ID()][Row(row)][at], word)
				}
			}
		}
	}
	want := map[knownPair][]uint32{}
	for f, rows := range of {
		for row, line := range rows {
			for at, left := range line {
				for _, a := range left {
					for _, b := range line[at+1] {
						pair := knownPair{a, b, f}
						want[pair] = append(want[pair], uint32(row))
					}
				}
			}
		}
	}
	for pair, rows := range want {
		slices.Sort(rows)
		want[pair] = slices.Compact(rows)
	}
	for i, a := range words {
		for k, b := range words {
			some := rng.IntN(8)
			var together []uint32
			for f := range FieldID(3) {
				if some>>f&1 != 0 {
					together = append(together, want[knownPair{a, b, f}]...)
				}
			}
			slices.Sort(together)
			rows := r.NeighboursIn(postings[i], postings[k], func(f FieldID) bool { return some>>f&1 != 0 })
			if got := rows.ToArray(); !slices.Equal(got, slices.Compact(together)) {
				t.Fatalf("%s %s in fields %b: rows %v, want %v", a, b, some, got, together)
			}
			count, ok := r.CountNeighbours(postings[i], postings[k])
			all := 0
			for f := range FieldID(3) {
				all += len(want[knownPair{a, b, f}])
			}
			if !ok || int(count) != all {
				t.Fatalf("%s %s: %d rows in all fields, known %v, not %d", a, b, count, ok, all)
			}
			for f := range FieldID(3) {
				known++
				all := want[knownPair{a, b, f}]
				var got []uint32
				if rows := r.Neighbours(postings[i], postings[k], f); rows != nil {
					got = rows.ToArray()
				}
				if !slices.Equal(got, all) {
					t.Fatalf("%s %s in field %d: %d, want %d", a, b, f, got, all)
				}
			}
		}
	}
	for range 20 { // sets of words beside each other
		in := func(f FieldID) bool { return f > 0 }
		var left, right []Posting
		union := roaring.New()
		few := 1 + rng.IntN(len(words)+1)
		var behind []string
		for k, b := range words {
			if rng.IntN(few) == 0 {
				right, behind = append(right, postings[k]), append(behind, b)
			}
		}
		for i, a := range words {
			if rng.IntN(few) > 0 {
				continue
			}
			left = append(left, postings[i])
			for _, b := range behind {
				for f := FieldID(1); f < 3; f++ {
					union.AddMany(want[knownPair{a, b, f}])
				}
			}
		}
		bits := make([]uint64, (r.Rows()+63)/64)
		r.AddNeighbours(bits, left, right, in)
		if got := roaring.FromDense(bits, true); !got.Equals(union) {
			t.Fatalf("%d words before %d: %d, want %d", len(left), len(right), got.ToArray(), union.ToArray())
		}
	}
	return known
}

// TestFrequentWords adds more words than are kept: those with the most rows must remain.
func TestFrequentWords(t *testing.T) {
	rng := testRand(t)
	q := newFrequentWords(NeighbourSegmentRows, false)
	rows := make([]uint32, 100_000)
	var most []int
	for i := range 5000 {
		n := rng.IntN(len(rows))
		q.add(fmt.Appendf(nil, "%05d", i), []fieldRows{{rows: rows[:n/2]}, {rows: rows[:n]}}, uint64(i), nil, 0)
		if n >= NeighbourRows {
			most = append(most, n)
		}
	}
	slices.Sort(most)
	slices.Reverse(most)
	words := q.choose()
	if len(words) != maxNeighbourWords {
		t.Fatalf("%d words", len(words))
	}
	for i, w := range words {
		if w.rows < most[maxNeighbourWords-1] || i > 0 && words[i-1].offset >= w.offset {
			t.Fatalf("word %d, %q in %d rows, follows %q", i, w.word, w.rows, words[max(i, 1)-1].word)
		}
	}
	small := newFrequentWords(NeighbourSegmentRows-1, false)
	if small.add([]byte("a"), []fieldRows{{rows: rows}}, 0, nil, 0); len(small.choose()) > 0 {
		t.Error("a small segment keeps words")
	}
}

// TestVerifyOfNeighbours corrupts the section under valid checksums.
func TestVerifyOfNeighbours(t *testing.T) {
	defer lowerThresholds(1<<20, 1<<20)()
	mem := vfs.NewMem()
	b := NewBuilder(BuilderOptions{})
	for row := range 20 {
		b.StartDoc(DocID(row), fmt.Append(nil, row), []byte(`{}`))
		for i := range 5 {
			b.Word(1, neighbourWord((i+row)%4), uint16(i))
			b.Word(2, neighbourWord(i%2), uint16(i))
		}
		b.EndDoc()
	}
	if _, err := b.Write(t.Context(), mem, "x.seg"); err != nil {
		t.Fatal(err)
	}
	data := readFile(t, mem, "x.seg")
	s := sectionOf(data, tagNeighbours)
	// Words 0 to 3 follow each other in field 1, words 0 and 1 in field 2.
	const (
		words  = neighbourHeadBytes
		blocks = words + 4*neighbourWordBytes
		last   = blocks + 5*neighbourBlockBytes
	)
	block := func(p []byte, i int) pairBlock {
		n := neighbourReader{blocks: p[blocks : last+neighbourBlockBytes], section: p}
		b, _ := n.block(i)
		return b
	}
	le := binary.LittleEndian
	for _, c := range []struct {
		what   string
		change func(p []byte)
		want   string
	}{
		{"a word's posting", func(p []byte) { p[words]++ }, "the words are not in order"},
		{"the last word's posting", func(p []byte) { p[blocks-1] = 1 }, "4 words of which 3 have a posting"},
		{"more words", func(p []byte) { le.PutUint32(p, maxNeighbourWords+1) }, "1025 words and 6 blocks in"},
		{"more blocks", func(p []byte) { le.PutUint32(p[4:], 1<<30) }, "4 words and 1073741824 blocks in"},
		{"the order of blocks", func(p []byte) { p[blocks+2] = 1 }, "the block 00010001 follows 00010001"},
		{"a block's word", func(p []byte) { p[blocks+3*neighbourBlockBytes+2] = 9 }, "the block 00010009 is of a word beyond 4"},
		{"a block's place", func(p []byte) { p[blocks+8] += 8 }, "the block 00010000 is not inside, or not behind the one before"},
		{"a block far away", func(p []byte) { p[blocks+15] = 0xff }, "the block 00010000 is not inside, or not behind the one before"},
		{"more pairs", func(p []byte) { p[blocks+7] = 0xff }, "the block 00010000 is not inside, or not behind the one before"},
		{"no pairs", func(p []byte) { p[blocks+4] = 0 }, "the block 00010000 has no pairs"},
		{"one block less", func(p []byte) { p[4]-- }, "the block 00010000 is not inside, or not behind the one before"},
		{"a second word", func(p []byte) { block(p, 0).seconds[0] = 7 }, "the pair 0001.0000.0007 is of a word beyond 4"},
		{"another second word", func(p []byte) { block(p, 0).seconds[0] = 2 }, "no list of the pair 0001.0000.0001, which stands in row 0"},
		{"the end of a list", func(p []byte) { block(p, 0).ends[2] = 0xff }, "the rows of the pair 0001.0000.0001 are not inside"},
		{"an empty list", func(p []byte) { clear(block(p, 0).ends) }, "the rows of the pair 0001.0000.0001 are not inside"},
		{"a shorter list", func(p []byte) { block(p, 5).ends[0]-- }, "the rows of the pair 0002.0001.0000 are not inside"},
		{"a count", func(p []byte) { block(p, 0).lists[0] -= 2 }, "the pair 0001.0000.0001 stands in 20 rows, and has 19"},
		{"a row", func(p []byte) { block(p, 0).lists[2] = 10 }, "row 29 of 20"},
		{"another last row", func(p []byte) { block(p, 1).lists[1] = 1 }, "row 20 of 20"},
		{"another field", func(p []byte) { p[last] = 3 }, "no list of the pair 0002.0001.0000, which stands in row 0"},
		{"a field without words", func(p []byte) { p[last-neighbourBlockBytes], p[last] = 3, 3 }, "no list of the pair 0002.0000.0001, which stands in row 0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			changed := bytes.Clone(data)
			c.change(changed[s.offset : s.offset+s.length])
			fixChecksums(changed)
			err := openAndVerify(t, changed)
			var damage *apierr.Corruption
			if !errors.As(err, &damage) || damage.Section != "pair" {
				t.Fatal(err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
