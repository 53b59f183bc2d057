package segment

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/geo"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixedSegment writes a small segment in which no section is empty.
func fixedSegment(t testing.TB, fs vfs.FS, name string) {
	t.Helper()
	defer lowerThresholds(3, 5)()
	b := NewBuilder(BuilderOptions{Columns: []FieldID{9}, Prefixes: true, Infix: allFields,
		Embedders: []EmbedderShape{{ID: 0, Dimensions: 2}, {ID: 1, Dimensions: 5, Binary: true}, {ID: 6, Dimensions: 32}, {ID: 7, Dimensions: 3, Half: true}}})
	axis := func(at int, length float32) []float32 {
		v := make([]float32, 32)
		v[at] = length
		return v
	}
	b.StartDoc(3, []byte("k1"), []byte(`{"id":"k1","title":"Red cat","tags":["a","B"],"price":3}`))
	for f := range FieldID(4) {
		b.Present(f)
	}
	concord(b, "title", "Red cat")
	b.Word(0, []byte("k1"), 0)
	b.Word(1, []byte("red"), 0)
	b.Word(1, []byte("cat"), 1)
	b.Word(2, []byte("a"), 0)
	b.Word(2, []byte("b"), 8)
	b.WordCount(0, 1)
	b.WordCount(1, 2)
	b.WordCount(2, 40)
	b.String(2, []byte("a"), []byte("a"))
	b.String(2, []byte("b"), []byte("B"))
	b.Number(3, numeric.Of(3))
	b.Geo(48.8566, 2.3522)
	b.EnterElement(5, 1)
	b.ElementPresent(6)
	b.ElementString(6, []byte("a"), []byte("A"))
	b.EnterElement(7, 1)
	b.ElementNumber(8, numeric.Of(2))
	b.ElementPoint(1, 50, 4)
	b.LeaveElement()
	b.LeaveElement()
	b.EnterElement(5, 1)
	b.EnterElement(7, 2)
	b.ElementNull(8, 2)
	b.LeaveElement()
	b.LeaveElement()
	b.Vectors(0, DocVectors{Given: true, Vectors: []float32{0.5, -2}})
	b.Vectors(1, DocVectors{Regenerate: true, Vectors: []float32{0.5, -2, 0, 1, 1}})
	b.Vectors(7, DocVectors{Vectors: []float32{0.1, -2, 1e6}})
	b.Vectors(6, DocVectors{Regenerate: true, Vectors: append(axis(0, 1), axis(1, 3)...), Fragments: []uint16{0, 7}})
	b.EndDoc()
	b.StartDoc(5, []byte("k2"), []byte(`{"id":"k2","title":"cat red","tags":[],"price":null}`))
	for f := range FieldID(4) {
		b.Present(f)
	}
	b.Word(0, []byte("k2"), 0)
	b.Word(1, []byte("cat"), 0)
	b.Word(1, []byte("red"), 1)
	b.Word(1, []byte("cat"), 1000)
	b.WordCount(1, 3)
	b.Empty(2)
	b.Null(3)
	b.Vectors(0, DocVectors{Regenerate: true, Given: true, Vectors: []float32{3, 4}})
	b.Vectors(6, DocVectors{Regenerate: true})
	b.EndDoc()
	b.Analyzed(testAnalysis)
	b.StartDoc(6, []byte("k3"), []byte(`{"id":"k3","size.x":"z"}`))
	b.Present(0)
	b.Present(4)
	b.DottedKey(4)
	b.Word(0, []byte("k3"), 0)
	b.Number(3, numeric.Of(-1.5))
	b.Number(3, numeric.OfUint(1<<53+1))
	b.Vectors(0, DocVectors{Given: true, Vectors: []float32{0, 0}})
	b.Vectors(6, DocVectors{Given: true, Vectors: append(axis(2, 1), axis(0, 0)...)})
	b.Geo(-33.8688, 151.2093)
	b.Shape(&geo.ShapePart{Kind: geo.PolygonShape, Rings: [][]geo.LngLat{{{Lng: 0, Lat: 0}, {Lng: 10, Lat: 0}, {Lng: 10, Lat: 10}, {Lng: 0, Lat: 10}}, {{Lng: 4, Lat: 4}, {Lng: 4, Lat: 6}, {Lng: 6, Lat: 5}}}})
	b.Shape(&geo.ShapePart{Kind: geo.PointShape, Rings: [][]geo.LngLat{{{Lng: 151.2093, Lat: -33.8688}}}})
	b.Shape(&geo.ShapePart{Kind: geo.LineShape, Rings: [][]geo.LngLat{{{Lng: 1.0 / 3, Lat: 50}, {Lng: 2, Lat: 51}}}})
	b.EndDoc()
	for i := range 40 { // enough words for a prefix
		if i == 0 {
			b.StartDoc(8, []byte("k4"), []byte(`{}`))
			b.Vectors(0, DocVectors{Vectors: []float32{1, 0}})
		}
		b.Word(FieldID(i%9), []byte{'z', byte('a' + i/26), byte('a' + i%26)}, uint16(i))
	}
	b.EndDoc()
	if _, err := b.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
}

func TestInspectPrintsEveryByteOfASmallSegment(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "small.seg")
	var got bytes.Buffer
	if err := Inspect(&got, fs, "small.seg"); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/inspect.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		line := func(l []string) string {
			if i < len(l) {
				return l[i]
			}
			return "nothing"
		}
		if g, w := line(gotLines), line(wantLines); g != w {
			t.Fatalf("line %d of %s (rewrite it with -update, and review the difference)\n got %s\nwant %s", i+1, golden, g, w)
		}
	}
}

func TestInspectSkipsDamage(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "small.seg")
	data := readFile(t, fs, "small.seg")
	data[sectionOf(data, tagIDHash).offset] ^= 1
	var got bytes.Buffer
	if err := Inspect(&got, oneFile(t, data), "x.seg"); !apierr.IsCorruption(err) {
		t.Fatal(err)
	}
	for _, want := range []string{"section xhsh, 24 bytes, CHECKSUM WRONG", `row 0: "k1"`} {
		if !bytes.Contains(got.Bytes(), []byte(want)) {
			t.Errorf("%q is missing in\n%s", want, got.Bytes())
		}
	}
}

// TestSummary checks the summary of a small segment, sound and damaged: every kind of section and its size.
func TestSummary(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "s.seg")
	var b bytes.Buffer
	if err := Summarize(&b, fs, "s.seg"); err != nil {
		t.Fatal(err)
	}
	r, err := Open(fs, "s.seg")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, want := range []string{"documents   4, 134 bytes", "DocIDs      3 to 8", fmt.Sprintf("words       %d\n", r.Words()), "columns     5 fields", "embedder 1  1 vectors of 5 bits, of 1 documents"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, s := range r.sections {
		if k := kindOf(s.tag); !strings.Contains(b.String(), k.meaning) {
			t.Errorf("no %v in\n%s", s.tag, b.String())
		}
	}
	whole, err := vfs.ReadFile(fs, "s.seg")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.sections {
		if s.length == 0 {
			continue
		}
		damaged := bytes.Clone(whole)
		damaged[s.offset] ^= 1
		if err := vfs.WriteFile(fs, "d.seg", damaged); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := Summarize(&b, fs, "d.seg"); !apierr.IsCorruption(err) || !strings.Contains(b.String(), "CHECKSUM WRONG") {
			t.Errorf("a flipped bit in %v: %v\n%s", s.tag, err, b.String())
		}
	}
}
