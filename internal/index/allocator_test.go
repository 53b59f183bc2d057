package index

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
	"svc/segment"
)

// The ids of live documents are those that a walk over all rows finds.
func TestIDsOfLiveDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		b := newBed(t, vfs.NewMem(), Options{})
		ix := b.create("a")
		for range 1 + rng.IntN(4) {
			var docs, gone []string
			for range rng.IntN(60) {
				docs = append(docs, fmt.Sprintf(`{"id":%d}`, rng.IntN(100)))
				gone = append(gone, fmt.Sprint(rng.IntN(100)))
			}
			b.apply(ix, b.payload(docs...), DeleteDocuments{gone[:len(gone)/3]})
		}
		v := ix.View()
		for _, l := range v.Segments {
			want := roaring.New()
			for it := l.LiveRows().Iterator(); it.HasNext(); {
				want.Add(uint32(l.DocID(segment.Row(it.Next()))))
			}
			if got := idsOf(l); !got.Equals(want) {
				t.Errorf("ids %v, want %v", got, want)
			}
		}
		v.Release()
		b.close()
	}
}
