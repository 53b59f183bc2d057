package segment

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blevesearch/vellum"
	"github.com/blevesearch/vellum/levenshtein"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

func init() { leastLate = 0 } // also for small files

// segmentOfWords writes a segment with a dictionary of several pieces and returns its words.
func segmentOfWords(t *testing.T, rng *rand.Rand, name string) []string {
	t.Helper()
	docs := randomDocs(rng, 2500)
	known := map[string]bool{}
	for _, d := range docs {
		words := map[string][]uint16{}
		for at := range 14 {
			var word strings.Builder
			for range 4 + rng.IntN(9) {
				word.WriteByte('a' + byte(rng.IntN(26)))
			}
			words[word.String()] = []uint16{uint16(at)}
			known[word.String()] = true
		}
		d.words = map[FieldID]map[string][]uint16{1: words}
	}
	r := buildSegment(t, vfs.OS, name, rng, docs, true)
	if n := len(r.section(tagTerms)); n < 3<<pieceBits || len(r.section(tagTermFilter)) == 0 {
		t.Fatalf("the dictionary has %d bytes", n)
	}
	var words []string
	for w := range known {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// said prints what a segment returns for a word: its rows, the number of words with a common prefix, and misspelt forms.
func said(t *testing.T, r *Reader, word string, typos vellum.Automaton) string {
	t.Helper()
	var b strings.Builder
	if p, ok := r.Term([]byte(word)); ok {
		fmt.Fprint(&b, p.Rows().ToArray())
	}
	some, err := r.Begins([]byte(word[:len(word)/2]))
	fmt.Fprint(&b, some, err)
	for at := range r.Splits(word + word) {
		fmt.Fprint(&b, " ", at)
	}
	for _, a := range []vellum.Automaton{nil, typos} {
		it := r.Terms([]byte(word[:2]), nil, a)
		for n := 0; n < 20 && it.Next(); n++ {
			fmt.Fprintf(&b, " %s", it.Word())
		}
		if err := it.Err(); err != nil {
			fmt.Fprint(&b, err)
		}
		it.Close()
	}
	row := Row(len(b.String()) * 31 % r.Rows())
	id := r.DocID(row)
	back, ok := r.RowOf(id)
	fmt.Fprint(&b, id, back == row, ok)
	return b.String()
}

// TestLateSections checks that a segment opened by OpenQuick gives the same answers before and after its late sections are verified.
func TestLateSections(t *testing.T) {
	rng := testRand(t)
	name := filepath.Join(t.TempDir(), "a.seg")
	words := segmentOfWords(t, rng, name)
	want, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if want.late.Load() {
		t.Fatal("Open left sections unverified")
	}
	quick, err := OpenQuick(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer quick.Close()
	lev, err := levenshtein.NewLevenshteinAutomatonBuilder(1, true)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(n int) {
		t.Helper()
		for range n {
			word := words[rng.IntN(len(words))]
			if rng.IntN(3) == 0 {
				word = word[:len(word)-1] + "q"
			}
			typos, err := lev.BuildDfa(word, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := said(t, quick, word, typos), said(t, want, word, typos); got != want {
				t.Fatalf("%s: %s, want %s", word, got, want)
			}
		}
	}
	if _, ok := quick.Term([]byte(words[0])); !ok {
		t.Errorf("%s is no word", words[0])
	}
	right := 0
	for i := range quick.rightPieces {
		for b := quick.rightPieces[i].Load(); b != 0; b &= b - 1 {
			right++
		}
	}
	if pieces := len(quick.section(tagTerms)) >> pieceBits; !quick.late.Load() || right == 0 || right > pieces/2 {
		t.Errorf("%d pieces of %d are right, late %t", right, pieces, quick.late.Load())
	}
	compare(200)
	if !quick.late.Load() {
		t.Error("no section was late")
	}
	quick.ReadAhead()
	compare(50)
	quick.ahead.reading.Wait()
	if quick.late.Load() {
		t.Error("sections are late after the read-ahead")
	}
	compare(50)
}

// TestDamageOfLateSections checks that damage in a late section is found before an answer uses it, and that the read-ahead
// reports it like Open.
func TestDamageOfLateSections(t *testing.T) {
	rng := testRand(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "a.seg")
	words := segmentOfWords(t, rng, name)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := openSegment(t, vfs.OS, name)
	lev, err := levenshtein.NewLevenshteinAutomatonBuilder(1, true)
	if err != nil {
		t.Fatal(err)
	}
	met := map[tag]int{}
	for _, tag := range []tag{tagTerms, tagDocIDs, tagTermFilter} {
		s := sectionOf(sound, tag)
		for i := range 15 {
			damaged := slices.Clone(sound)
			damaged[s.offset+rng.Int64N(s.length)] ^= 1 << rng.IntN(8)
			file := filepath.Join(dir, "b.seg")
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := OpenQuick(vfs.OS, file)
			if apierr.IsCorruption(err) { // in a block at an end, where all was verified
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			told := 0
			r.OnDamage(func(d *apierr.Corruption) {
				if d.Section != tag.String() || !d.Fatal {
					t.Errorf("damage of %v is reported as %+v", tag, d)
				}
				told++
			})
			for range 10 {
				word := words[rng.IntN(len(words))]
				typos, err := lev.BuildDfa(word, 1)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				err = mapped.Guard(func() error {
					got = said(t, r, word, typos)
					return nil
				})
				switch {
				case err == nil:
					if want := said(t, want, word, typos); got != want {
						t.Fatalf("a damaged %v answers for %s: %s, want %s", tag, word, got, want)
					}
				case !apierr.IsCorruption(err) || told == 0:
					t.Fatal(err)
				default:
					met[tag]++
				}
			}
			told = 0
			r.ReadAhead()
			r.ahead.reading.Wait()
			if told != 1 || !r.late.Load() {
				t.Errorf("damage %d of %v is reported %d times, late %t", i, tag, told, r.late.Load())
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if met[tagTerms] == 0 || met[tagDocIDs] == 0 || met[tagTermFilter] != 0 {
		t.Errorf("damage was found so often: %v", met)
	}
}

// TestDamageBesideLateSections damages a section that shares a block with the end of a late one: the file can still be opened.
func TestDamageBesideLateSections(t *testing.T) {
	rng := testRand(t)
	dir := t.TempDir()
	segmentOfWords(t, rng, filepath.Join(dir, "a.seg"))
	r := openSegment(t, vfs.OS, filepath.Join(dir, "a.seg"))
	shared := 0
	for _, late := range r.lateSections() {
		for _, end := range []int64{late.offset, late.offset + late.length - 1} {
			block := end >> blockBits << blockBits
			for _, s := range r.sections {
				from, to := max(s.offset, block), min(s.offset+s.length, block+1<<blockBits)
				if from >= to || kindOf(s.tag).small || s.tag == tagSums {
					continue
				}
				shared++
				damaged := slices.Clone(r.data)
				damaged[from+rng.Int64N(to-from)] ^= 1 << rng.UintN(8)
				name := filepath.Join(dir, fmt.Sprint(shared))
				if err := vfs.WriteFile(vfs.OS, name, damaged); err != nil {
					t.Fatal(err)
				}
				d, err := OpenQuick(vfs.OS, name)
				if err != nil {
					t.Errorf("%v is damaged beside %v: %v", s.tag, late.tag, err)
					continue
				}
				if d.late.Load() {
					t.Errorf("%v is damaged beside %v, which is verified late", s.tag, late.tag)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if shared == 0 {
		t.Error("no section shares a block with a late one")
	}
}
