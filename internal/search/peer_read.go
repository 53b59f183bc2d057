package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/turns"
)

// ReadType is the content type of answers between instances if one reads documents, values of facets or foreign documents for the
// whole network. Numbers are varints, texts follow their lengths, and values are as in PeerType:
//
//	documents: for each shard the number of all its documents; then of each on the page 1, its text, the number of values that it is
//	  sorted by, and the values; then 0, and the states of the aggregations, if the request has any (aggregate.Result)
//	facets: of each value 1, text, key if it differs, or "", and count; then 0
//	ids of foreign documents: of each 1 and the id; then 0
//	words of a query: of each 1, where it begins and ends in the query, 1 if a document has it, number of words that it may stand for, and
//	  of each text, typos and number of documents; then 0
//	foreign documents: of each id that was asked for 1 and the document as it is shown, or 0 if there is none
const ReadType = "application/vnd.svc.read-1"

const (
	// MostSorted is the last document up to which lists of several instances are sorted: a page must end before it.
	MostSorted = 100_000
	// ReadBytes is the approximate size of the documents that an instance sends in one answer. An instance that needs more asks
	// again.
	ReadBytes = 16 << 20
	// mergedFacets is how many values of a facet an instance sends to another one if they are ordered by count and more exist than
	// are shown.
	mergedFacets = 20_000
)

var (
	errRead         = errors.New("it is not an answer of another instance")
	errReadDocument = errors.New("one of its documents is not a JSON object")
	errReadMore     = errors.New("it has more than was requested")
)

// AppendPeerDocuments appends the part of one shard for another instance to merge: its number of documents, and the first documents
// of a page. It stops after most bytes, but not before the first document. The memory is charged.
func AppendPeerDocuments(ctx context.Context, dst []byte, v *index.View, r *FetchRequest, most int) ([]byte, error) {
	page, rows, err := fetchPage(ctx, v, r)
	if err != nil {
		return nil, err
	}
	aggregations, err := r.aggregate(ctx, v, rows)
	if err != nil {
		return nil, err
	}
	t := turns.Of(ctx)
	w := newDocumentWriter(t.Account(), v, r.Fields, r.RetrieveVectors)
	begin, held := len(dst), len(dst)
	hold := func() error {
		err := t.Account().Hold(int64(len(dst) - held))
		held = len(dst)
		return err
	}
	dst = binary.AppendUvarint(dst, uint64(cardinality(rows)))
	var text []byte
	i := 0
	for p, err := range page {
		if err != nil {
			return nil, err
		}
		if i%clockHits == 0 {
			if err := cmp.Or(hold(), t.Yield()); err != nil {
				return nil, err
			}
		}
		if i > 0 && len(dst)-begin >= most {
			break
		}
		i++
		if !r.Bare {
			if text, err = w.append(text[:0], p.segment, p.row); err != nil {
				return nil, err
			}
		}
		dst = appendText(append(dst, 1), text)
		dst = binary.AppendUvarint(dst, uint64(len(p.values)))
		for k := range p.values {
			dst = appendPeerValue(dst, &p.values[k], 1)
		}
	}
	dst = append(dst, 0)
	if aggregations != nil {
		dst = aggregations.AppendPeer(dst)
	}
	return dst, hold()
}

// PeerDocuments are documents of a shard from another instance.
type PeerDocuments struct {
	Total  int
	Texts  [][]byte            // JSON objects; those of a bare page are empty
	Values [][]rank.ScoreValue // by which they are sorted

	Aggregations *aggregate.Result // nil: not asked for
}

const (
	textBytes = 24 // of a slice of bytes or values
	nameBytes = 16 // of a string
)

// ParseDocuments reads the answer of an instance for some shards. limits has the maximum number of documents of each page. The answer
// is in the body, to which 8 bytes are appended. If reading ends early, ParseDocuments returns the error of reading.Ended.
func ParseDocuments(body []byte, limits []int, bare bool, aggregations *aggregate.Request, reading *Reading) (parts []PeerDocuments, err error) {
	padded := append(body, make([]byte, document.Padding)...)
	p := peerReader{left: padded[:len(body):len(body)], Reading: reading}
	parts = make([]PeerDocuments, len(limits))
	for i := range parts {
		part := &parts[i]
		part.Total = p.int(math.MaxUint32)
		for p.byte() == 1 {
			if len(part.Texts) == limits[i] {
				return nil, errReadMore
			}
			text := p.text()
			from := len(body) - len(p.left) - len(text)
			n := p.count(leastPeerValue)
			if p.stop(p.make(n*scoreBytes)) || p.stop(p.step()) {
				break
			}
			values := make([]rank.ScoreValue, n)
			for k := range values {
				if p.stop(p.step()) {
					break
				}
				values[k] = p.value()
			}
			if p.bad {
				break
			}
			if bare != (len(text) == 0) || !bare && !document.Compacted(padded, from, from+len(text)) {
				return nil, errReadDocument
			}
			if part.Texts, err = makeRoom(reading, part.Texts, 1, textBytes); err != nil {
				return nil, err
			}
			if part.Values, err = makeRoom(reading, part.Values, 1, textBytes); err != nil {
				return nil, err
			}
			part.Texts, part.Values = append(part.Texts, text), append(part.Values, values)
		}
		if aggregations != nil && !p.bad {
			if part.Aggregations, err = aggregations.ReadPeer(peerStates{&p}); err != nil {
				return nil, err
			}
		}
	}
	return parts, p.end()
}

