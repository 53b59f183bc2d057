package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// TestSignsOfEarlierVersions searches, verifies and prints a file whose signs are not centred. A merge that changes it writes
// centred signs.
func TestSignsOfEarlierVersions(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng, mem := testRand(t), vfs.NewMem()
	docs := clusteredDocs(rng, wide, 0, 1500, 1)
	v := segmentOfVectors(t, mem, "a.seg", docs, wide).Vectors(wide.ID)
	notCentred(v)
	data := readFile(t, mem, "a.seg")
	s, stride := sectionOf(data, tagSigns), int64(v.quantizer.Stride())
	clear(data[s.offset : s.offset+s.length])
	copy(data[s.offset:], bytesOf(v.signs.Words))
	_, sections, err := parseContainer("a.seg", data)
	if err != nil {
		t.Fatal(err)
	}
	entry := data[len(data)-footerBytes-entryBytes*(len(sections)-slices.IndexFunc(sections, func(s section) bool { return s.tag == tagSigns })):]
	binary.LittleEndian.PutUint32(entry, uint32(tagOldSigns))
	binary.LittleEndian.PutUint64(entry[16:], uint64(s.length-stride))
	fixChecksums(data)
	old, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var printed bytes.Buffer
	if err := Inspect(&printed, oneFile(t, data), "x.seg"); err != nil || !strings.Contains(printed.String(), "section vsgn") || strings.Contains(printed.String(), "centre: ") {
		t.Errorf("%v: %s", err, printed.String())
	}
	asIfCold(old)
	missed := 0
	for range 20 {
		q := clusteredDocs(rng, wide, 0, 1, 1)[0].vectors[wide.ID].Vectors
		missed += checkFound(t, old.Vectors(wide.ID).Search(nil, q, 10, nil), twinSearch(docs, wide, q, nil), 10)
	}
	if n := blocksRight(old, tagGraph); missed > 8 || n > 2 {
		t.Errorf("%d of 200 are missed, %d blocks of the graph are read", missed, n)
	}
	if err := old.Verify(); err != nil {
		t.Error(err)
	}
	for deleted, want := range map[*roaring.Bitmap]tag{nil: tagOldSigns, roaring.BitmapOf(1, 17): tagSigns} {
		if _, err := Merge(context.Background(), mem, want.String(), []Live{{Reader: old, Deleted: deleted}}, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		merged := openSegment(t, mem, want.String())
		if have := kindsIn(merged); !have[want] || have[tagSigns] && have[tagOldSigns] {
			t.Errorf("the merged file lacks %v", want)
		}
		if err := merged.Verify(); err != nil {
			t.Errorf("%v: %v", want, err)
		}
	}
	// Changed signs are corruption.
	data[s.offset+s.length/2] ^= 1
	fixChecksums(data)
	if err := openAndVerify(t, data); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "vsgn") {
		t.Errorf("changed signs: %v", err)
	}
}

// normalDocs makes documents with vectors of independent normal components.
func normalDocs(rng *rand.Rand, e EmbedderShape, n int) []*doc {
	docs := make([]*doc, n)
	for i := range docs {
		vector := make([]float32, e.Dimensions)
		for j := range vector {
			vector[j] = float32(rng.NormFloat64())
		}
		docs[i] = &doc{id: DocID(i), externalID: fmt.Sprintf("d%d", i), raw: "{}", vectors: map[EmbedderID]DocVectors{e.ID: {Vectors: vector}}}
	}
	return docs
}

// takeWideSigns enables wide signs for small segments until the returned function is called.
func takeWideSigns() func() {
	before := widestShare
	widestShare = 2
	return func() { widestShare = before }
}

