package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/shard"
	"svc/segment"
)

const (
	pageBytes  = 8 << 20  // of documents in one answer, unless a single one has more
	storeBytes = 64 << 20 // of documents that are stored together
)

// Transfer asks for documents of an index, in ascending order of their numbers there, or for the list of indexes.
type Transfer struct {
	Version uuid.UUID `json:"version"`
	Remote  string    `json:"remote"` // who asks: it gets what it is to own
	Index   string    `json:"index"`  // "": the list
	Shards  []string  `json:"shards"` // of the network before, whose documents are wanted; nil: of whatever is there
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
	Body []byte
	Last *uint32 // number of the last document; nil: there is none
	More bool
}

// exports are the exports under way: what each asks for next, so that owners of documents are worked out once.
type exports struct {
	mu  sync.Mutex
	all map[string]*export // by who asks and for what
}

type export struct {
	mu    sync.Mutex
	view  *index.View
	rows  []*roaring.Bitmap // not sent yet
	after *uint32
}

// drop ends all exports.
func (e *exports) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		x.mu.Lock()
		x.view.Release()
		x.view = nil
		x.mu.Unlock()
	}
	e.all = nil
}

// Export answers a Transfer.
func (n *Node) Export(t *Transfer) (*Page, error) {
	s := n.snapshot()
	c := s.Change
	if c == nil || s.Network.Version != t.Version || c.Phase < moving {
		return nil, apierr.New("import_task_without_network_task", "The change of the network is not that far here. Ask again.")
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
	if x.view == nil || !sameNumber(x.after, t.After) {
		if err := n.beginExport(x, s.Network, c.Previous, t); err != nil {
			return nil, err
		}
	}
	return x.page()
}

func sameNumber(a, b *uint32) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func (n *Node) exportList() (*Page, error) {
	list := []transferredIndex{}
	for _, uid := range n.o.Catalog.UIDs() {
		ix := n.o.Catalog.Get(uid)
		if ix == nil {
			continue
		}
		v := ix.View()
		list = append(list, transferredIndex{uid, v.PrimaryKey, v.Settings.Full()})
		v.Release()
	}
	return &Page{Body: encode(list)}, nil
}

// beginExport finds what is to be sent. x.mu is held.
func (n *Node) beginExport(x *export, to, previous *Network, t *Transfer) error {
	if x.view != nil {
		x.view.Release()
		x.view = nil
	}
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
	x.view, x.rows, x.after = ix.View(), nil, t.After
	for _, s := range x.view.Segments {
		rows := roaring.New()
		for it := s.LiveRows().Iterator(); it.HasNext(); {
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
func (x *export) page() (*Page, error) {
	p := &Page{Last: x.after}
	err := dump.Documents(x.view, x.rows, func(seg int, row segment.Row, doc []byte) error {
		if len(p.Body) > 0 && len(p.Body)+len(doc) > pageBytes {
			return errPageFull
		}
		p.Body = append(append(p.Body, doc...), '\n')
		id := uint32(x.view.Segments[seg].DocID(row))
		p.Last = &id
		x.rows[seg].Remove(uint32(row))
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	x.after = p.Last
	p.More = err != nil
	return p, nil
}

// source is who has documents that this instance is to own.
type source struct {
	name   string
	remote *Remote
	shards []string // nil: whatever it has
	others []string // who has the same, if it does not answer
	leaves bool     // it is being removed
}

// key names a source where its progress is stored.
func (s *source) key() string { return s.name + "\x00" + strings.Join(s.shards, "\x00") }

// sources returns whom to ask, in the order of their names.
func (r *changing) sources() []source {
	self := r.network.SelfName()
	if self == "" || len(r.network.owned(self)) == 0 {
		return nil
	}
	var list []source
	all := everybody(r.network, r.previous)
	leaves := func(name string) bool { return r.network.Remotes[name] == nil }
	for _, name := range sortedNames(all) {
		// Who was no part of the sharded network may have anything.
		if name != self && !slices.Contains(r.rebuilt, name) && (!r.previous.Led() || r.previous.Remotes[name] == nil) {
			list = append(list, source{name: name, remote: all[name], leaves: leaves(name)})
		}
	}
	if !r.previous.Led() {
		return list
	}
	by := map[string][]string{} // by the ranking of their owners
	for _, name := range r.previous.ShardNames() {
		owners := slices.DeleteFunc(slices.Clone(r.previous.Shards[name].Remotes), func(o string) bool { return slices.Contains(r.rebuilt, o) })
		if len(owners) == 0 {
			continue
		}
		if slices.Contains(owners, self) && r.previous.Remotes[self] != nil {
			continue
		}
		ranking := ranked(owners, name)
		by[strings.Join(ranking, "\x00")] = append(by[strings.Join(ranking, "\x00")], name)
	}
	for _, ranking := range sortedNames(by) {
		names := strings.Split(ranking, "\x00")
		list = append(list, source{name: names[0], remote: all[names[0]], shards: by[ranking], others: names[1:], leaves: leaves(names[0])})
	}
	return list
}

// ranked orders the owners of a shard by which of them is to send it.
func ranked(owners []string, name string) []string {
	var order []string
	left := slices.Clone(owners)
	for len(left) > 0 {
		best := shard.Winner(left, name)
		order = append(order, best)
		left = slices.DeleteFunc(left, func(o string) bool { return o == best })
	}
	return order
}

// fetch gets from all sources what this instance is to own.
func (r *changing) fetch() error {
	list := r.sources()
	for i := range list {
		s := &list[i]
		r.progress(1, index.Step{Name: "instance " + s.name, Finished: i, Total: len(list)})
		if c := r.change(); c == nil {
			return canceledChange()
		} else if slices.Contains(c.Fetched, s.key()) {
			continue
		}
		if err := r.fetchFrom(s); err != nil {
			return err
		}
		err := r.n.update(func(st *stored) {
			if st.Change != nil {
				st.Change.Fetched = append(slices.Clone(st.Change.Fetched), s.key())
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchFrom gets everything from one source, or from one of those who have the same.
func (r *changing) fetchFrom(s *source) error {
	began := time.Now()
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		err := r.tryFetch(s.name, s.remote, s)
		var remote *apierr.Error
		if err == nil || !errors.As(err, &remote) || !passing(remote.Code) {
			return err
		}
		for _, name := range s.others {
			if away(remote.Code) && r.tryFetch(name, everybody(r.network, r.previous)[name], s) == nil {
				return nil
			}
		}
		if s.leaves && time.Since(began) > farewell {
			r.n.o.Logger.Error("a remote that leaves the network does not answer: documents that it alone has are not moved", "remote", s.name, "error", remote)
			r.message = fmt.Sprintf("Finished without what only `%s` had, which does not answer", s.name)
			return nil
		}
		st, e := r.n.changeAt(r.ctx, s.name, s.remote, r.version)
		if e == nil && st.Canceled {
			return canceledChange()
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// away reports whether a remote did not answer at all.
func away(c apierr.Code) bool { return c == "remote_could_not_send_request" || c == "remote_timeout" }

// passing reports whether what went wrong with a remote may be over the next time.
func passing(c apierr.Code) bool { return strings.HasPrefix(string(c), "remote_") }

func (r *changing) tryFetch(name string, remote *Remote, s *source) error {
	t := &Transfer{Version: r.version, Remote: r.network.SelfName(), Shards: s.shards}
	got, err := r.transfer(name, remote, t)
	if err != nil {
		return err
	}
	var list []transferredIndex
	if err := json.Unmarshal(got.body, &list); err != nil {
		return apierr.New("remote_bad_response", "The list of indexes of the remote `%s` cannot be read: %v.", name, err)
	}
	for i := range list {
		r.progress(2, index.Step{Name: "index " + list[i].UID, Finished: i, Total: len(list)})
		if err := r.fetchIndex(name, remote, s, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *changing) transfer(name string, remote *Remote, t *Transfer) (*reply, error) {
	ctx, cancel := context.WithTimeout(r.ctx, 2*r.n.o.RequestTimeout)
	defer cancel()
	got, _, err := r.n.do(ctx, name, remote, &request{method: "POST", path: "/network/transfer", key: remote.WriteAPIKey, contentType: "application/json", body: encode(t)})
	if err != nil {
		if r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		return nil, err
	}
	return got, nil
}

// fetchIndex gets the documents of one index of a source, and the index where there is none.
func (r *changing) fetchIndex(name string, remote *Remote, s *source, from *transferredIndex) error {
	catalog := r.n.o.Catalog
	ix := catalog.Get(from.UID)
	if ix == nil {
		var err error
		if ix, err = catalog.Create(from.UID, from.PrimaryKey, catalog.LastBatch()); err != nil {
			return err
		}
		u, err := settings.ParseUpdate(from.Settings, settings.Features{ForeignKeys: true, Chat: true, CompositeEmbedders: true, Multimodal: true})
		if err == nil {
			_, err = ix.ApplyBeside(r.ctx, []index.Op{index.UpdateSettings{Update: u}}, nil)
		}
		if err != nil {
			return fmt.Errorf("cannot make index %s as it is at the remote %s: %w", from.UID, name, err)
		}
	}
	key := s.key() + "\x00" + from.UID
	t := &Transfer{Version: r.version, Remote: r.network.SelfName(), Shards: s.shards, Index: from.UID}
	if c := r.change(); c != nil && name == s.name {
		if after, ok := c.Cursors[key]; ok {
			t.After = &after
		}
	}
	var lines []byte
	n := 0
	for more := true; more; {
		got, err := r.transfer(name, remote, t)
		if err != nil {
			return err
		}
		if last := got.header.Get(transferLast); last != "" {
			id, err := strconv.ParseUint(last, 10, 32)
			if err != nil {
				return apierr.New("remote_bad_response", "The remote `%s` does not number its documents.", name)
			}
			after := uint32(id)
			t.After = &after
		}
		more = got.header.Get(transferMore) == "true"
		lines = append(lines, got.body...)
		if len(lines) == 0 || more && len(lines) < storeBytes {
			continue
		}
		n += bytes.Count(lines, []byte{'\n'})
		if err := r.store(ix, from.PrimaryKey, name, s, lines); err != nil {
			return err
		}
		r.progress(3, index.Step{Name: "document", Finished: n, Total: n})
		lines = lines[:0]
		if name != s.name {
			continue // numbers are those of another instance
		}
		err = r.n.update(func(st *stored) {
			if st.Change == nil {
				return
			}
			cursors := map[string]uint32{key: *t.After}
			for k, v := range st.Change.Cursors {
				if k != key {
					cursors[k] = v
				}
			}
			st.Change.Cursors = cursors
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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

// store adds documents to an index. Of documents of one id that several instances brought along, that of the last name stays.
func (r *changing) store(ix *index.Index, primaryKey, from string, s *source, lines []byte) error {
	file := path.Join(r.n.o.Work, fetchedName)
	fsys := r.n.o.FS
	if err := fsys.MkdirAll(r.n.o.Work); err != nil {
		return err
	}
	f, err := fsys.Create(file)
	if err != nil {
		return fmt.Errorf("cannot keep fetched documents: %w", err)
	}
	_, err = f.Write(lines)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot keep fetched documents: %w", err)
	}
	defer func() { _ = fsys.Remove(file) }() // or the next one replaces it
	op := index.AddDocuments{Payload: file, PrimaryKey: primaryKey}
	if s.shards == nil && from < r.network.SelfName() {
		v := ix.View()
		defer v.Release()
		op.Owned = func(id []byte) bool {
			_, _, there := v.Find(id)
			return !there
		}
	}
	results, err := ix.ApplyBeside(r.ctx, []index.Op{op}, nil)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return fmt.Errorf("cannot store documents of the remote %s in index %s: %w", from, ix.UID(), err)
	}
	return nil
}

const fetchedName = "network.ndjson"
