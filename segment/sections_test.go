package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func TestSectionKindsAreComplete(t *testing.T) {
	seen := map[tag]bool{}
	for _, k := range sectionKinds {
		t.Run(k.tag.String(), func(t *testing.T) {
			if seen[k.tag] {
				t.Error("the table has it twice")
			}
			seen[k.tag] = true
			if k.meaning == "" || k.since < 1 || k.since > formatVersion {
				t.Errorf("meaning %q, since format %d", k.meaning, k.since)
			}
			if k.inspect == nil {
				t.Error("it has no printer")
			}
			lead := &k
			if k.with != 0 {
				if lead = kindOf(k.with); lead == nil || lead.with != 0 || !seen[lead.tag] {
					t.Fatalf("it depends on %v, which does not come before it or depends on another one", k.with)
				}
				if k.copy != nil {
					t.Error("it is not copied together with the kind it depends on")
				}
			}
			segments := k.stands(inSegments)
			for name, missing := range map[string]bool{
				"builds": segments && k.build == nil && lead.build == nil, "opens": k.open == nil && lead.open == nil,
				"merges": segments && k.merge == nil && lead.merge == nil, "verifies": k.verify == nil && lead.verify == nil,
			} {
				if missing {
					t.Errorf("nothing %s it", name)
				}
			}
		})
	}
}

func TestSectionKindsHaveEveryTag(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`newTag\("([a-z]{4})"\)`).FindAllSubmatch(src, -1) {
			found++
			if kindOf(newTag(string(m[1]))) == nil {
				t.Errorf("%s: %s is not in the table of sections", name, m[1])
			}
		}
	}
	if found < len(sectionKinds) {
		t.Errorf("%d tags found, the table has %d", found, len(sectionKinds))
	}
}

func TestSectionKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/SEGMENT.md")
	if err != nil {
		t.Fatal(err)
	}
	picture, _, _ := bytes.Cut(text, []byte("### Footer"))
	for _, k := range sectionKinds {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^## ([a-z]{4}, )*%v\b`, k.tag)).Match(text) {
			t.Errorf("docs/SEGMENT.md has no heading for %v, %s", k.tag, k.meaning)
		}
		if !bytes.Contains(picture, []byte(k.tag.String())) {
			t.Errorf("the picture in docs/SEGMENT.md lacks %v", k.tag)
		}
	}
}

// kindsOf returns the kinds that are written into some kind of file. It omits tagOldSigns, which only earlier versions write, and
// tagWideSigns, which replaces tagSigns.
func kindsOf(where files) []sectionKind {
	return slices.DeleteFunc(slices.Clone(sectionKinds), func(k sectionKind) bool { return k.tag == tagOldSigns || k.tag == tagWideSigns || !k.stands(where) })
}

// kindsIn returns the kinds of the sections of a file.
func kindsIn(r *Reader) map[tag]bool {
	have := map[tag]bool{}
	for _, s := range r.sections {
		have[s.tag] = true
	}
	return have
}

// TestEveryKindOfSectionIsWrittenAndMerged also checks that the segments of other tests have every kind of section.
func TestEveryKindOfSectionIsWrittenAndMerged(t *testing.T) {
	defer lowerThresholds(8, 16)()
	mem := vfs.NewMem()
	base, err := openBytes(t, baseSegment())
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	fixedSegment(t, mem, "small.seg")
	readers := map[string]*Reader{"built": base, "small": openSegment(t, mem, "small.seg")}
	for name, deleted := range map[string]*roaring.Bitmap{"copied": nil, "merged": roaring.BitmapOf(1, 17)} {
		if _, err := Merge(context.Background(), mem, name, []Live{{Reader: base, Deleted: deleted}}, MergeOptions{Prefixes: true}); err != nil {
			t.Fatal(err)
		}
		readers[name] = openSegment(t, mem, name)
		if err := readers[name].Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range readers {
		have := kindsIn(r)
		for _, k := range kindsOf(inSegments) {
			if !have[k.tag] && !(name == "small" && (k.tag == tagGraph || k.tag == tagSigns)) { // a graph is too long to print
				t.Errorf("the %s segment has no %v, %s", name, k.tag, k.meaning)
			}
		}
		if !slices.IsSortedFunc(r.sections, func(a, b section) int {
			of := func(s section) int {
				return slices.IndexFunc(sectionKinds, func(k sectionKind) bool { return k.tag == s.tag || k.tag == kindOf(s.tag).with })
			}
			return of(a) - of(b)
		}) {
			t.Errorf("the sections of the %s segment are not in the order of the table", name)
		}
	}
}

func TestDamageOfEveryKindOfSectionIsFoundAndPrinted(t *testing.T) {
	for _, k := range kindsOf(inSegments) {
		data := bytes.Clone(baseSegment())
		s := sectionOf(data, k.tag)
		data[s.offset+s.length/2] ^= 4
		var damage *apierr.Corruption
		if err := openAndVerify(t, data); !errors.As(err, &damage) || damage.Section != k.tag.String() {
			t.Errorf("%v: %v", k.tag, err)
		}
		var printed bytes.Buffer
		if err := Inspect(&printed, oneFile(t, data), "x.seg"); !errors.As(err, &damage) || damage.Section != k.tag.String() {
			t.Errorf("%v: %v", k.tag, err)
		}
		if want := fmt.Sprintf("section %v, %d bytes, CHECKSUM WRONG", k.tag, s.length); !bytes.Contains(printed.Bytes(), []byte(want)) {
			t.Errorf("%v: the print lacks %q", k.tag, want)
		}
	}
}

// TestMergedAnalysis checks that a merge unites the analysis versions of its inputs, and that a copied segment keeps its own.
func TestMergedAnalysis(t *testing.T) {
	mem := vfs.NewMem()
	next := DocID(0)
	write := func(name string, parts []AnalysisPart) Live {
		b := NewBuilder(BuilderOptions{})
		b.StartDoc(next, []byte(name), []byte(`{}`))
		b.EndDoc()
		next++
		b.Analyzed(parts)
		if _, err := b.Write(context.Background(), mem, name); err != nil {
			t.Fatal(err)
		}
		return Live{Reader: openSegment(t, mem, name)}
	}
	old := AnalysisPart{Pipeline: UnrecordedPipeline}
	latin, german, own := AnalysisPart{1, 1, 0}, AnalysisPart{23, 1, 0}, AnalysisPart{23, 1, 5}
	a, b, c, none := write("a", []AnalysisPart{german, latin, german}), write("b", []AnalysisPart{own}), write("c", nil), write("none", []AnalysisPart{})
	for i, test := range []struct {
		in   []Live
		want []AnalysisPart
	}{
		{[]Live{a}, []AnalysisPart{latin, german}},
		{[]Live{c}, []AnalysisPart{old}},
		{[]Live{none}, nil},
		{[]Live{none, b}, []AnalysisPart{own}},
		{[]Live{a, b, c}, []AnalysisPart{latin, german, own, old}},
	} {
		name := fmt.Sprint("merged", i)
		if len(test.in) == 1 {
			if got := test.in[0].Analysis(); !slices.Equal(got, test.want) {
				t.Errorf("%d: analysis %v, want %v", i, got, test.want)
			}
		}
		if _, err := Merge(context.Background(), mem, name, test.in, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, mem, name)
		if got := r.Analysis(); !slices.Equal(got, test.want) {
			t.Errorf("%d: the merged segment has analysis %v, want %v", i, got, test.want)
		}
		if err := r.Verify(); err != nil {
			t.Error(err)
		}
	}
}
