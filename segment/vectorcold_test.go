package segment

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// wide has the dimensions of a small model. Signs of fewer dimensions are less accurate.
var wide = EmbedderShape{ID: 5, Dimensions: 256}

// asIfCold makes searches treat the file as being read ahead and not in memory.
func asIfCold(r *Reader) {
	r.ahead.reads.Store(true)
	r.holds = func(int64) bool { return false }
}

// blocksRight returns the number of a section's blocks that passed their check.
func blocksRight(r *Reader, t tag) (n int) {
	s := sectionOf(r.data, t)
	for i := int(s.offset >> blockBits); i <= int((s.offset+s.length-1)>>blockBits); i++ {
		if r.blocks.isRight(i) {
			n++
		}
	}
	return n
}

// TestSearchesOfAColdFile checks that searches of a file that is not in memory have a high recall, for any share of allowed rows and
// several vectors per row, and read neither codes nor links.
func TestSearchesOfAColdFile(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	for _, c := range []struct{ dimensions, rows, most int }{{256, 2500, 1}, {256, 2500, 3}, {128, 4500, 1}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			rng := testRand(t)
			wide := wide
			wide.Dimensions = c.dimensions
			docs := clusteredDocs(rng, wide, 5, c.rows, c.most)
			docs[17].vectors = nil
			docs[40].vectors[wide.ID] = DocVectors{Vectors: make([]float32, wide.Dimensions)} // an outlier
			r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, wide)
			asIfCold(r)
			const k = 10
			for name, share := range map[string]float64{"all": 1, "most": 0.95, "half": 0.5, "a tenth": 0.1} {
				missed, queries := 0, 30
				for range queries {
					q := clusteredDocs(rng, wide, 0, 1, 1)[0].vectors[wide.ID].Vectors
					var allowed *roaring.Bitmap
					if share < 1 {
						allowed = roaring.New()
						for row := range uint32(len(docs)) {
							if rng.Float64() < share {
								allowed.Add(row)
							}
						}
					}
					missed += checkFound(t, r.Vectors(wide.ID).Search(nil, q, k, allowed), twinSearch(docs, wide, q, allowed), k)
				}
				if recall := 1 - float64(missed)/float64(k*queries); recall < 0.97 {
					t.Errorf("%s: recall %.3f", name, recall)
				}
			}
			for tag, head := range map[tag]int{tagCodes: 2, tagGraph: 2} { // the first block, and the last, which the next section shares
				if n := blocksRight(r, tag); n > head {
					t.Errorf("%d blocks of %v are read", n, tag)
				}
			}
			if n := r.ahead.waiting.Load(); n != 0 {
				t.Errorf("%d searches are said to wait", n)
			}
			r.ahead.reads.Store(false)
			checkRecall(t, r.Vectors(wide.ID), docs, rng)
			if n := blocksRight(r, tagGraph); n < 10 {
				t.Errorf("the graph is not walked after the read-ahead: %d blocks", n)
			}
		})
	}
}

// TestAFileInMemoryIsNotCold checks that residency is no longer sampled once the file was found in memory.
func TestAFileInMemoryIsNotCold(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	docs := clusteredDocs(testRand(t), coded, 5, 1500, 1)
	r := segmentOfVectors(t, vfs.OS, filepath.Join(t.TempDir(), "a.seg"), docs, coded)
	if r.isCold() {
		t.Error("a file is cold that is not being read ahead")
	}
	asked, end := 0, 2*samples // samples of the graph and of the codes
	asIfCold(r)
	r.holds = func(at int64) bool {
		asked++
		s := r.blocks.sectionAt(int(at))
		if !strings.Contains(s, "vcod") && !strings.Contains(s, "vgrf") {
			t.Fatalf("isCold samples a page of %s", s)
		}
		return asked != end
	}
	if !r.isCold() {
		t.Error("a file with a missing page is not cold")
	}
	if asked = end; r.isCold() || asked != 2*end {
		t.Errorf("a file in memory is cold after %d samples", asked-end)
	}
	if r.isCold() || asked != 2*end {
		t.Error("isCold samples again")
	}
}

// TestRowsThatSearchesWaitFor checks that searches wait for rows that are not in memory, and do not sample rows that were checked.
func TestRowsThatSearchesWaitFor(t *testing.T) {
	docs := clusteredDocs(testRand(t), coded, 5, 500, 1)
	r := segmentOfVectors(t, vfs.OS, filepath.Join(t.TempDir(), "a.seg"), docs, coded)
	v, width := r.Vectors(coded.ID), coded.rowBytes()
	r.blocks.forget()
	asked, missing := 0, int64(-1)
	r.holds = func(at int64) bool {
		asked++
		return at>>blockBits != missing
	}
	rows := []uint32{3, 100, 101, 499}
	if r.waits(v.full, width, rows) || asked != len(rows) {
		t.Errorf("searches wait for rows in memory, or %d were sampled", asked)
	}
	missing = int64(r.blocks.offset(v.full)+width*int(rows[1])) >> blockBits
	if !r.waits(v.full, width, rows) {
		t.Error("searches do not wait for a row that is not in memory")
	}
	v.touchRows(rows)
	if asked = 0; r.waits(v.full, width, rows) || asked != 0 {
		t.Errorf("searches wait for checked rows, or %d were sampled", asked)
	}
}

