package search

import (
	"cmp"
	"context"
	"iter"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/format"
	"svc/internal/geo"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// Response is the answer to a search. It reads documents from its view, which
// must be held until AppendJSON has returned.
type Response struct {
	view         *index.View
	request      *Request
	result       *rankedHits
	groups       []*group // of the hits; nil: not requested
	facets       []facet
	aggregations []byte      // members of the answer; nil: not requested
	cut          bool        // the deadline cut the aggregations short
	suggestions  []suggested // of a search without hits
	hydrate      *hydration  // nil: no foreign keys
	leaves       *hydration  // instead of hydrate: ids stay, and documents are inserted later; nil: no foreign keys
	start        time.Time

	paged         bool // page mode: page and hitsPerPage instead of limit and offset
	page, perPage int
	offset, limit int    // of the ranking, clamped to maxTotalHits; of a page by cursor, the hits before it
	next          string // cursor of the next page; "": none

	distanceFrom *rank.SortKey         // the point whose distance hits show
	stages       *stages               // nil: not requested
	plan         *rank.Plan            // the same
	pins         []pinnedHit[rank.Hit] // among the hits
	scoring      *scoring              // nil: no rule asks

	took span // place of processingTimeMs among the appended members
}

// span is a part of a text.
type span struct{ begin, end int }

// defaultHitsPerPage is hitsPerPage where only page is given.
const defaultHitsPerPage = 20

// pages is the number of pages that hits fill.
func pages(hits, perPage int) int {
	if perPage == 0 {
		return 0
	}
	n := hits / perPage
	if hits%perPage > 0 {
		n++
	}
	return n
}

// paginate works out the window of ranks that is asked.
func (r *Response) paginate() {
	maxTotal := r.view.Settings.Pagination.MaxTotalHits
	req := r.request
	if req.Page == nil && req.HitsPerPage == nil {
		r.offset = min(req.Offset, maxTotal)
		r.limit = min(req.Limit, maxTotal-r.offset)
		return
	}
	r.paged, r.page, r.perPage = true, 1, defaultHitsPerPage
	if req.Page != nil {
		r.page = *req.Page
	}
	if req.HitsPerPage != nil {
		r.perPage = *req.HitsPerPage
	}
	if r.page == 0 {
		return
	}
	r.offset = maxTotal
	if r.perPage == 0 || r.page-1 <= maxTotal/r.perPage {
		r.offset = min((r.page-1)*r.perPage, maxTotal)
	}
	r.limit = min(r.perPage, maxTotal-r.offset)
}

// window returns which part of a ranking the page needs. With a zero deadline, that of the settings applies.
func (r *Response) window(deadline time.Time) window {
	return window{offset: r.offset, limit: r.limit, pageSize: r.pageSize(), exhaustive: r.paged, brief: true,
		hitsOnly: r.request.Facets == nil && r.request.Aggregations == nil, deadline: deadline}
}

// Matched returns how many documents the search found, also beyond maxTotalHits. ok is false if it did not count them all: the
// request has no facets, searches by meaning, makes groups or hides duplicates, or the deadline cut it short.
func (r *Response) Matched() (n int, ok bool) {
	if r.request.Facets == nil || r.request.GroupBy != nil || r.request.Distinct != nil || r.view.Settings.DistinctAttribute != "" || r.result.kind != keyword || r.result.Degraded {
		return 0, false
	}
	for segment := range r.result.Candidates {
		n += r.result.Count(segment)
	}
	return n, true
}

// pageSize is how many hits each page of the search has.
func (r *Response) pageSize() int {
	if r.paged {
		return r.perPage
	}
	return r.request.Limit
}

// Stages returns how long each stage of the search took, in their order.
func (r *Response) Stages() iter.Seq2[string, time.Duration] {
	return func(yield func(string, time.Duration) bool) {
		if r.stages == nil {
			return
		}
		for _, e := range r.stages.list {
			if !yield(e.path, e.took) {
				return
			}
		}
	}
}

// Hits is how many hits the answer has.
func (r *Response) Hits() int { return len(r.result.Hits) }

// None reports whether no document matches, as far as the deadline allowed to search.
func (r *Response) None() bool { return r.result.Total == 0 && !r.Degraded() }

// Degraded reports whether the deadline cut the ranking or the aggregations short.
func (r *Response) Degraded() bool { return r.result.Degraded || r.cut }

// PlacesIn returns the place of each hit among the hits of another response, or −1. The other response must be from the same
// segments: of the same view, or of a trial of it.
func (r *Response) PlacesIn(other *Response) []int {
	type place struct {
		segment int
		row     segment.Row
	}
	there := make(map[place]int, len(other.result.Hits))
	for i, h := range other.result.Hits {
		there[place{h.Segment, h.Row}] = i
	}
	places := make([]int, len(r.result.Hits))
	for i, h := range r.result.Hits {
		at, ok := there[place{h.Segment, h.Row}]
		if !ok {
			at = -1
		}
		places[i] = at
	}
	return places
}

// AppendJSON appends the body of the answer to dst.
func (r *Response) AppendJSON(ctx context.Context, dst []byte) ([]byte, error) {
	return r.AppendMembers(ctx, append(dst, '{'))
}

// AppendMembers appends the body without its opening brace, so that members can stand before its own.
func (r *Response) AppendMembers(ctx context.Context, dst []byte) ([]byte, error) {
	begin := len(dst)
	dst, err := r.appendHits(turns.Of(ctx), dst)
	if err != nil {
		return nil, err
	}
	r.stages.add("search", time.Since(r.start))
	dst = append(dst, `,"query":`...)
	dst = jsontext.AppendQuoted(dst, r.request.Query)
	if r.request.RetrieveVectors && r.result.queryVector != nil {
		dst = appendVector(append(dst, `,"queryVector":`...), r.result.queryVector)
	}
	dst = append(dst, `,"processingTimeMs":`...)
	r.took.begin = len(dst) - begin
	dst = strconv.AppendInt(dst, time.Since(r.start).Milliseconds(), 10)
	r.took.end = len(dst) - begin
	if r.paged {
		dst = appendInt(dst, `,"hitsPerPage":`, r.perPage)
		dst = appendInt(dst, `,"page":`, r.page)
		dst = appendInt(dst, `,"totalPages":`, pages(r.result.Total, r.perPage))
		dst = appendInt(dst, `,"totalHits":`, r.result.Total)
	} else {
		dst = appendInt(dst, `,"limit":`, r.request.Limit)
		dst = appendInt(dst, `,"offset":`, r.offset)
		dst = appendInt(dst, `,"estimatedTotalHits":`, r.result.Total)
	}
	if r.request.Cursor != nil {
		dst = appendNext(dst, r.next)
	}
	if r.request.Suggest {
		dst = appendSuggestions(dst, r.suggestions)
	}
	if r.request.Facets != nil {
		dst = appendDistribution(dst, r.facets)
	}
	dst = append(dst, r.aggregations...)
	if r.request.ShowPerformanceDetails {
		dst = r.stages.appendJSON(append(dst, `,"performanceDetails":`...), r.plan)
	}
	if r.request.ExplainPlan {
		dst = appendPlan(append(dst, `,"plan":`...), r.plan)
	}
	dst = append(dst, `,"requestUid":"`...)
	dst = append(dst, r.request.ID.String()...)
	dst = append(dst, '"')
	if r.result.kind != keyword {
		dst = appendInt(dst, `,"semanticHitCount":`, r.result.semanticHits)
	}
	if r.request.Metadata {
		dst = appendMetadata(append(dst, `,"metadata":`...), r.view)
	}
	return append(dst, '}'), nil
}

// appendHits appends the member with the hits.
func (r *Response) appendHits(t turns.Turn, dst []byte) ([]byte, error) {
	dst = append(dst, `"hits":[`...)
	w := newHitWriter(t, r, len(dst))
	buffer := documents.Get().(*[]byte)
	w.doc = *buffer
	defer func() {
		if cap(w.doc) <= maxKeptDocument {
			*buffer = w.doc
		}
		documents.Put(buffer)
	}()
	var err error
	if r.request.GroupBy != nil {
		if dst, err = r.appendGroups(w, append(dst, `],"groups":[`...)); err != nil {
			return nil, err
		}
		r.stages.done("search > format")
		return append(dst, ']'), nil
	}
	spans := hitSpans{begin: len(dst)}
	for i := range r.result.Hits {
		r.expectFrom(w, i)
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = w.append(dst, &r.result.Hits[i]); err != nil {
			return nil, err
		}
		if r.request.Reorder != nil {
			spans.ends = append(spans.ends, len(dst))
			if isPin(r.pins, &r.result.Hits[i]) {
				spans.pinned = append(spans.pinned, i)
			}
		}
	}
	r.stages.done("search > format")
	if f := r.request.Reorder; f != nil {
		if dst, err = spans.apply(t, dst, f, deadline(r.view, r.start)); err != nil {
			return nil, err
		}
		r.stages.done("search > personalization")
	}
	return append(dst, ']'), nil
}

// expectedHits is for how many hits documents are requested at once, because a long answer may end early.
const expectedHits = 64

// expectFrom expects the documents of the hits from the i-th on, if it is their turn.
func (r *Response) expectFrom(w *hitWriter, i int) {
	if i%expectedHits == 0 && !w.bare {
		expectDocuments(r.view, r.result.Hits[i:min(i+expectedHits, len(r.result.Hits))])
	}
}

// expectDocuments requests the documents of hits, at most expectedHits, to be read together from disk or memory, instead of waiting
// for each.
func expectDocuments(v *index.View, hits []rank.Hit) {
	if len(hits) < 2 {
		return
	}
	var rows [expectedHits]segment.Row
	for i, of := range v.Segments {
		n := 0
		for j := range hits {
			if hits[j].Segment == i {
				rows[n] = hits[j].Row
				n++
			}
		}
		if n > 0 {
			of.ExpectDocuments(rows[:n])
		}
	}
}

// appendGroups appends the groups with their hits.
func (r *Response) appendGroups(w *hitWriter, dst []byte) (_ []byte, err error) {
	columns := columnsIn(r.view, r.request.GroupBy.Attribute)
	at := 0 // in the hits of all groups
	for i, one := range r.groups {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendKey(append(dst, `{"key":`...), &one.key, leastSpelling(nil, one, columns))
		dst = append(appendInt(dst, `,"count":`, one.count), `,"hits":[`...)
		for n := range one.hits {
			if n > 0 {
				dst = append(dst, ',')
			}
			r.expectFrom(w, at)
			at++
			if dst, err = w.append(dst, &one.hits[n]); err != nil {
				return nil, err
			}
		}
		dst = append(dst, "]}"...)
	}
	return dst, nil
}

// documents are buffers for one document at a time.
var documents = sync.Pool{New: func() any { return new([]byte) }}

const maxKeptDocument = 1 << 20 // bytes

// appendMetadata appends what identifies a query and its index.
func appendMetadata(dst []byte, v *index.View) []byte {
	dst = append(dst, `{"queryUid":"`...)
	dst = append(dst, uuid.Must(uuid.NewV7()).String()...)
	dst = append(dst, `","indexUid":`...)
	dst = jsontext.AppendQuoted(dst, v.UID)
	if v.PrimaryKey != "" {
		dst = jsontext.AppendQuoted(append(dst, `,"primaryKey":`...), v.PrimaryKey)
	}
	return append(dst, '}')
}

func appendInt(dst []byte, key string, n int) []byte {
	return strconv.AppendInt(append(dst, key...), int64(n), 10)
}

// hitWriter appends hits, reusing its buffers.
type hitWriter struct {
	r       *Response
	turn    turns.Turn
	shown   selection.Selection
	wanted  segment.Wanted        // what of a document is read
	brief   func(key []byte) bool // of that, members that need not be read to their end; nil: none
	bare    bool                  // no attribute of a document is shown, so none is read, unless a federated search or a remote needs it
	plain   bool                  // whole documents are shown, and nothing else needs them, so they are read into the answer
	vectors *embeddings           // nil: not requested
	format  *format.Formatter     // nil if the request needs neither _formatted nor _matchesPosition
	doc     []byte
	tails   []segment.Tail
	raw     []byte        // the shown part of doc, before hydration
	meter   *budget.Meter // of the answer: its own, or a shared one
	own     budget.Meter
	room    budget.Room // for doc and what is shown of it
	hits    int         // appended so far

	federated *federated        // query of a federated search; nil: the search stands alone
	in        *FederatedRequest // that search
	place     *int              // given by a rule to the next hit of that search; nil: none
	peer      *peerWriter       // gets what hits are merged by; nil: the hits contain it
}

// newHitWriter returns a writer that appends hits to an answer of this length, in one turn.
func newHitWriter(t turns.Turn, r *Response, length int) *hitWriter {
	req := r.request
	account := t.Account()
	w := &hitWriter{r: r, turn: t, own: budget.NewMeter(account, length), room: budget.NewRoom(account), shown: selection.Of(selection.Retrieved(r.view.Fields, r.view.Settings.DisplayedAttributes, req.AttributesToRetrieve))}
	w.meter = &w.own
	if req.RetrieveVectors && displaysVectors(r.view) {
		w.vectors = newEmbeddings(r.view)
	}
	if req.formats() {
		w.format = format.New(&r.view.Outline, req.format(), r.result.Highlights())
		w.format.Stored(r.view)
		w.format.Charge(t)
		if h := cmp.Or(r.hydrate, r.leaves); h != nil {
			w.format.Foreign = h.appendValueAt
		}
	}
	if r.hydrate != nil {
		r.hydrate.meter = w.own
	}
	w.bare = w.shown.None() && w.format == nil && w.vectors == nil && r.hydrate == nil
	w.plain = w.shown.All && w.format == nil && w.vectors == nil && r.hydrate == nil
	if !req.ShowMatchesPosition {
		read := []selection.Selection{w.shown}
		if w.format != nil && w.format.Enabled {
			read = append(read, w.format.Shown)
		}
		w.wanted = selection.Wanted(w.vectors != nil, read...)
		if len(read) > 1 && r.hydrate == nil && r.leaves == nil {
			shown := selection.Wanted(w.vectors != nil, w.shown)
			w.brief = func(key []byte) bool { return shown.Has != nil && !shown.Has(key) && w.format.Brief(key) }
		}
	}
	return w
}

// clockHits is the number of hits between checks whether the answer is still wanted.
const clockHits = 8

// append appends one hit: the shown fields of the document, then what the request needs about it.
func (w *hitWriter) append(dst []byte, h *rank.Hit) ([]byte, error) {
	if w.hits++; w.hits%clockHits == 0 {
		if err := w.turn.Yield(); err != nil {
			return nil, err
		}
	}
	if w.meter.Due(len(dst)) {
		if err := w.meter.Grown(len(dst)); err != nil {
			return nil, err
		}
	}
	s := w.r.view.Segments[h.Segment]
	var err error
	read := w.wanted
	looks := w.in != nil && w.in.Proxy && w.r.request.Distinct != nil // for a hidden field
	if looks {
		read = segment.Wanted{}
	}
	at := len(dst)
	switch {
	case w.plain && w.in == nil && w.peer == nil:
		if dst, err = w.appendPlain(dst, h); err != nil {
			return nil, err
		}
	case w.bare && w.in == nil && w.peer == nil:
		w.doc = append(w.doc[:0], "{}"...)
	default:
		if w.doc, w.tails, err = s.AppendBeginnings(w.doc[:0], h.Row, read, w.brief, w.tails[:0], &w.room); err != nil {
			return nil, err
		}
	}
	if len(dst) == at {
		if dst, err = w.shown.Append(segment.Grow(dst, len(w.doc)), w.doc); err != nil {
			return nil, err
		}
	}
	distant := w.r.distanceFrom != nil && showsPoint(dst[at:])
	if w.r.hydrate != nil || looks {
		w.raw = append(w.raw[:0], dst[at:]...)
	}
	if w.r.hydrate != nil {
		if dst, err = w.r.hydrate.appendObject(dst[:at], w.raw); err != nil {
			return nil, err
		}
	}
	if w.vectors != nil {
		if dst, err = w.vectors.appendMember(dst, at, w.doc, h.Segment, h.Row); err != nil {
			return nil, err
		}
	}
	dst = dst[:len(dst)-1] // the closing brace comes back at the end
	open := len(dst)
	if p := w.r.distanceFrom; distant {
		if g := s.Geo(); g != nil {
			if lat, lng, ok := g.Point(h.Row); ok {
				dst = append(dst, `,"_geoDistance":`...)
				dst = strconv.AppendInt(dst, int64(math.Round(geo.Distance(p.Lat, p.Lng, lat, lng))), 10)
			}
		}
	}
	member := len(dst) + 1
	switch {
	case w.peer != nil:
		dst = append(dst, ","+peerMember...)
	case w.federated != nil:
		dst = w.federated.appendFederation(dst, w.in, h, w.place, w.doc, w.raw)
	}
	if w.format != nil && w.format.Enabled {
		before := len(dst)
		dst = append(dst, `,"_formatted":`...)
		from := len(dst)
		if dst, err = w.format.AppendFormatted(dst, h.Segment, h.Row, w.doc, w.tails); err != nil {
			return nil, err
		}
		if string(dst[from:]) == "{}" { // nothing is formatted
			dst = dst[:before]
		}
	}
	if w.r.request.ShowMatchesPosition {
		dst = append(dst, `,"_matchesPosition":`...)
		if dst, err = w.format.AppendMatches(dst, w.doc); err != nil {
			return nil, err
		}
	}
	if w.r.request.ShowRankingScore {
		dst = append(dst, `,"_rankingScore":`...)
		dst = jsontext.AppendFloat(dst, h.Score)
	}
	if w.r.request.ShowRankingScoreDetails {
		dst = append(dst, `,"_rankingScoreDetails":`...)
		dst = append(dst, h.Details...)
	}
	if open == at+1 && len(dst) > open { // no field is shown: no comma after the brace
		dst = append(dst[:open], dst[open+1:]...)
		member--
	}
	dst = append(dst, '}')
	if w.peer != nil {
		w.peer.note(w.federated, h, w.place, w.doc, w.raw, len(dst)-at, member-at)
	}
	return dst, nil
}

// showsPoint reports whether an object has a point as the field _geo. A hit that shows no point, or half of one, shows no distance to
// it either.
func showsPoint(doc []byte) bool {
	var lat, lng bool
	half := func(name, _ []byte) error {
		lat, lng = lat || string(name) == "lat", lng || string(name) == "lng"
		return nil
	}
	// Other values have no fields.
	_ = document.Fields(doc, func(name, value []byte) error {
		if string(name) == settings.GeoField {
			return document.Fields(value, half)
		}
		return nil
	})
	return lat && lng
}

// appendPlain appends the document of a hit without a copy between, unless it has to leave out vectors: then it appends nothing, and the
// document is in w.doc.
func (w *hitWriter) appendPlain(dst []byte, h *rank.Hit) ([]byte, error) {
	at := len(dst)
	dst, err := w.r.view.Segments[h.Segment].AppendMembers(dst, h.Row, segment.Wanted{}, &w.room)
	if err != nil || !selection.MayHaveVectors(dst[at:]) {
		return dst, err
	}
	w.doc = append(w.doc[:0], dst[at:]...)
	return dst[:at], nil
}
