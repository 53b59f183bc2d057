package segment

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// question reads one thing from a reader.
type question struct {
	name string
	ask  func(r *Reader) any
}

// questions returns reads of small parts that together cover a segment. It needs a sound segment to choose them.
func questions(sound *Reader) []question {
	var all []question
	ask := func(name string, f func(r *Reader) any) { all = append(all, question{name, f}) }
	for row := range Row(sound.Rows()) {
		ask(fmt.Sprint("document ", row), func(r *Reader) any {
			doc, err := r.docs.append(nil, uint32(row)) // bypasses the cache, which all readers share
			if err != nil {
				panic(err)
			}
			return string(doc)
		})
		ask(fmt.Sprint("ids ", row), func(r *Reader) any {
			found, ok := r.RowOf(r.DocID(row))
			return fmt.Sprint(r.DocID(row), string(r.ExternalID(row)), found, ok)
		})
		id := sound.ExternalID(row)
		ask(fmt.Sprint("lookup ", row), func(r *Reader) any {
			found, ok := r.Lookup(id)
			return fmt.Sprint(found, ok)
		})
		ask(fmt.Sprint("word counts ", row), func(r *Reader) any {
			var counts []int
			for f := range FieldID(12) {
				counts = append(counts, r.WordCount(f, row))
			}
			return fmt.Sprint(counts)
		})
	}
	posting := func(p Posting, ok bool) any {
		s := fmt.Sprint(ok, p.Rows())
		for i := range p.Fields() {
			f := p.Field(i)
			reader := f.Positions()
			s += fmt.Sprint(f.ID(), f.Rows())
			for it := f.Rows().Iterator(); it.HasNext(); {
				s += fmt.Sprint(reader.Append(nil, Row(it.Next())))
			}
		}
		return s
	}
	it := sound.Terms(nil, nil, nil)
	for n := 0; it.Next(); n++ {
		if n%5 > 0 {
			continue
		}
		word := bytes.Clone(it.Word())
		ask("word "+string(word), func(r *Reader) any { return posting(r.Term(word)) })
	}
	ask("words", func(r *Reader) any {
		var words []string
		it := r.Terms(nil, nil, nil)
		for it.Next() {
			words = append(words, string(it.Word()))
		}
		if it.Err() != nil {
			panic(it.Err())
		}
		return strings.Join(words, " ")
	})
	for _, p := range []string{"a", "b", "aa", "é", "日", "z"} {
		ask("prefix "+p, func(r *Reader) any { return posting(r.Prefix([]byte(p))) })
	}
	for f := range FieldID(12) {
		ask(fmt.Sprint("presence ", f), func(r *Reader) any { return fmt.Sprint(r.Present(f), r.DottedKey(f)) })
	}
	ask("columns", func(r *Reader) any { return fmt.Sprint(r.ColumnFields()) })
	for _, f := range sound.ColumnFields() {
		for name, part := range map[string]func(c *Column, s *strings.Builder){
			"numbers": func(c *Column, s *strings.Builder) {
				for ord := range c.Numbers() {
					b := roaring.New()
					c.AddNumberRows(b, ord, ord+1)
					fmt.Fprint(s, c.Number(ord), c.NumberCount(ord), b)
				}
			},
			"strings": func(c *Column, s *strings.Builder) {
				for ord := range c.Strings() {
					b := roaring.New()
					c.AddStringRows(b, ord, ord+1)
					fmt.Fprintf(s, "%s %s %d %v", c.String(ord), c.Original(ord), c.StringCount(ord), b)
				}
			},
			"rows": func(c *Column, s *strings.Builder) {
				fmt.Fprint(s, c.Null(), c.Empty())
				for row := range Row(sound.Rows()) {
					fmt.Fprint(s, c.RowNumbers(nil, row), c.RowStrings(nil, row))
				}
			},
		} {
			ask(fmt.Sprint(name, " of column ", f), func(r *Reader) any {
				var s strings.Builder
				part(r.Column(f), &s)
				return s.String()
			})
		}
	}
	ask("points", func(r *Reader) any {
		b := roaring.New()
		r.Geo().AddRowsInBox(b, 60, -100, -60, 100)
		return fmt.Sprint(r.Geo().Rows(), b)
	})
	ask("shapes", func(r *Reader) any { return fmt.Sprint(r.Shapes().Rows()) })
	for _, e := range sound.Embedders() {
		ask(fmt.Sprint("sets of embedder ", e.ID), func(r *Reader) any {
			v := r.Vectors(e.ID)
			return fmt.Sprint(v.Rows(), v.Given(), v.Regenerate(), v.Fragment(1))
		})
		for row := range Row(sound.Rows()) {
			ask(fmt.Sprint("vectors of embedder ", e.ID, " in row ", row), func(r *Reader) any {
				d, ok := r.Vectors(e.ID).Row(nil, row)
				return fmt.Sprint(d, ok)
			})
		}
		q := make([]float32, e.Dimensions)
		q[0], q[1] = 1, 0.5
		ask(fmt.Sprint("search of embedder ", e.ID), func(r *Reader) any { return fmt.Sprint(r.Vectors(e.ID).Search(nil, q, 5, nil)) })
	}
	return all
}

// answer returns the answer of r, or an error if its data is damaged.
func answer(q question, r *Reader) (a any, err error) {
	err = mapped.Guard(func() error {
		a = q.ask(r)
		return nil
	})
	return a, err
}

