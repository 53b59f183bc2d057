package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// ask is a read of a segment whose answer is a text.
type ask struct {
	what   string
	answer func(r *Reader) string
}

func postingText(r *Reader, p Posting) string {
	var b strings.Builder
	var at []uint16
	for i := range p.Fields() {
		f := p.Field(i)
		reader := f.Positions()
		rows := f.Rows()
		fmt.Fprint(&b, f.ID(), rows.ToArray())
		for it := rows.Iterator(); it.HasNext(); {
			at = reader.Append(at[:0], Row(it.Next()))
			fmt.Fprint(&b, at)
		}
	}
	fmt.Fprint(&b, p.Rows().ToArray())
	return b.String()
}

// asksOf returns reads that together cover everything that searches read of a sound segment.
func asksOf(t *testing.T, r *Reader) []ask {
	t.Helper()
	var all []ask
	add := func(what string, answer func(r *Reader) string) { all = append(all, ask{what, answer}) }
	fields := r.WordFields()
	slices.Sort(fields)
	for row := range Row(r.Rows()) {
		id := bytes.Clone(r.ExternalID(row))
		add(fmt.Sprint("document ", row), func(r *Reader) string {
			doc, err := r.AppendDocument(nil, row)
			if err != nil {
				panic(err)
			}
			return string(doc)
		})
		add(fmt.Sprint("ids ", row), func(r *Reader) string {
			doc := r.DocID(row)
			of, ok := r.RowOf(doc)
			return fmt.Sprint(doc, of, ok, string(r.ExternalID(row)))
		})
		add("row of "+string(id), func(r *Reader) string { return fmt.Sprint(r.Lookup(id)) })
		doc, err := r.AppendDocument(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.Index(doc, []byte(`"text"`))
		add(fmt.Sprint("concordance ", row), func(r *Reader) string { return concordanceText(r, row, text) })
		add(fmt.Sprint("numbers of words ", row), func(r *Reader) string {
			var n []int
			for _, f := range fields {
				n = append(n, r.WordCount(f, row))
			}
			return fmt.Sprint(n)
		})
	}
	var words, known [][]byte
	it := r.Terms(nil, nil, nil)
	for it.Next() {
		words = append(words, bytes.Clone(it.Word()))
		if r.KnowsNeighbours(it.Posting()) {
			known = append(known, words[len(words)-1])
		}
	}
	for _, w := range words {
		add("word "+string(w), func(r *Reader) string {
			p, _ := r.Term(w)
			return postingText(r, p)
		})
	}
	add("words", func(r *Reader) string {
		it, n := r.Terms(nil, nil, nil), 0
		for it.Next() {
			n++
		}
		if err := it.Err(); err != nil {
			panic(err)
		}
		return fmt.Sprint(n, r.Words())
	})
	if e := r.Elements(); e != nil {
		add("elements", func(r *Reader) string { return elementsText(r.Elements()) })
	}
	add("analysis", func(r *Reader) string { return fmt.Sprint(r.Analysis()) })
	for i := range len(r.prefixes) / prefixEntryBytes {
		key := keyPrefix(leUint64(r.prefixes[i*prefixEntryBytes:]))
		add("prefix "+string(key), func(r *Reader) string {
			p, _ := r.Prefix(key)
			return postingText(r, p)
		})
	}
	for i, a := range known {
		add("neighbours of "+string(a), func(r *Reader) string {
			p, _ := r.Term(a)
			var s strings.Builder
			for n := range min(16, len(known)) { // a part of all pairs, with every word first and second
				b := known[(i+n*n*n)%len(known)]
				q, _ := r.Term(b)
				for _, f := range fields {
					if rows := r.Neighbours(p, q, f); rows != nil {
						fmt.Fprint(&s, string(b), f, rows.ToArray())
					}
				}
			}
			return s.String()
		})
	}
	for f := range FieldID(16) {
		add(fmt.Sprint("presence of ", f), func(r *Reader) string { return fmt.Sprint(r.Present(f).ToArray()) })
		add(fmt.Sprint("keys ", f), func(r *Reader) string { return fmt.Sprint(r.DottedKey(f).ToArray()) })
	}
	add("fields of words", func(r *Reader) string {
		all := r.WordFields()
		slices.Sort(all)
		return fmt.Sprint(all)
	})
	for _, f := range r.ColumnFields() {
		add(fmt.Sprint("column ", f), func(r *Reader) string {
			c := r.Column(f)
			var b strings.Builder
			rows := roaring.New()
			for i := range c.Numbers() {
				c.AddNumberRows(rows, i, i+1)
				fmt.Fprint(&b, c.Number(i), c.NumberCount(i), rows.ToArray())
				rows.Clear()
			}
			for i := range c.Strings() {
				c.AddStringRows(rows, i, i+1)
				fmt.Fprint(&b, string(c.String(i)), string(c.Original(i)), c.StringCount(i), rows.ToArray())
				rows.Clear()
			}
			fmt.Fprint(&b, c.Null().ToArray(), c.Empty().ToArray())
			return b.String()
		})
		add(fmt.Sprint("values of rows in column ", f), func(r *Reader) string {
			c := r.Column(f)
			var b strings.Builder
			var ords []uint32
			for row := range Row(r.Rows()) {
				ords = c.RowNumbers(ords[:0], row)
				ords = c.RowStrings(ords, row)
				fmt.Fprint(&b, ords)
			}
			return b.String()
		})
	}
	add("points", func(r *Reader) string {
		g := r.Geo()
		var b strings.Builder
		for row := range Row(r.Rows()) {
			fmt.Fprintln(&b, fmt.Sprint(g.Point(row)))
		}
		near, boxed := roaring.New(), roaring.New()
		g.AddRowsInCap(near, 1, 2, 3e6)
		g.AddRowsInBox(boxed, 50, 10, -50, -10)
		fmt.Fprint(&b, near.ToArray(), boxed.ToArray(), g.Rows().ToArray())
		return b.String()
	})
	add("shapes", func(r *Reader) string {
		s := r.Shapes()
		box, circle := roaring.New(), roaring.New()
		s.AddRowsMeeting(box, geo.BoxRegion(60, -100, -60, 100))
		s.AddRowsMeeting(circle, geo.CircleRegion(1, 2, 1e6, 9))
		return fmt.Sprint(box.ToArray(), circle.ToArray(), s.Rows().ToArray())
	})
	for _, e := range r.Embedders() {
		for row := range Row(r.Rows()) {
			add(fmt.Sprintf("vectors of row %d for embedder %d", row, e.ID), func(r *Reader) string {
				return fmt.Sprint(r.Vectors(e.ID).Row(nil, row))
			})
		}
		add(fmt.Sprint("sets of embedder ", e.ID), func(r *Reader) string {
			v := r.Vectors(e.ID)
			return fmt.Sprint(v.Count(), v.Rows().ToArray(), v.Given().ToArray(), v.Regenerate().ToArray(), v.Fragment(1).ToArray())
		})
		q := make([]float32, r.Vectors(e.ID).Dimensions())
		for i := range q {
			q[i] = float32(i%3) - 0.5
		}
		for _, k := range []int{3, 1000} {
			add(fmt.Sprintf("%d vectors of embedder %d", k, e.ID), func(r *Reader) string { return fmt.Sprint(r.Vectors(e.ID).Search(nil, q, k, nil)) })
		}
	}
	return all
}

func leUint64(b []byte) (n uint64) {
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}

// TestDamageOfEverySection flips bytes in some blocks of each kind of section: in the first and last block, at the beginning, middle and
// end of each, and in its checksum. It then reads everything. Open must refuse the segment, or each answer must be right or an error that
// names file, section and block. Verify and an inspection must find the damage, also if no answer needs the byte.
func TestDamageOfEverySection(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	fs := vfs.NewMem()
	restore := lowerThresholds(8, 16)
	b := NewBuilder(BuilderOptions{Prefixes: true, Embedders: testEmbedders, Infix: allFields})
	for i, d := range randomDocs(rng, 250) {
		if i%100 == 50 {
			d.raw, d.text = string(largeDoc(rng, 40)), "" // stored in pieces
		}
		addDoc(b, rng, d)
	}
	_, err := b.Write(context.Background(), fs, "x.seg")
	restore()
	if err != nil {
		t.Fatal(err)
	}
	data := readFile(t, fs, "x.seg")
	sound, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer sound.Close()
	asks := asksOf(t, sound)
	var want []string
	for _, q := range asks {
		want = append(want, q.answer(sound))
	}
	sums := sectionOf(data, tagSums)
	for _, kind := range kindsOf(inSegments) {
		at := slices.IndexFunc(sound.sections, func(s section) bool { return s.tag == kind.tag && s.length > 0 })
		if at < 0 {
			t.Errorf("the segment has no section %s", kind.tag)
			continue
		}
		s := sound.sections[at]
		first, last := s.offset>>blockBits, (s.offset+s.length-1)>>blockBits
		met := 0
		blocks := []int64{first}
		for i := range int64(5) {
			blocks = append(blocks, first+(last-first)*(i+1)/5)
		}
		for _, block := range slices.Compact(blocks) {
			from, to := max(s.offset, block<<blockBits), min(s.offset+s.length, (block+1)<<blockBits)
			places := []int64{from, (from + to) / 2, to - 1}
			if block < sums.length/sumBytes {
				places = append(places, sums.offset+sumBytes*block+rng.Int64N(sumBytes))
			}
			for _, place := range places {
				bit := byte(1) << rng.IntN(8)
				data[place] ^= bit
				if damageIsMet(t, data, place, asks, want) {
					met++
				}
				data[place] ^= bit
			}
		}
		if met == 0 {
			t.Errorf("no answer needed a corrupted byte of %s", kind.tag)
		}
	}
}

// damageIsMet reads everything in a segment with a corrupted byte, and reports whether that showed.
func damageIsMet(t *testing.T, data []byte, place int64, asks []ask, want []string) (met bool) {
	t.Helper()
	named := func(what string, err error) {
		var damage *apierr.Corruption
		if !errors.As(err, &damage) {
			t.Errorf("byte %d: %s: %v", place, what, err)
			return
		}
		_, sections, err := parseContainer("x.seg", data)
		if err != nil { // damage in the table
			return
		}
		block := place >> blockBits << blockBits
		right := false // names the block, or the section if that has one checksum
		for _, s := range sections {
			touched := s.offset < block+blockBytes && s.offset+s.length > block && strings.Contains(damage.Section, s.tag.String())
			right = right || touched && damage.Offset == block || damage.Section == s.tag.String() && damage.Offset == s.offset && s.offset <= place && place < s.offset+s.length
		}
		if !right || damage.File != "x.seg" {
			t.Errorf("byte %d: %s: %s, section %s, offset %d: %v", place, what, damage.File, damage.Section, damage.Offset, damage)
		}
	}
	r, err := openBytes(t, data)
	if err != nil {
		named("open", err)
		return true
	}
	defer r.Close()
	for i, q := range asks {
		var got string
		if err := mapped.Guard(func() error {
			got = q.answer(r)
			return nil
		}); err != nil {
			named(q.what, err)
			met = true
		} else if got != want[i] {
			t.Errorf("byte %d: %s: a wrong answer: %.200s, want %.200s", place, q.what, got, want[i])
		}
	}
	if err := r.Inspect(func(int) error { return nil }); err == nil {
		t.Errorf("byte %d: an inspection finds no damage", place)
	} else {
		named("inspection", err)
	}
	if err := r.Verify(); err == nil {
		t.Errorf("byte %d: Verify finds no damage", place)
	}
	return met
}