// end returns an error if the data was not a valid answer.
func (p *peerReader) end() error {
	switch {
	case p.ended != nil:
		return p.ended
	case p.bad || len(p.left) > 0:
		return errRead
	}
	return nil
}

// Window is a part of the sorted documents of a shard.
type Window struct{ From, Count int }

// Page returns which documents of which shards are on a page of all of them, shard by shard. totals has the number of documents of
// each shard.
func Page(totals []int, offset, limit int) []Window {
	windows := make([]Window, len(totals))
	for i, n := range totals {
		w := &windows[i]
		w.From = min(offset, n)
		w.Count = min(limit, n-w.From)
		offset, limit = offset-w.From, limit-w.Count
	}
	return windows
}

// SortedPage is Page for documents with a sort. values are those of the first documents of each shard, in order. order has the shard
// of each document on the page. Among equal documents those of the first shard come first.
func SortedPage(values [][][]rank.ScoreValue, offset, limit int) (windows []Window, order []int) {
	windows = make([]Window, len(values))
	next := make([]int, len(values))
	for n := 0; n-offset < limit; n++ {
		best := -1
		for i := range values {
			if next[i] == len(values[i]) {
				continue
			}
			if best < 0 || compareValues(&head{values: values[i][next[i]], weight: 1}, &head{values: values[best][next[best]], weight: 1}) < 0 {
				best = i
			}
		}
		if best < 0 {
			break
		}
		if n >= offset {
			if windows[best].Count == 0 {
				windows[best].From = next[best]
			}
			windows[best].Count++
			order = append(order, best)
		}
		next[best]++
	}
	return windows, order
}

// FetchAnswer builds the body of a list of documents from those of several instances.
type FetchAnswer struct {
	dst   []byte
	any   bool
	meter budget.Meter
}

// NewFetchAnswer begins a body, which is appended to dst.
func NewFetchAnswer(account *budget.Account, dst []byte) *FetchAnswer {
	return &FetchAnswer{dst: append(dst, `{"results":[`...), meter: budget.NewMeter(account, len(dst))}
}

// Add appends a document.
func (a *FetchAnswer) Add(document []byte) error {
	if a.any {
		a.dst = append(a.dst, ',')
	}
	a.any = true
	a.dst = append(a.dst, document...)
	return a.meter.Grown(len(a.dst))
}

// End returns the body. Aggregations are nil if none are requested.
func (a *FetchAnswer) End(t turns.Turn, r *FetchRequest, total int, aggregations *aggregate.Result, errs *RemoteErrors) (_ []byte, err error) {
	dst := appendFetched(append(a.dst, ']'), r, total)
	if aggregations != nil {
		if dst, err = appendAggregations(t, dst, aggregations, fetchAggregations); err != nil {
			return nil, err
		}
	}
	if !errs.None() {
		dst = errs.AppendJSON(append(dst, `,"remoteErrors":`...))
	}
	return append(dst, '}'), nil
}

// AppendRemote appends the request for another instance. The parts for each shard are sent with it.
func (r *FetchRequest) AppendRemote(dst []byte, uid string) []byte {
	o := objectWriter{append(dst, '{')}
	o.text("indexUid", uid)
	if r.Filter != nil {
		o.text("filter", r.Filter.String())
	}
	o.list("sort", r.Sort)
	o.list("fields", r.Fields)
	o.flag("retrieveVectors", r.RetrieveVectors)
	o.aggregations(r.Aggregations)
	o.flag("values", r.Values)
	o.flag("bare", r.Bare)
	return append(o.b, '}')
}

// CheckSortedPage refuses a page of sorted documents that is too deep for several instances.
func CheckSortedPage(r *FetchRequest) error {
	if len(r.Sort) == 0 || r.Offset <= MostSorted && r.Limit <= MostSorted-r.Offset {
		return nil
	}
	return apierr.New("invalid_document_offset", "`offset` and `limit` reach document %d of a sorted list, but a list over the network may reach only document %d. Use a `filter`, remove `sort`, "+
		"or request the documents of each instance (`useNetwork`: false).", r.Offset+min(r.Limit, math.MaxInt-r.Offset), MostSorted)
}
