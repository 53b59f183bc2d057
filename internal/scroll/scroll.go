// Package scroll keeps the places of searches that are read page by page.
//
// A page by cursor is the first page of the documents that were not returned before. The order of two documents does not depend on
// the other documents ranked. So this page continues after the last hit, at the cost of a first page. Returned documents are excluded
// by their ids, which never change. So a document that stays is returned once, however the index changes between pages.
//
// A small page at a great depth would still have to exclude all that was returned. So when a search continues, it ranks more
// documents than the page has, and the place keeps their ids. The next pages rank only those, as long as the view and the filter stay
// the same.
//
// There are two kinds of places:
//   - In the order of ids, a place is the id of the last document. The cursor contains it, and the process keeps nothing.
//   - In any other order, a place is the set of the returned ids, at most a bit each. The Store keeps it until it is unused for a
//     while, or others need the memory. The cursor names it. Such a cursor belongs to one process.
//
// A cursor is text that only the Store reads. It contains a digest of the search that it continues and an authentication code. It
// grants no rights: the caller applies filters and rights to each page again.
package scroll

import (
	"container/list"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/turns"
	"svc/segment"
)

// Limits of a Store.
const (
	IdleTime  = 10 * time.Minute // after which an unused place is dropped
	MaxPlaces = 1000
	MaxBytes  = 64 << 20 // of all places
)

// Store stores places. Its methods are safe for concurrent use.
type Store struct {
	secret []byte
	now    func() time.Time

	maxPlaces int
	maxBytes  int64

	mu     sync.Mutex
	places map[placeID]*list.Element // of *place
	used   *list.List                // the one that was used last in front
	bytes  int64                     // of all places
}

// NewStore returns an empty store. Cursors are authenticated with the secret; a store with the same one reads those that hold their place.
func NewStore(secret []byte, now func() time.Time) *Store {
	return &Store{secret: secret, now: now, maxPlaces: MaxPlaces, maxBytes: MaxBytes, places: make(map[placeID]*list.Element), used: list.New()}
}

type placeID [16]byte

// place is what a search has returned so far.
type place struct {
	id   placeID
	of   Digest
	free chan struct{} // holds one value while no request works on a page

	// Of the page at work.
	page  uint64          // how many pages seen is made of
	seen  *roaring.Bitmap // ids of the documents on them
	hits  int             // how many they were
	last  []uint32        // ids on the following page; returned once the client has got it
	given bool            // there is such a page
	rows  rows
	ahead ahead

	// Under Store.mu.
	at    time.Time // of the last use
	bytes int64
}

// rows are the rows to leave out of a view.
type rows struct {
	generation uint64
	by         []*roaring.Bitmap // by segment; nil: nothing is known of a view
	without    []uint32          // ids that were returned since
}

// ahead are the next documents, in their order: they were ranked together with an earlier page. So a small page does not need to
// exclude all returned documents, which takes a bit for each document of the index.
type ahead struct {
	generation uint64 // of the view in which they were ranked
	filter     Digest // of the filter, with that of the token
	ids        []uint32
	complete   bool // nothing follows
	total      int  // of hits, from the ranking
	size       int  // how many were ranked; it grows from one time to the next
}

// Page is one page of a search at work. One goroutine uses it.
type Page struct {
	store *Store
	of    Digest
	place *place // nil: the place is after, or the search begins
	after int64  // the highest id that was returned; −1: none was
	hits  int
}

// Open returns the page that a cursor asks for, "" for the first one. It waits while another request works on a page of the same
// place, and meanwhile releases the turn of ctx. Errors are *apierr.Error, with the code wrong or cursor_expired, or the context's. The
// caller closes the page.
func (s *Store) Open(ctx context.Context, cursor string, of Digest, wrong apierr.Code) (*Page, error) {
	p := &Page{store: s, of: of, after: -1}
	if cursor == "" {
		return p, nil
	}
	c, ok := s.parse(cursor)
	switch {
	case !ok:
		return nil, apierr.New(wrong, "`cursor` was not created by this server. Send `nextCursor` of the previous page unchanged, or an empty string to start.")
	case c.of != of:
		return nil, apierr.New(wrong, "`cursor` belongs to another search. Repeat the search that returned it; only the size of the page and what is shown of hits may change.")
	case c.kind == afterID:
		p.after, p.hits = int64(c.after), int(c.hits)
		return p, nil
	}
	if p.place = s.take(c.place); p.place == nil {
		return nil, expired()
	}
	if err := p.place.wait(ctx); err != nil {
		return nil, err
	}
	if !p.place.turnTo(c.page) {
		p.Close()
		return nil, expired()
	}
	p.hits = p.place.hits
	return p, nil
}

