package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/scroll"
	"svc/internal/vfs"
)

// TestPagesByCursorWhileASegmentExpires reads pages by cursor. Between two pages all documents of the first segment expire. The remaining
// pages have each of the other documents once.
func TestPagesByCursorWhileASegmentExpires(t *testing.T) {
	now := time.Unix(1000, 0)
	l := &library{t: t, fs: vfs.NewMem()}
	var err error
	if l.c, err = index.OpenCatalog("indexes", index.Options{FS: l.fs, Now: func() time.Time { return now }}); err != nil {
		t.Fatal(err)
	}
	defer l.c.Close()
	l.put("a", `{"sortableAttributes":["n"],"timeToLive":{"attribute":"at"}}`)
	const size = 10 // of a segment
	for segment, at := range []int{2000, 9000, 9000} {
		var docs []string
		for i := range size {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"at":%d}`, segment*size+i, (segment+2)%3*size+i, at)) // the first segment comes last
		}
		l.put("a", "", docs...)
	}
	s := &scroller{library: l, places: scroll.NewStore([]byte("x"), time.Now)}
	cursor, generations, segments := "", map[uint64]bool{}, map[int]bool{}
	var ids []int
	for page := range 8 {
		if page == 2 {
			now = time.Unix(3000, 0)
		}
		func() {
			v := held(l.c.Get("a").View())
			defer v.Release()
			generations[v.Generation], segments[len(v.Segments)] = true, true
			request := Request{Limit: 4, Sort: []string{"n:asc"}, Rules: rulesOf(t, pinning(pinnedHit[int]{0, 2 * size}))} // a rule ranks each page anew
			request.Cursor = &Cursor{Text: cursor, Places: s.places}
			found, err := Search(context.Background(), v, &request)
			if err != nil {
				t.Fatal(err)
			}
			answer := s.parse(got(found.AppendJSON(context.Background(), nil)))
			for _, id := range idsOfHits(answer.Hits) {
				ids = append(ids, int(id.(float64)))
			}
			if cursor = ""; answer.NextCursor != nil {
				cursor = *answer.NextCursor
			}
		}()
		if cursor == "" {
			break
		}
	}
	if len(generations) != 1 || len(segments) != 2 {
		t.Fatalf("views of %d generations with %v segments, want one generation, with and without the first segment", len(generations), segments)
	}
	slices.Sort(ids)
	var want []int
	for id := size; id < 3*size; id++ {
		want = append(want, id)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("the pages have %s", strings.Trim(fmt.Sprint(ids), "[]"))
	}
}