// TestSearchesOfAColdFileWithoutSigns searches a file with damaged signs, which are reported and not used, and a file of an earlier
// version, which has none.
func TestSearchesOfAColdFileWithoutSigns(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng := testRand(t)
	docs := clusteredDocs(rng, wide, 5, 1500, 1)
	mem := vfs.NewMem()
	segmentOfVectors(t, mem, "a.seg", docs, wide)
	for name, change := range map[string]func(data []byte, s section){
		"damaged":  func(data []byte, s section) { data[s.offset+s.length/2] ^= 1 },
		"there":    func(data []byte, s section) {},
		"nonsense": func(data []byte, s section) { data[s.offset+s.length/2] ^= 1; fixChecksums(data) },
		"none": func(data []byte, s section) {
			_, sections, err := parseContainer("a.seg", data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range sections {
				if sections[i].tag == tagSigns {
					copy(data[len(data)-footerBytes-entryBytes*(len(sections)-i):], "vold")
				}
			}
			fixChecksums(data)
		},
	} {
		data := readFile(t, mem, "a.seg")
		change(data, sectionOf(data, tagSigns))
		r, err := openBytes(t, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer r.Close()
		told := 0
		r.OnDamage(func(*apierr.Corruption) { told++ })
		asIfCold(r)
		missed := 0
		for range 20 {
			q := clusteredDocs(rng, wide, 0, 1, 1)[0].vectors[wide.ID].Vectors
			missed += checkFound(t, r.Vectors(wide.ID).Search(nil, q, 10, nil), twinSearch(docs, wide, q, nil), 10)
		}
		if missed > 10 {
			t.Errorf("%s: %d of 200 are missed", name, missed)
		}
		if walked := blocksRight(r, tagGraph); (walked > 2) != (name == "damaged" || name == "none") || (told > 0) != (name == "damaged") {
			t.Errorf("%s: %d blocks of the graph are read, %d damages reported", name, walked, told)
		}
		err = r.Verify()
		switch name {
		case "damaged", "nonsense":
			if !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "vsgc") {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Signs of the wrong length are corruption of the file.
	data := readFile(t, mem, "a.seg")
	_, sections, _ := parseContainer("a.seg", data)
	for i := range sections {
		if sections[i].tag == tagSigns {
			binary.LittleEndian.PutUint64(data[len(data)-footerBytes-entryBytes*(len(sections)-i)+16:], uint64(sections[i].length-8))
		}
	}
	fixChecksums(data)
	r, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := mapped.Guard(func() error { r.Vectors(wide.ID); return nil }); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "do not fit its 1500 vectors") {
		t.Errorf("signs of another number of vectors: %v", err)
	}
}

// TestPrefetchOfForgedDocuments prefetches documents with arbitrary offsets, as in a damaged file.
func TestPrefetchOfForgedDocuments(t *testing.T) {
	rng := testRand(t)
	docs := clusteredDocs(rng, coded, 5, 300, 1)
	r := segmentOfVectors(t, vfs.OS, filepath.Join(t.TempDir(), "a.seg"), docs, coded)
	index := make([]byte, len(r.docs.index))
	var rows []Scored
	for range 40 {
		rows = append(rows, Scored{Row: Row(rng.IntN(400))})
	}
	rows = append(rows[:20], Scored{Row: 1<<32 - 1})
	r.askForDocuments(rows)
	for range 100 {
		for i := range index {
			index[i] = byte(rng.Uint32())
			if rng.IntN(3) > 0 {
				index[i] = 0
			}
		}
		r.blocks.file = nil // index is not part of the file
		r.docs.index = index
		r.askForDocuments(rows)
	}
}

// TestReadAheadYields checks that the read-ahead yields to searches that wait for the disk, but not forever.
func TestReadAheadYields(t *testing.T) {
	a := &ahead{end: make(chan struct{})}
	if left := a.giveWay(time.Hour); left != time.Hour {
		t.Errorf("it waits without a waiting search: %v left", left)
	}
	a.waiting.Add(1)
	if left := a.giveWay(time.Millisecond); left > 0 {
		t.Errorf("%v left while a search waits", left)
	}
	close(a.end)
	if left := a.giveWay(time.Hour); left != time.Hour {
		t.Errorf("it waits after the file was closed: %v left", left)
	}
}
