package segment

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

func allFields(FieldID) bool { return true }

// lowerInfix enables infix indexes for small columns. With few slots, some blocks are false positives.
func lowerInfix(slots, block int) (restore func()) {
	was, least, size := infixSlots, MinInfixBytes, InfixBlockBytes
	infixSlots, MinInfixBytes, InfixBlockBytes = slots, 1, block
	return func() { infixSlots, MinInfixBytes, InfixBlockBytes = was, least, size }
}

// infixTexts returns random texts of few letters, so that their parts are frequent.
func infixTexts(rng *rand.Rand, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteString([]string{"a", "b", "c", "ab", "é", "日本", " ", "\x00"}[rng.IntN(8)])
		}
		texts[i] = b.String()
	}
	return texts
}

// infixSegment writes texts to the fields 1, with an infix index, and 2, without.
func infixSegment(t testing.TB, fs vfs.FS, name string, first DocID, texts []string) *Reader {
	t.Helper()
	b := NewBuilder(BuilderOptions{Infix: func(f FieldID) bool { return f == 1 }})
	for i, s := range texts {
		b.StartDoc(first+DocID(i), fmt.Append(nil, int(first)+i), []byte(`{}`))
		for f := FieldID(1); f <= 2 && s != ""; f++ {
			b.Present(f)
			b.String(f, []byte(s), []byte(s))
		}
		b.EndDoc()
	}
	if _, err := b.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
	return openSegment(t, fs, name)
}

// checkInfix compares each kind of infix search with a scan of all strings. It returns the number of strings that the index ruled out.
func checkInfix(t *testing.T, name string, rng *rand.Rand, c *Column) (ruledOut int) {
	t.Helper()
	for range 40 {
		part := []byte(infixTexts(rng, 1)[0])
		if c.Strings() > 0 && rng.IntN(2) == 0 {
			s := c.String(rng.IntN(c.Strings()))
			from := rng.IntN(len(s) + 1)
			part = s[from : from+rng.IntN(len(s)-from+1)]
		}
		holds := func(ord int) bool { return bytes.Contains(c.String(ord), part) }
		ranges, n, ok := c.MayContain(part)
		if ok != (c.Infixed() && len(part) >= gramBytes) {
			t.Fatalf("%s: %q: ok %v", name, part, ok)
		}
		if !ok {
			ranges, n = []OrdinalRange{{0, c.Strings()}}, c.Strings()
		}
		next, count := 0, 0
		for _, r := range append(ranges, OrdinalRange{c.Strings(), c.Strings()}) {
			for ; next < r.Lo; next++ {
				if ruledOut++; holds(next) {
					t.Fatalf("%s: %q: the index ruled out string %d, %q, which contains it", name, part, next, c.String(next))
				}
			}
			next, count = r.Hi, count+r.Hi-r.Lo
		}
		if count != n {
			t.Fatalf("%s: %q: %d candidates, %d are counted", name, part, count, n)
		}
		lo := rng.IntN(c.Strings() + 1)
		hi := lo + rng.IntN(c.Strings()-lo+1)
		want := lo
		for want < hi && !holds(want) {
			want++
		}
		if got := c.SearchPart(part, lo, hi); got != want {
			t.Fatalf("%s: SearchPart(%q, %d, %d) = %d, want %d", name, part, lo, hi, got, want)
		}
	}
	return ruledOut
}

// TestInfixRandom compares built, merged, copied and separate infix indexes with scans of all strings.
func TestInfixRandom(t *testing.T) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 1))
	defer lowerInfix([]int{1, 16, 256, 2048}[rng.IntN(4)], 1+rng.IntN(60))()
	fs := vfs.NewMem()
	texts := infixTexts(rng, 300)
	texts[0], texts[299] = "abc", "cab"
	a, b := infixSegment(t, fs, "a.seg", 0, texts[:200]), infixSegment(t, fs, "b.seg", 200, texts[200:])
	check := func(name string, r *Reader, fields ...FieldID) (ruledOut int) {
		t.Helper()
		if err := r.Verify(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for f := FieldID(1); f <= 2; f++ {
			c := r.Column(f)
			want := false
			for _, x := range fields {
				want = want || x == f
			}
			if c == nil || c.Infixed() != want || c.LacksInfix() == want {
				t.Fatalf("%s: field %d: %v", name, f, c)
			}
			ruledOut += checkInfix(t, name, rng, c)
		}
		return ruledOut
	}
	ruledOut := check("built", a, 1) + check("built", b, 1)
	for name, o := range map[string]MergeOptions{"kept": {}, "other": {Infix: func(f FieldID) bool { return f == 2 }}, "both": {Infix: allFields},
		"none": {Infix: func(FieldID) bool { return false }}} {
		fields := map[string][]FieldID{"kept": {1}, "other": {2}, "both": {1, 2}}[name]
		for way, in := range map[string][]Live{"copied": {{Reader: a}}, "rewritten": {{Reader: a, Deleted: roaring.BitmapOf(3, 5)}}, "merged": {{Reader: a}, {Reader: b}}} {
			name := name + " " + way
			if _, err := Merge(context.Background(), fs, name, in, o); err != nil {
				t.Fatal(err)
			}
			ruledOut += check(name, openSegment(t, fs, name), fields...)
		}
	}
	if infixSlots >= 256 && ruledOut == 0 {
		t.Error("the indexes ruled out no string")
	}
}

