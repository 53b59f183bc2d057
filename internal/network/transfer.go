package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/index"
	"svc/internal/pace"
	"svc/segment"
)

// pageBytes is how many bytes of documents one answer has, unless a single document has more.
const pageBytes = 8 << 20

// Transfer asks for documents of an index, in ascending order of their numbers there, or for the list of indexes.
type Transfer struct {
	Version uuid.UUID `json:"version"`
	Remote  string    `json:"remote"` // the asking instance, which gets what it will own
	Index   string    `json:"index"`  // "": the list
	Shards  []string  `json:"shards"` // shards of the previous network; nil: all documents
	After   *uint32   `json:"after"`  // the number of the last document that it has; nil: none
}

// transferredIndex is an index in the list.
type transferredIndex struct {
	UID        string          `json:"uid"`
	PrimaryKey string          `json:"primaryKey"`
	Settings   json.RawMessage `json:"settings"`
}

// Page is an answer: documents one a line, with their vectors.
type Page struct {
	Body []byte  // NDJSON, gzipped; of the list of indexes: JSON
	Last *uint32 // number of the last document; nil: none
	More bool
}

// exports are the exports in progress. Each keeps what it sends next, so that owners of documents are computed once.
type exports struct {
	mu  sync.Mutex
	all map[string]*export // by asking instance and request
}

// export is one export in progress. mu is held while a page of it is made.
type export struct {
	mu    sync.Mutex
	view  *index.View
	rows  []*roaring.Bitmap // not sent yet
	after *uint32
	room  int // that the next page may need, in bytes
}

// drop ends all exports.
func (e *exports) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		x.drop()
	}
	e.all = nil
}

// drop ends an export, also one that did not begin because its index could not be opened.
func (x *export) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget()
}

// forget drops what the export keeps. The next page begins it again. x.mu is held.
func (x *export) forget() {
	if x.view != nil {
		x.view.Release()
		x.view = nil
	}
}

// Export answers a Transfer.
func (n *Node) Export(ctx context.Context, t *Transfer) (*Page, error) {
	s := n.snapshot()
	c := s.Change
	if c == nil || s.Network.Version != t.Version || c.Phase < moving {
		return nil, apierr.New("import_task_without_network_task", "The change of the network has not reached this phase here. Try again.")
	}
	if t.Index == "" {
		return n.exportList()
	}
	key := fmt.Sprintf("%q %q %q %s", t.Remote, t.Index, t.Shards, t.Version)
	n.exports.mu.Lock()
	x := n.exports.all[key]
	if x == nil {
		x = &export{}
		if n.exports.all == nil {
			n.exports.all = map[string]*export{}
		}
		n.exports.all[key] = x
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n.exports.mu.Unlock()
	made := false
	defer func() {
		if !made { // x.rows lacks rows that were to be on the page
			x.forget()
		}
	}()
	worker := pace.Of(pace.Beside(ctx, n.o.Catalog.Searches()))
	if x.view == nil || !sameNumber(x.after, t.After) {
		if err := n.beginExport(x, s.Network, c.Previous, t, worker); err != nil {
			return nil, err
		}
	}
	p, err := x.page(worker)
	made = err == nil
	return p, err
}

func sameNumber(a, b *uint32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// exportList lists the indexes with their settings.
func (n *Node) exportList() (*Page, error) {
	list := []transferredIndex{}
	for _, uid := range n.o.Catalog.UIDs() {
		ix := n.o.Catalog.Get(uid)
		if ix == nil {
			continue
		}
		o := ix.Outline()
		list = append(list, transferredIndex{uid, o.PrimaryKey, o.Settings.Full()})
	}
	return &Page{Body: encode(list)}, nil
}

// beginExport finds the documents to send. x.mu is held.
func (n *Node) beginExport(x *export, to, previous *Network, t *Transfer, worker *pace.Worker) error {
	x.forget()
	ix := n.o.Catalog.Get(t.Index)
	if ix == nil {
		return apierr.New("index_not_found", "There is no index `%s`.", t.Index)
	}
	wanted := to.keeps(t.Remote)
	if t.Shards != nil {
		before := ringOf(previous)
		if before == nil {
			return apierr.New("bad_request", "The network before had no shards.")
		}
		now := wanted
		wanted = func(id []byte) bool {
			return slices.Contains(t.Shards, before.Names()[before.Owner(id)]) && now(id)
		}
	}
	var err error
	if x.view, err = ix.PlainView(); err != nil {
		return err
	}
	x.rows, x.after = nil, t.After
	for _, s := range x.view.Segments {
		rows := roaring.New()
		for it := s.LiveRows().Iterator(); it.HasNext(); {
			worker.Yield()
			row := segment.Row(it.Next())
			if (t.After == nil || uint32(s.DocID(row)) > *t.After) && wanted(s.ExternalID(row)) {
				rows.Add(uint32(row))
			}
		}
		x.rows = append(x.rows, rows)
	}
	return nil
}

var errPageFull = errors.New("the page is full")

// page returns the next documents. x.mu is held.
func (x *export) page(worker *pace.Worker) (*Page, error) {
	p := &Page{Last: x.after}
	body := bytes.NewBuffer(make([]byte, 0, x.room))
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(body)
	size := 0
	err := dump.Documents(x.view, x.rows, func(seg int, row segment.Row, doc []byte) error {
		worker.Yield()
		if size > 0 && size+len(doc) > pageBytes {
			return errPageFull
		}
		size += len(doc) + 1
		for _, part := range [...][]byte{doc, {'\n'}} {
			if _, err := z.Write(part); err != nil {
				return err
			}
		}
		id := uint32(x.view.Segments[seg].DocID(row))
		p.Last = &id
		x.rows[seg].Remove(uint32(row))
		return nil
	})
	p.More = errors.Is(err, errPageFull)
	if err != nil && !p.More {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	p.Body, x.after = body.Bytes(), p.Last
	x.room = len(p.Body) + len(p.Body)/8
	return p, nil
}

// zippers are large, and each page needs one.
var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("network: " + err.Error()) // the level is a constant
	}
	return z
}}

// The headers of a Page.
const (
	transferLast = "Svc-Transfer-Last"
	transferMore = "Svc-Transfer-More"
)

// Headers of a page.
func (p *Page) Headers() map[string]string {
	h := map[string]string{transferMore: strconv.FormatBool(p.More)}
	if p.Last != nil {
		h[transferLast] = strconv.FormatUint(uint64(*p.Last), 10)
	}
	return h
}
