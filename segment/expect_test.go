package segment

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"svc/internal/vfs"
)

// TestExpectedDictionaries checks that dictionaries are loaded only for documents that may read most of their lines, and that documents
// read afterwards are right.
func TestExpectedDictionaries(t *testing.T) {
	rng := testRand(t)
	fsys := vfs.NewMem()
	var loaded, left int
	for round := 0; round < 20 || round < 400 && (loaded == 0 || left == 0); round++ {
		name := fmt.Sprint("s", round)
		n := []int{1, 100 + rng.IntN(1000)}[min(round, 1)] // one document has no dictionary
		docs := documentsOf(rng, "alpha", n)
		b := NewBuilder(BuilderOptions{})
		for i, doc := range docs {
			b.StartDoc(DocID(i), []byte(fmt.Sprint(i)), []byte(doc))
			b.EndDoc()
		}
		if _, err := b.Write(t.Context(), fsys, name); err != nil {
			t.Fatal(err)
		}
		s := openSegment(t, fsys, name)
		rows := make([]Row, 1+rng.IntN(40))
		for i := range rows {
			rows[i] = Row(rng.IntN(n))
		}
		s.ExpectDocuments(rows)
		for _, row := range rows {
			if doc, err := s.AppendDocument(nil, row); err != nil || string(doc) != docs[row] {
				t.Fatalf("document %d is %s, want %s: %v", row, doc, docs[row], err)
			}
		}
		dicts, err := s.docs.dictionaries()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, d := range dicts {
			size += len(d.content)
		}
		want := size > 0 && len(rows)*dictionaryRead >= size
		if got := s.docs.expectDictionaries(len(rows)); got != want {
			t.Errorf("%d bytes of dictionaries, %d documents: loaded %t, want %t", size, len(rows), got, want)
		}
		if want {
			loaded++
		} else {
			left++
		}
	}
	if loaded == 0 || left == 0 {
		t.Errorf("dictionaries were loaded %d times and left %d times", loaded, left)
	}
}

// TestItemsOfATable checks that the prefetched blocks contain all rows and few others.
func TestItemsOfATable(t *testing.T) {
	rng := testRand(t)
	for range 300 {
		at, n, width := rng.IntN(3*blockBytes), 1+rng.IntN(50_000), 1+rng.IntN(8)
		var rows []uint32
		for row := rng.IntN(5000); row < n+10 && len(rows) < 200; row += 1 + rng.IntN(1+rng.IntN(9000)) {
			rows = append(rows, uint32(row))
		}
		want := map[int]bool{}
		for _, row := range rows {
			if int(row) < n {
				want[(at+int(row)*width)>>blockBits] = true
				want[(at+int(row)*width+width-1)>>blockBits] = true
			}
		}
		asked, last, idle := map[int]bool{}, -1, 0
		eachItems(at, n, width, rows, func(from, to int) {
			if from >= to || last >= 0 && from <= last+joinedBlocks {
				t.Fatalf("blocks %d to %d are requested after those before %d", from, to, last)
			}
			for last = from; last < to; last++ {
				if asked[last] = true; want[last] {
					idle = 0
				} else if idle++; idle > joinedBlocks {
					t.Fatalf("block %d is number %d of consecutive blocks without rows", last, idle)
				}
			}
		})
		for i := range want {
			if !asked[i] {
				t.Fatalf("block %d is not requested: %d rows of %d bytes from %d on", i, n, width, at)
			}
		}
	}
}

// TestAskedPieces checks that a piece is requested again only after pieceFresh.
func TestAskedPieces(t *testing.T) {
	var a askedPieces
	rng := rand.New(rand.NewPCG(1, 2))
	const pieces = 200
	for range 3 {
		a.renewed(pieces << pieceBits)
		seen := map[int]bool{}
		for range 1000 {
			i := rng.IntN(pieces)
			if got := a.ask(i); got == seen[i] {
				t.Fatalf("piece %d: requested %t", i, got)
			}
			seen[i] = true
		}
		if a.ask(1 << 20) {
			t.Error("a piece beyond the section is requested")
		}
		if a.renewed(pieces << pieceBits); seen[7] && a.ask(7) {
			t.Error("a piece is requested again at once")
		}
		a.since.Add(-int64(pieceFresh))
	}
	a.renewed(pieces << pieceBits).ask(7)
	a.since.Add(int64(time.Hour)) // the clock is set back
	if !a.renewed(pieces << pieceBits).ask(7) {
		t.Error("a piece is not requested again after the clock was set back")
	}
}