// TestInfixBits compares the bits of all slots with those that single trigrams set, for fewer and more blocks than a word has bits.
func TestInfixBits(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		texts := infixTexts(rng, rng.IntN(600))
		slices.Sort(texts)
		restore := lowerInfix([]int{1, 16, 256, 2048}[rng.IntN(4)], 1+rng.IntN(60))
		at := func(ord int) []byte { return []byte(texts[ord]) }
		first, size := infixBlocks(len(texts), at)
		got := appendInfix(nil, first, len(texts), at, func(int) {})
		if want := len(strings.Join(texts, "")); size != want {
			t.Fatalf("seed %d: %d bytes of strings, want %d", seed, size, want)
		}
		table := make([]byte, infixSlots*infixStride(len(first)))
		block := -1
		for ord, text := range texts {
			if block+1 < len(first) && int(first[block+1]) == ord {
				block++
			}
			for i := range max(len(text)-gramBytes+1, 0) {
				slot := slotOf(firstGram([]byte(text[i:])), infixSlots)
				table[slot*infixStride(len(first))+block/8] |= 1 << (block % 8)
			}
		}
		restore()
		if !bytes.Equal(got[infixTableAt(len(first)):], table) {
			t.Fatalf("seed %d: the bits of %d blocks differ", seed, len(first))
		}
	}
}

// TestInfixOfAnotherColumn checks that an index is not used for a replaced column, and that an index of another version is ignored.
func TestInfixOfAnotherColumn(t *testing.T) {
	defer lowerInfix(64, 16)()
	fs := vfs.NewMem()
	r := infixSegment(t, fs, "a.seg", 0, []string{"one text", "another one", "and one more of these"})
	if !r.Column(1).Infixed() || r.openInfix(1, r.columns.Load().of[1].checksum+1) != nil || r.openInfix(2, r.columns.Load().of[2].checksum) != nil {
		t.Error("an index is used for another column")
	}
	data := bytes.Clone(r.data)
	s := sectionOf(data, tagInfix)
	data[s.offset+4] = infixVersion + 1
	other := &Reader{data: data, sections: r.sections}
	other.blocks.sound.Store(true)
	if entries, err := other.infixEntries(); entries != nil || err != nil {
		t.Errorf("another version: %v, %v", entries, err)
	}
	for _, at := range []int64{0, 12, 16, 32, 40} { // fields that determine lengths
		data := bytes.Clone(r.data)
		data[s.offset+at+2] ^= 0x55
		other := &Reader{data: data, sections: r.sections}
		other.blocks.sound.Store(true)
		if entries, err := other.infixEntries(); err == nil {
			t.Errorf("damage at %d gives %v", at, entries)
		}
	}
}

// TestShortColumnsHaveNoInfix checks the minimum size of columns with an index.
func TestShortColumnsHaveNoInfix(t *testing.T) {
	fs := vfs.NewMem()
	for _, n := range []int{MinInfixBytes/1000 - 1, MinInfixBytes/1000 + 1} {
		var texts []string
		for i := range n {
			texts = append(texts, fmt.Sprintf("%01000d", i))
		}
		c := infixSegment(t, fs, fmt.Sprint(n), 0, texts).Column(1)
		if c.Infixed() != (n*1000 >= MinInfixBytes) || c.LacksInfix() {
			t.Errorf("%d bytes: %v", n*1000, c.Infixed())
		}
	}
}

// TestInfixBesideASegment checks indexes in a column file, and after a merge takes them in.
func TestInfixBesideASegment(t *testing.T) {
	defer lowerInfix(256, 16)()
	fs := vfs.NewMem()
	_, host, set := besideSegments(t, fs, 300)
	writeBeside(t, fs, host, "x.col", set)
	if err := VerifyFile(fs, "x.col"); err != nil {
		t.Fatal(err)
	}
	side, err := host.OpenColumns(fs, "x.col")
	if err != nil {
		t.Fatal(err)
	}
	host.AttachColumns(side)
	if _, err := Merge(context.Background(), fs, "merged", []Live{{Reader: host}}, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Reader{"beside": host, "merged": openSegment(t, fs, "merged")} {
		for f, want := range map[FieldID]bool{500: false, 501: true, 502: false, 503: true} {
			c := r.Column(f)
			if c.Infixed() != want {
				t.Errorf("%s: field %d has an index: %v", name, f, !want)
			}
			checkInfix(t, name, rand.New(rand.NewPCG(1, uint64(f))), c)
		}
	}
}

// BenchmarkInfixWrite writes columns of names and of descriptions, with and without infix indexes and without words, so that the index is
// the largest possible share. It counts the bytes of columns, without documents.
func BenchmarkInfixWrite(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var words []string
	for range 5000 {
		var w strings.Builder
		for range 1 + rng.IntN(4) {
			w.WriteString([]string{"tion", "er", "in", "st", "ma", "ble", "o", "qua", "the", "re", "s", "con"}[rng.IntN(12)])
		}
		words = append(words, w.String())
	}
	for name, n := range map[string]int{"names": 3, "descriptions": 40} {
		texts := make([]string, 20000)
		for i := range texts {
			for range n {
				texts[i] += words[int(5000*rng.Float64()*rng.Float64())] + " "
			}
		}
		for _, infix := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/infix=%v", name, infix), func(b *testing.B) {
				var r *Reader
				for b.Loop() {
					fs := vfs.NewMem()
					x := NewBuilder(BuilderOptions{Infix: func(FieldID) bool { return infix }})
					for i, s := range texts {
						x.StartDoc(DocID(i), fmt.Append(nil, i), fmt.Appendf(nil, `{"t":%q}`, s))
						x.Present(1)
						x.String(1, []byte(s), []byte(s))
						x.EndDoc()
					}
					if _, err := x.Write(context.Background(), fs, "a.seg"); err != nil {
						b.Fatal(err)
					}
					r = openSegment(b, fs, "a.seg")
				}
				b.ReportMetric(float64(len(r.section(tagColumns))+len(r.section(tagInfix))), "column-bytes")
				b.ReportMetric(float64(r.Info().Bytes), "file-bytes")
			})
		}
	}
}