func answers(t *testing.T, qs []question, r *Reader) []any {
	t.Helper()
	all := make([]any, len(qs))
	for i, q := range qs {
		var err error
		if all[i], err = answer(q, r); err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
	}
	return all
}

// TestDamageIsNeverServed flips a bit: every answer must be right or a corruption error, and no merge may write new checksums for
// the damaged data.
func TestDamageIsNeverServed(t *testing.T) {
	defer lowerThresholds(8, 16)()
	rng := testRand(t)
	for name, data := range map[string][]byte{"today's": bytes.Clone(baseSegment()), "format 1": formatOne(t)} {
		sound, err := openBytes(t, data)
		if err != nil {
			t.Fatal(err)
		}
		qs := questions(sound)
		want := answers(t, qs, sound)
		defer sound.Close()
		opened, damaged, right := 0, 0, 0
		for range 50 {
			at, bit := rng.IntN(len(data)-footerBytes), byte(1)<<rng.IntN(8)
			data[at] ^= bit
			r, err := openBytes(t, data)
			if err == nil {
				opened++
				for i, q := range qs {
					got, err := answer(q, r)
					switch {
					case err != nil && !apierr.IsCorruption(err):
						t.Fatal(err)
					case err != nil:
						damaged++
					case got != want[i]:
						t.Fatalf("%s file: bit %02x of byte %d: %s: got %v, want %v", name, bit, at, q.name, got, want[i])
					default:
						right++
					}
				}
				if _, err := Merge(context.Background(), vfs.NewMem(), "m.seg", []Live{{Reader: r}}, MergeOptions{Prefixes: true}); err == nil && at >= headerBytes && !inPadding(data, at) {
					t.Fatalf("%s file: bit %02x of byte %d was merged", name, bit, at)
				}
				r.Close()
			}
			data[at] ^= bit
		}
		if opened == 0 || damaged == 0 || right < damaged {
			t.Errorf("%s file: %d opened, %d answers were errors, %d right", name, opened, damaged, right)
		}
	}
}

// inPadding reports whether a byte is between sections.
func inPadding(data []byte, at int) bool {
	_, sections, err := parseContainer("x.seg", data)
	if err != nil {
		return false
	}
	for _, s := range sections {
		if int64(at) >= s.offset && int64(at) < s.offset+s.length {
			return false
		}
	}
	return at < len(data)-footerBytes-len(sections)*entryBytes
}

// formatOne returns a file of format 1 with all sections of that format. A program of that version wrote it.
func formatOne(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/format1.seg")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFormatOneIsReadAndRewritten(t *testing.T) {
	defer lowerThresholds(8, 16)()
	old, err := openBytes(t, formatOne(t))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := old.Verify(); err != nil {
		t.Fatal(err)
	}
	have := kindsIn(old)
	for _, k := range sectionKinds {
		if have[k.tag] != (k.since == 1) {
			t.Errorf("%v, since format %d, is present: %v", k.tag, k.since, have[k.tag])
		}
	}
	qs := questions(old)
	want := answers(t, qs, old)
	if !old.blocks.whole[0].Load() {
		t.Error("the documents were read without a check")
	}
	mem := vfs.NewMem()
	if _, err := Merge(context.Background(), mem, "new.seg", []Live{{Reader: old}}, MergeOptions{Prefixes: true}); err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, mem, "new.seg")
	if err := r.Verify(); err != nil || r.footer.version != formatVersion {
		t.Fatal(r.footer.version, err)
	}
	for i, got := range answers(t, qs, r) {
		if got != want[i] {
			t.Errorf("%s: got %v, want %v", qs[i].name, got, want[i])
		}
	}
}

// TestInspectRechecksBlocks damages blocks that were checked before.
func TestInspectRechecksBlocks(t *testing.T) {
	defer lowerThresholds(8, 16)()
	for name, data := range map[string][]byte{"today's": bytes.Clone(baseSegment()), "format 1": formatOne(t)} {
		r, err := openBytes(t, data)
		if err != nil {
			t.Fatal(err)
		}
		var told []*apierr.Corruption
		r.OnDamage(func(d *apierr.Corruption) { told = append(told, d) })
		qs := questions(r)
		want := answers(t, qs, r)
		wait := func(int) error { return nil }
		if err := r.Inspect(wait); err != nil || len(told) > 0 || name == "today's" && !r.blocks.sound.Load() {
			t.Fatalf("%s file: %v, %v, sound %v", name, err, told, r.blocks.sound.Load())
		}
		s := sectionOf(data, tagColumns)
		r.data[s.offset+s.length/2] ^= 8 // this memory stands for the disk
		if err := r.Inspect(wait); !apierr.IsCorruption(err) || len(told) != 1 || !strings.Contains(told[0].Section, "cols") || told[0].Fatal {
			t.Fatalf("%s file: %v, %v", name, err, told)
		}
		damaged := 0
		for i, q := range qs {
			if got, err := answer(q, r); apierr.IsCorruption(err) {
				damaged++
			} else if err != nil || got != want[i] {
				t.Errorf("%s file: %s: got %v, %v", name, q.name, got, err)
			}
		}
		if damaged == 0 {
			t.Errorf("%s file: no answer was an error", name)
		}
		s = sectionOf(data, tagDocIDs)
		r.data[s.offset+1] ^= 8
		told = nil
		if err := r.Inspect(wait); err == nil || len(told) == 0 || !told[0].Fatal {
			t.Errorf("%s file: %v, %v", name, err, told)
		}
		r.Close()
	}
}
