package segment

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blevesearch/vellum"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
	"svc/segment/fst"
)

// TestScatteredSections lists the sections that are read at random offsets.
func TestScatteredSections(t *testing.T) {
	var tags []string
	for _, k := range sectionKinds {
		if k.scattered {
			tags = append(tags, k.tag.String())
		}
	}
	if got, want := strings.Join(tags, " "), "docs didx conc cdir dids xids xhsh post term tflt pfxp pair wcnt"; got != want {
		t.Errorf("scattered sections are %s, want %s", got, want)
	}
}

// TestScatteredParts checks that adjacent scattered sections form one part, also around empty sections.
func TestScatteredParts(t *testing.T) {
	for what, c := range map[string]struct {
		sections []section
		want     []mapped.Part
	}{
		"no sections":   {},
		"none of them":  {[]section{{tag: tagColumns, offset: 64, length: 9}}, nil},
		"unknown kinds": {[]section{{tag: tag(1), offset: 64, length: 9}}, nil},
		"neighbours": {[]section{{tag: tagDocs, offset: 64, length: 100}, {tag: tagConcord, offset: 192}, {tag: tagMeta, offset: 192},
			{tag: tagDocIndex, offset: 192, length: 10}}, []mapped.Part{{At: 64, Length: 138}}},
		"apart": {[]section{{tag: tagMeta, offset: 64, length: 10}, {tag: tagDocs, offset: 128, length: 100}, {tag: tagColumns, offset: 256, length: 1},
			{tag: tagPostings, offset: 320, length: 7}, {tag: tagPrefixPosts, offset: 384, length: 5}},
			[]mapped.Part{{At: 128, Length: 100}, {At: 320, Length: 69}}},
	} {
		if got := scatteredParts(c.sections); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// crowd makes mapped files exceed memory until the returned function is called.
func crowd(t *testing.T) (end func()) {
	mapped.FitIn(-1) // for any amount of mapped bytes
	t.Cleanup(func() { mapped.FitIn(math.MaxInt64) })
	return func() { mapped.FitIn(math.MaxInt64) }
}

// TestCrowdedSegments checks the contents of a segment while files exceed memory: on the first check of its blocks, and after all
// blocks passed.
func TestCrowdedSegments(t *testing.T) {
	rng := testRand(t)
	for range 3 {
		name := filepath.Join(t.TempDir(), "a.seg")
		docs := randomDocs(rng, 30+rng.IntN(300))
		// One document makes the file large enough for madvise.
		large := make([]byte, 2*leastScattered)
		for i := range large {
			large[i] = 'a' + byte(rng.UintN(26))
		}
		docs[0].raw = fmt.Sprintf(`{"large":"%s"}`, large)
		docs[0].text = ""
		r := buildSegment(t, vfs.OS, name, rng, docs, true)
		end := crowd(t)
		crowded := openSegment(t, vfs.OS, name)
		if !PageByPage() || len(scatteredParts(crowded.sections)) == 0 || len(crowded.data) < leastScattered {
			t.Fatalf("page by page %t, %d bytes", PageByPage(), len(crowded.data))
		}
		rows := []Row{0, Row(rng.IntN(len(docs))), math.MaxUint32}
		crowded.ExpectDocuments(rows)
		crowded.ExpectIDs([]uint32{0, 5, math.MaxUint32})
		crowded.ExpectWordCounts(1, []uint32{0, 5, math.MaxUint32})
		for _, word := range []string{"", "a", "ab", strings.Repeat("é", 9)} {
			crowded.ExpectWord(word, true)
		}
		checkSegment(t, crowded, docs, rng)
		checkAsked(t, crowded)
		if err := crowded.Inspect(func(int) error { return nil }); err != nil {
			t.Error(err)
		}
		if !crowded.blocks.sound.Load() {
			t.Error("the blocks did not pass their checks")
		}
		// Salvaged blocks have no file that could be prefetched.
		salvaged, err := Salvage(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := salvaged.AppendDocument(nil, 0); err != nil || string(raw) != docs[0].raw {
			t.Errorf("%d bytes of the large document are salvaged, want %d: %v", len(raw), len(docs[0].raw), err)
		}
		if err := Inspect(io.Discard, vfs.OS, name); err != nil {
			t.Error(err)
		}
		if err := salvaged.Close(); err != nil {
			t.Error(err)
		}
		checkSegment(t, crowded, docs, rng)
		end()
		checkSegment(t, r, docs, rng)
	}
}

// checkAsked checks that a walk over scattered words prefetches their postings, and that a walk over all words does not.
func checkAsked(t *testing.T, r *Reader) {
	t.Helper()
	for _, scattered := range []bool{false, true} {
		var a vellum.Automaton
		if scattered {
			a = &fst.Budget{Left: maxWordBytes}
		}
		it := r.Terms(nil, nil, a)
		words := 0
		for it.Next() {
			words++
			if want := int(it.walk.Value() >> blockBits); scattered && it.asked != want || !scattered && it.asked >= 0 {
				t.Fatalf("block %d was prefetched at %q of block %d, scattered %t", it.asked, it.Word(), want, scattered)
			}
		}
		if words != r.Words() {
			t.Errorf("%d words, want %d", words, r.Words())
		}
		it.Close()
	}
}

// TestCrowdedMerges checks that a merge writes the same bytes while files exceed memory.
func TestCrowdedMerges(t *testing.T) {
	rng := testRand(t)
	dir := t.TempDir()
	all := randomDocs(rng, 400)
	var in []Live
	for i := range 3 {
		in = append(in, Live{Reader: buildSegment(t, vfs.OS, filepath.Join(dir, fmt.Sprint(i)), rng, slices.Clone(all[i*100:(i+1)*100]), true)})
	}
	merge := func(name string, in []Live) []byte {
		t.Helper()
		name = filepath.Join(dir, name)
		if _, err := Merge(t.Context(), vfs.OS, name, in, MergeOptions{Prefixes: true}); err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for n := 1; n <= 3; n += 2 { // one is copied
		want := merge(fmt.Sprintf("fits%d", n), in[:n])
		end := crowd(t)
		if got := merge(fmt.Sprintf("crowded%d", n), in[:n]); !bytes.Equal(got, want) {
			t.Errorf("%d inputs: the file differs: %d bytes, want %d", n, len(got), len(want))
		}
		end()
	}
}

// TestRun checks that a run prefetches each byte once, before it is read.
func TestRun(t *testing.T) {
	defer crowd(t)()
	rng := rand.New(rand.NewPCG(3, 4))
	section := make([]byte, 10*runStep+5)
	b := &blocks{data: section} // without a file, requests are recorded only
	r := run{blocks: b, section: section}
	for at := 0; at < len(section); at += rng.IntN(runStep / 8) {
		before := r.asked
		r.reach(at)
		if r.asked < min(at+runStep/4, len(section)) {
			t.Fatalf("at %d, requests end at %d", at, r.asked)
		}
		if r.asked != before && r.asked != max(before, at)+runStep {
			t.Fatalf("at %d, requests end at %d, before at %d", at, r.asked, before)
		}
	}
	r.reach(len(section)) // an offset from a damaged file
}

// TestCrowdedCheckSums checks sums piece by piece while files exceed memory. Damage is found as usual.
func TestCrowdedCheckSums(t *testing.T) {
	defer func(n int) { residentBytes = n }(residentBytes)
	residentBytes = inspectBytes / 2
	rng := testRand(t)
	dir := t.TempDir()
	docs := randomDocs(rng, 50)
	large := make([]byte, 3*inspectBytes)
	for i := range large {
		large[i] = 'a' + byte(rng.UintN(26))
	}
	docs[0].raw, docs[0].text = fmt.Sprintf(`{"large":"%s"}`, large), ""
	name := filepath.Join(dir, "a.seg")
	r := buildSegment(t, vfs.OS, name, rng, docs, true)
	crowd(t)
	if len(r.data) < 2*inspectBytes || !PageByPage() {
		t.Fatalf("%d bytes, page by page %t", len(r.data), PageByPage())
	}
	if err := r.CheckSums(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, s := range r.sections {
		if s.length == 0 || kindOf(s.tag).small || s.tag == tagSums {
			continue
		}
		damaged := slices.Clone(r.data)
		at := s.offset + rng.Int64N(s.length)
		damaged[at] ^= 1 << rng.UintN(8)
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := vfs.WriteFile(vfs.OS, name, damaged); err != nil {
			t.Fatal(err)
		}
		var told []string
		d := openSegment(t, vfs.OS, name)
		d.OnDamage(func(c *apierr.Corruption) { told = append(told, c.Section) })
		if err := d.CheckSums(t.Context()); !apierr.IsCorruption(err) || !slices.Equal(told, []string{s.tag.String()}) {
			t.Errorf("byte %d of %v: %v, reported %v", at-s.offset, s.tag, err, told)
		}
	}
}
