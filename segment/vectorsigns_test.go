package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// A file of an earlier program has signs that are not centred. It is searched, verified and printed, and a merge that changes it
// writes centred ones.
func TestSignsOfEarlierPrograms(t *testing.T) {
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
			t.Errorf("%v is not in what is merged", want)
		}
		if err := merged.Verify(); err != nil {
			t.Errorf("%v: %v", want, err)
		}
	}
	// Others are damage.
	data[s.offset+s.length/2] ^= 1
	fixChecksums(data)
	if err := openAndVerify(t, data); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "vsgn") {
		t.Errorf("other signs: %v", err)
	}
}