// TestSignsOfIndependentComponents checks signs of vectors without clusters, which are less accurate: a sample determines how many codes
// are compared. A search for few hits compares signs. One for more hits would keep too many rows and scans codes.
func TestSignsOfIndependentComponents(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	defer takeWideSigns()()
	for dimensions, rows := range map[int]int{128: 8000, 256: 4500} {
		rng, mem := testRand(t), vfs.NewMem()
		shape := EmbedderShape{ID: 7, Dimensions: dimensions}
		docs := normalDocs(rng, shape, rows)
		base := segmentOfVectors(t, mem, "a.seg", docs, shape)
		for name, deleted := range map[string]*roaring.Bitmap{"copied": nil, "merged": roaring.BitmapOf(1, 17)} {
			if _, err := Merge(context.Background(), mem, name, []Live{{Reader: base, Deleted: deleted}}, MergeOptions{}); err != nil {
				t.Fatal(err)
			}
			r := openSegment(t, mem, name)
			if have := kindsIn(r); !have[tagWideSigns] || have[tagSigns] || have[tagOldSigns] {
				t.Errorf("%s: %v", name, have)
			}
			if err := r.Verify(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		v := base.Vectors(shape.ID)
		if v.wide.kept <= uint32(shape.keptBySigns(signsHits)) || v.wide.of != uint32(len(docs)) {
			t.Errorf("wide signs keep %+v, signs of clusters %d", v.wide, shape.keptBySigns(signsHits))
		}
		read := 0
		touch, touchRows := v.signs.Touch, v.signs.TouchRows
		v.signs.Touch = func(words []uint64) { read++; touch(words) }
		v.signs.TouchRows = func(rows []uint32) { read++; touchRows(rows) }
		search := func(k, share int) float64 {
			read = 0
			var missed []int
			for range 80 / (k/2 + 1) {
				q := normalDocs(rng, shape, 1)[0].vectors[shape.ID].Vectors
				var allowed *roaring.Bitmap
				if share > 1 {
					allowed = roaring.New()
					for row := range uint32(len(docs)) {
						if rng.IntN(share) > 0 {
							allowed.Add(row)
						}
					}
				}
				missed = append(missed, checkFound(t, v.Search(nil, q, k, allowed), twinSearch(docs, shape, q, allowed), k))
			}
			return recallOf(missed, k)
		}
		const few, many = 1, 20
		if most := len(docs) / keptShare; v.keptBySigns(few, len(docs)) > most || v.keptBySigns(many, len(docs)) <= most {
			t.Errorf("%d dimensions: %d rows are kept for %d hits, %d for %d", dimensions, v.keptBySigns(few, len(docs)), few, v.keptBySigns(many, len(docs)), many)
		}
		for _, k := range []int{few, many} {
			for _, share := range []int{1, 8} {
				if recall, signs := search(k, share), k == few && v.comparesSigns(); recall < 0.95 || signs != (read > 0) {
					t.Errorf("%d dimensions, %d hits, one in %d excluded: recall %.3f, signs are read %d times", dimensions, k, share, recall, read)
				}
			}
		}
		var printed bytes.Buffer
		if err := Inspect(&printed, oneFile(t, readFile(t, mem, "a.seg")), "x.seg"); err != nil || !strings.Contains(printed.String(), "rows kept") {
			t.Errorf("%v: %s", err, printed.String())
		}
	}
}

// TestKeptBySigns checks the number of kept rows against docs/SEGMENT.md.
func TestKeptBySigns(t *testing.T) {
	for _, c := range []struct {
		wide                wideSigns
		wanted, among, want int
	}{
		{wideSigns{}, 10, 100_000, 166},
		{wideSigns{}, 10, 100, 166},
		{wideSigns{}, 40, 100_000, 635},
		{wideSigns{1000, 10_000}, 10, 10_000, 1000},
		{wideSigns{1000, 10_000}, 40, 10_000, 2000},
		{wideSigns{1000, 10_000}, 10, 1_000_000, 25_118}, // 100^0.7
		{wideSigns{1000, 10_000}, 40, 1_000_000, 50_237},
		{wideSigns{1000, 10_000}, 10, 1000, 281}, // 0.1^0.55
		{wideSigns{130, 10_000}, 10, 5000, 166},  // at least as many as with signs of clusters
		{wideSigns{maxRows, maxRows}, 1 << 20, maxRows, maxRows},
	} {
		v := &Vectors{shape: EmbedderShape{Dimensions: 256}, wide: c.wide}
		if got := v.keptBySigns(c.wanted, c.among); got != c.want {
			t.Errorf("%+v: %d are kept, want %d", c, got, c.want)
		}
	}
}

// TestDamagedWideSigns checks that invalid values in the head of wide signs are corruption.
func TestDamagedWideSigns(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	defer takeWideSigns()()
	mem, shape := vfs.NewMem(), EmbedderShape{ID: 7, Dimensions: 256}
	segmentOfVectors(t, mem, "a.seg", normalDocs(testRand(t), shape, 1500), shape)
	for name, change := range map[string]func(p []byte){
		"none kept":       func(p []byte) { binary.LittleEndian.PutUint32(p, 0) },
		"more than there": func(p []byte) { binary.LittleEndian.PutUint32(p, 1+binary.LittleEndian.Uint32(p[4:])) },
		"other signs":     func(p []byte) { p[len(p)-1] ^= 1 },
		"other centre":    func(p []byte) { p[wideHeadBytes] ^= 127 },
	} {
		data := readFile(t, mem, "a.seg")
		s := sectionOf(data, tagWideSigns)
		change(data[s.offset : s.offset+s.length])
		fixChecksums(data)
		if err := openAndVerify(t, data); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "vsgw") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSignsOfAllLongRows checks that an unfiltered search of few long rows compares the signs of all rows and reads no links. More effort
// must not find fewer.
func TestSignsOfAllLongRows(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng, shape := testRand(t), EmbedderShape{ID: 7, Dimensions: 512}
	docs := clusteredDocs(rng, shape, 5, 3000, 1)
	r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, shape)
	v := r.Vectors(shape.ID)
	if !v.comparesSigns() || v.signs.Forecast() {
		t.Skip("without the kernel of AVX-512, searches walk")
	}
	const k, queries = 10, 40
	missed, again := 0, 0
	for range queries {
		q := clusteredDocs(rng, shape, 0, 1, 1)[0].vectors[shape.ID].Vectors
		want := twinSearch(docs, shape, q, nil)
		missed += checkFound(t, v.Search(nil, q, k, nil), want, k)
		again += checkFound(t, v.SearchEffort(nil, q, k, 1000, nil), want, k)
	}
	if n := blocksRight(r, tagGraph); n > 16 { // those of the upper levels are read
		t.Errorf("%d blocks of the graph are read", n)
	}
	if recall := 1 - float64(missed)/(k*queries); recall < 0.97 || again > missed {
		t.Errorf("recall %.3f, %d are missed with more effort, %d without", recall, again, missed)
	}
}