// wait waits until no request works on a page of the place. Meanwhile it releases the turn, because requests with the same cursor
// could otherwise hold all search slots while one of them works. The error is that of ctx.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.free:
		return nil
	default:
	}
	t := turns.Of(ctx)
	t.Pause()
	defer t.Resume()
	select {
	case <-p.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func expired() error {
	return apierr.New("cursor_expired", "`cursor` has expired: it was not used for %d minutes, the server has restarted, or a later page was read. Start again with an empty cursor.",
		int(IdleTime/time.Minute))
}

// turnTo moves the place after the given number of pages. The last page may be requested twice, in case its answer was lost.
func (p *place) turnTo(page uint64) bool {
	switch {
	case page == p.page:
	case page == p.page+1 && p.given:
		p.seen.AddMany(p.last)
		p.rows.without = append(p.rows.without, p.last...)
		p.hits += len(p.last)
		p.page++
		if n := len(p.last); n <= len(p.ahead.ids) && slices.Equal(p.ahead.ids[:n], p.last) {
			p.ahead.ids = p.ahead.ids[n:]
		} else {
			p.ahead.ids = nil
		}
	default:
		return false
	}
	p.given = false
	return true
}

// First reports whether nothing was returned before.
func (p *Page) First() bool { return p.place == nil && p.after < 0 }

// Before returns how many hits were returned on the pages before.
func (p *Page) Before() int { return p.hits }

// maxAhead is how many documents are ranked together at most.
const maxAhead = 1000

// Ahead returns the next documents, at most n, and the total of hits, if they were ranked before in the same view and with the same
// filter, and if there are n of them or nothing follows.
func (p *Page) Ahead(generation uint64, filter Digest, n int) (ids []uint32, total int, ok bool) {
	if p.place == nil {
		return nil, 0, false
	}
	a := &p.place.ahead
	if len(a.ids) == 0 || a.generation != generation || a.filter != filter || len(a.ids) < n && !a.complete {
		return nil, 0, false
	}
	return a.ids[:min(n, len(a.ids))], a.total, true
}

// Further returns how many documents to rank for a page of n: more than n from the second page on, so that Look can store them.
func (p *Page) Further(n int) int {
	if p.place == nil || n > maxAhead/2 {
		return n
	}
	a := &p.place.ahead
	a.size = min(max(8*n, 2*a.size), maxAhead)
	return a.size
}

// Look stores the first documents after those that were returned. total is the number of hits; complete says that nothing follows.
func (p *Page) Look(generation uint64, filter Digest, ids []segment.DocID, total int, complete bool) {
	if p.place == nil {
		return
	}
	a := &p.place.ahead
	a.generation, a.filter, a.total, a.complete = generation, filter, total, complete
	a.ids = make([]uint32, len(ids))
	for i, id := range ids {
		a.ids[i] = uint32(id)
	}
}

// Seen returns, by segment of a view, the rows of documents that were returned before. The caller does not modify them, and uses them until
// Close. like returns the rows that are left out because others were returned, with those; nil: none are.
func (p *Page) Seen(generation uint64, lives []segment.Live, like func([]*roaring.Bitmap) []*roaring.Bitmap) []*roaring.Bitmap {
	if p.place == nil {
		by := make([]*roaring.Bitmap, len(lives))
		for i, l := range lives {
			by[i] = upTo(l.Reader, p.after)
		}
		if like != nil {
			return like(by)
		}
		return by
	}
	return p.place.leaveOut(generation, lives, like)
}

// upTo returns the rows of a segment whose ids are at most the given one. Ids ascend with the rows.
func upTo(r *segment.Reader, id int64) *roaring.Bitmap {
	b := roaring.New()
	if id < 0 {
		return b
	}
	row, found := r.RowOf(segment.DocID(id))
	if found {
		row++
	}
	b.AddRange(0, uint64(row))
	return b
}

// leaveOut is Seen. In a view that was seen before, only the rows of the last page are new. Views of a generation differ in the documents
// that have expired: a later one lacks the segments whose documents all have. So two with as many segments have the same ones.
func (p *place) leaveOut(generation uint64, lives []segment.Live, like func([]*roaring.Bitmap) []*roaring.Bitmap) []*roaring.Bitmap {
	fresh := p.rows.by == nil || p.rows.generation != generation || len(p.rows.by) != len(lives)
	added := make([]*roaring.Bitmap, len(lives))
	for i, l := range lives {
		if fresh {
			added[i] = rowsOf(l.Reader, p.seen)
			continue
		}
		added[i] = roaring.New()
		for _, id := range p.rows.without {
			if row, ok := l.RowOf(segment.DocID(id)); ok {
				added[i].Add(uint32(row))
			}
		}
	}
	if like != nil {
		added = like(added)
	}
	if fresh {
		p.rows = rows{generation: generation, by: added}
		return added
	}
	p.rows.without = p.rows.without[:0]
	for i, b := range added {
		p.rows.by[i].Or(b)
	}
	return p.rows.by
}

// rowsOf returns the rows that have one of some ids. Ids ascend with the rows, so rows as far apart as their ids have no gap.
func rowsOf(r *segment.Reader, ids *roaring.Bitmap) *roaring.Bitmap {
	b := roaring.New()
	n := r.Rows()
	if n == 0 || ids.IsEmpty() {
		return b
	}
	first, last := r.DocID(0), r.DocID(segment.Row(n-1))
	gapless := int(last-first) == n-1
	it := ids.Iterator()
	it.AdvanceIfNeeded(uint32(first))
	row := segment.Row(0)
	for it.HasNext() {
		id := segment.DocID(it.Next())
		if id > last {
			break
		}
		if gapless {
			b.Add(uint32(id - first))
			continue
		}
		if row = seek(r, row, id); r.DocID(row) == id {
			b.Add(uint32(row))
		}
	}
	return b
}

// seek returns the first row from a row on whose id is at least id. There must be one.
func seek(r *segment.Reader, from segment.Row, id segment.DocID) segment.Row {
	if r.DocID(from) >= id {
		return from
	}
	step := segment.Row(1)
	last := segment.Row(r.Rows() - 1)
	for from+step < last && r.DocID(from+step) < id {
		from += step
		step *= 2
	}
	low, high := from, min(from+step, last) // DocID(low) < id ≤ DocID(high)
	for high-low > 1 {
		if mid := low + (high-low)/2; r.DocID(mid) < id {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// NextAfter is Next for documents in the order of ids. It stores nothing, unless an earlier page had another order.
func (p *Page) NextAfter(ids []segment.DocID) string {
	after := p.after
	for _, id := range ids {
		after = max(after, int64(id))
	}
	if after < 0 || p.place != nil {
		return p.Next(ids)
	}
	return p.store.print(&cursor{kind: afterID, of: p.of, after: uint32(after), hits: uint64(p.hits + len(ids))})
}

// Next returns the cursor of the next page. ids are those on this page.
func (p *Page) Next(ids []segment.DocID) string {
	if p.place == nil {
		at := &place{of: p.of, free: make(chan struct{}, 1), seen: roaring.New(), hits: p.hits}
		_, _ = rand.Read(at.id[:]) // it never fails
		if p.after >= 0 {
			at.seen.AddRange(0, uint64(p.after)+1)
		}
		p.place = at
	}
	at := p.place
	at.last, at.given = slices.Grow(at.last[:0], len(ids)), true
	for _, id := range ids {
		at.last = append(at.last, uint32(id))
	}
	p.store.keep(at)
	return p.store.print(&cursor{kind: atPlace, of: p.of, place: at.id, page: at.page + 1})
}

// Close ends the work on a page. It may be called again.
func (p *Page) Close() {
	if p.place != nil {
		select {
		case p.place.free <- struct{}{}:
		default:
		}
		p.place = nil
	}
}

// take returns a place and records its use; nil: it was dropped.
func (s *Store) take(id placeID) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked()
	e := s.places[id]
	if e == nil {
		return nil
	}
	s.used.MoveToFront(e)
	p := e.Value.(*place)
	p.at = s.now()
	return p
}

// keep keeps a place in use, and drops others if there is no room.
func (s *Store) keep(p *place) {
	bytes := int64(placeBytes + 4*cap(p.last) + 4*cap(p.ahead.ids) + int(p.seen.GetSizeInBytes()))
	for _, b := range p.rows.by {
		bytes += int64(b.GetSizeInBytes())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.places[p.id]
	switch {
	case e != nil:
		s.used.MoveToFront(e)
	case p.bytes == 0:
		s.places[p.id] = s.used.PushFront(p)
	default: // it was dropped meanwhile
		return
	}
	s.bytes += bytes - p.bytes
	p.bytes, p.at = bytes, s.now()
	s.dropLocked()
}

// placeBytes is about what a place takes beside its sets.
const placeBytes = 512

// dropLocked drops places that were not used for a long time, or for which there is no room. mu is held.
func (s *Store) dropLocked() {
	for e := s.used.Back(); e != nil; e = s.used.Back() {
		p := e.Value.(*place)
		if s.used.Len() <= s.maxPlaces && s.bytes <= s.maxBytes && s.now().Sub(p.at) <= IdleTime {
			return
		}
		s.used.Remove(e)
		delete(s.places, p.id)
		s.bytes -= p.bytes
	}
}

// Places returns the number of stored places, and their size in bytes.
func (s *Store) Places() (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.Len(), s.bytes
}
