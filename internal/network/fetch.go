package network

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/shard"
)

// source is an instance with documents that this instance will own.
type source struct {
	name   string
	remote *Remote
	shards []string // nil: all documents
	others []string // other instances with the same documents
	leaves bool     // it is being removed
	fills  bool     // its documents replace none
}

// key names a source where its progress is stored.
func (s *source) key() string { return s.name + "\x00" + strings.Join(s.shards, "\x00") }

// sources returns whom to ask, in the order of their names.
func (r *changing) sources() []source {
	self := r.network.SelfName()
	if self == "" || len(r.network.owned(self)) == 0 && r.ages[self] == 0 {
		return nil
	}
	var list []source
	all := everybody(r.network, r.previous)
	leaves := func(name string) bool { return r.network.Remotes[name] == nil }
	for _, name := range sortedNames(all) {
		// Who was no part of the sharded network may have anything.
		if name != self && !slices.Contains(r.rebuilt, name) && (!r.previous.Led() || r.previous.Remotes[name] == nil) {
			list = append(list, source{name: name, remote: all[name], leaves: leaves(name), fills: name < self})
		}
	}
	if !r.previous.Led() {
		slices.SortStableFunc(list, func(a, b source) int { return cmp.Compare(r.ages[a.name], r.ages[b.name]) })
		for i := range list {
			s := &list[i]
			age := r.ages[s.name]
			s.fills = age > r.ages[list[0].name] || age > r.ages[self] || age == r.ages[self] && s.fills
		}
		return list
	}
	by := map[string][]string{} // by the ranking of their owners
	trusted := r.trusted()
	for _, name := range trusted.ShardNames() {
		owners := trusted.Shards[name].Remotes
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
			if st.Change != nil && st.Network.Version == r.version {
				st.Change.Fetched = append(slices.Clone(st.Change.Fetched), s.key())
			}
		})
		if err != nil {
			return err
		}
	}
	return r.dropForgotten(list)
}

// fetchFrom gets everything from a source, or from another instance with the same documents.
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
			r.n.o.Logger.Error("a remote that leaves the network does not answer: documents that only it has are not moved", "remote", s.name, "error", remote)
			r.message = fmt.Sprintf("Finished without the documents that only `%s` had, which does not answer", s.name)
			return nil
		}
		st, e := r.n.changeAt(r.ctx, s.name, s.remote, r.version)
		if e == nil && (st.Canceled || st.Committed) { // committed: this instance had moved, and was set back to a snapshot since
			return canceledChange()
		}
		if r.change() == nil { // given up here: see lose
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

// passing reports whether an error of a remote may be temporary.
func passing(c apierr.Code) bool { return strings.HasPrefix(string(c), "remote_") }

// tryFetch fetches all indexes that a source has for this instance.
func (r *changing) tryFetch(name string, remote *Remote, s *source) error {
	list, err := r.indexesOf(name, remote, &Transfer{Version: r.version, Remote: r.network.SelfName(), Shards: s.shards})
	if err != nil {
		return err
	}
	for i := range list {
		r.progress(2, index.Step{Name: "index " + list[i].UID, Finished: i, Total: len(list)})
		if err := r.fetchIndex(name, remote, s, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// indexesOf asks a source for the list of its indexes.
func (r *changing) indexesOf(name string, remote *Remote, t *Transfer) (list []transferredIndex, err error) {
	got, err := r.transfer(r.ctx, name, remote, t, nil)
	if err != nil {
		return nil, err
	}
	if list, err = readIndexes(got.body); err != nil {
		return nil, apierr.New("remote_bad_response", "The list of indexes of the remote `%s` cannot be read: %v.", name, err)
	}
	return list, nil
}

// maxIndexes is the maximum number of indexes of a remote. A longer list is refused.
const maxIndexes = 200_000

// readIndexes reads the list of a remote's indexes, and stops at the first invalid one.
func readIndexes(body []byte) (list []transferredIndex, err error) {
	in := json.NewDecoder(bytes.NewReader(body))
	if start, err := in.Token(); err != nil || start == nil { // an empty list may be null
		return nil, err
	} else if start != json.Delim('[') {
		return nil, errors.New("it is not a list")
	}
	for in.More() {
		var ix transferredIndex
		if err := in.Decode(&ix); err != nil {
			return nil, err
		}
		switch {
		case ix.UID == "":
			return nil, errors.New("one of them has no uid")
		case len(list) == maxIndexes:
			return nil, fmt.Errorf("there are more than %d", maxIndexes)
		}
		list = append(list, ix)
	}
	_, err = in.Token() // its end
	return list, err
}

// fetchIndex gets the documents of one index of a source. It creates the index if there is none.
func (r *changing) fetchIndex(name string, remote *Remote, s *source, from *transferredIndex) error {
	ix, err := r.indexLike(name, from)
	if err != nil {
		return err
	}
	key := s.key() + "\x00" + from.UID
	t := &Transfer{Version: r.version, Remote: r.network.SelfName(), Shards: s.shards, Index: from.UID}
	if c := r.change(); c != nil && name == s.name {
		if after, ok := c.Cursors[key]; ok {
			t.After = &after
		}
	}
	if err := r.n.o.FS.MkdirAll(r.n.o.Work); err != nil {
		return fmt.Errorf("cannot keep fetched documents: %w", err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	batches := make(chan batch)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { r.receive(ctx, name, remote, t, batches) })
	n := 0
	for b := range batches {
		if b.err != nil {
			return b.err
		}
		err := r.store(ix, from.PrimaryKey, name, s, b.file)
		_ = r.n.o.FS.Remove(b.file) // or the next one replaces it
		if err != nil {
			return err
		}
		n += b.documents
		r.progress(3, index.Step{Name: "document", Finished: n, Total: n})
		if name != s.name {
			continue // document numbers are local to an instance
		}
		if err := r.noteCursor(key, b.last); err != nil {
			return err
		}
	}
	return nil
}

// indexLike returns the index for the documents of an index of a source.
func (r *changing) indexLike(name string, from *transferredIndex) (*index.Index, error) {
	catalog := r.n.o.Catalog
	if ix := catalog.Get(from.UID); ix != nil {
		return ix, r.catchUp(ix, name, from)
	}
	ix, err := catalog.Create(from.UID, from.PrimaryKey, catalog.LastBatch())
	if err != nil {
		return nil, err
	}
	return ix, r.configure(ix, name, from)
}

// configure gives an index the settings that it has at a source.
func (r *changing) configure(ix *index.Index, name string, from *transferredIndex) error {
	u, err := settings.ParseUpdate(from.Settings, settings.Features{ForeignKeys: true, Chat: true, CompositeEmbedders: true, Multimodal: true})
	if err == nil {
		_, err = ix.ApplyBeside(r.ctx, []index.Op{index.UpdateSettings{Update: u}}, nil)
	}
	if err != nil {
		return fmt.Errorf("cannot create index %s as on the remote %s: %w", from.UID, name, err)
	}
	return nil
}

// noteCursor stores up to which document everything of a source's index is stored.
func (r *changing) noteCursor(key string, last uint32) error {
	return r.n.update(func(st *stored) {
		if st.Change == nil || st.Network.Version != r.version {
			return
		}
		cursors := map[string]uint32{key: last}
		for k, v := range st.Change.Cursors {
			if k != key {
				cursors[k] = v
			}
		}
		st.Change.Cursors = cursors
	})
}

// Documents are stored in batches: small ones first, so that storing soon overlaps with fetching, then larger ones, because each
// costs a commit and leaves a segment.
const (
	firstBatchBytes = 8 << 20
	maxBatchBytes   = 64 << 20
)

// batch is a file of fetched documents.
type batch struct {
	file      string
	documents int
	last      uint32 // number of the last document at the source
	err       error  // why there is no more; the rest is empty
}

// receive fetches documents and hands them out in batches while those before are being stored: of two files one is written and one
// is read.
func (r *changing) receive(ctx context.Context, name string, remote *Remote, t *Transfer, batches chan<- batch) {
	defer close(batches)
	hand := func(b batch) bool {
		select {
		case batches <- b:
			return b.err == nil
		case <-ctx.Done():
			return false
		}
	}
	limit := int64(firstBatchBytes)
	page := &yieldingBuffer{worker: pace.Of(ctx)}
	for number, more := 0, true; more; number++ {
		b := batch{file: path.Join(r.n.o.Work, fetchedNames[number%len(fetchedNames)])}
		var err error
		more, err = r.receiveBatch(ctx, name, remote, t, &b, page, limit)
		if b.documents > 0 && !hand(b) {
			return
		}
		if err != nil {
			hand(batch{err: err})
			return
		}
		limit = min(2*limit, maxBatchBytes)
	}
}

var fetchedNames = [...]string{"network-0.ndjson", "network-1.ndjson"}

// receiveBatch fetches pages into a batch until it has limit bytes or there are no more. After an error the batch has the previous
// pages, so even over unreliable connections documents arrive page by page.
func (r *changing) receiveBatch(ctx context.Context, name string, remote *Remote, t *Transfer, b *batch, page *yieldingBuffer, limit int64) (more bool, err error) {
	f, err := r.n.o.FS.Create(b.file)
	if err != nil {
		return false, fmt.Errorf("cannot keep fetched documents: %w", err)
	}
	defer func() {
		if e := f.Close(); e != nil {
			*b, err = batch{}, errors.Join(err, fmt.Errorf("cannot keep fetched documents: %w", e))
		}
	}()
	size := int64(0)
	for more = true; more && size < limit; {
		page.Reset()
		got, err := r.transfer(ctx, name, remote, t, page)
		if err != nil {
			return false, err
		}
		if err := page.writeTo(f); err != nil {
			*b = batch{}
			return false, fmt.Errorf("cannot keep fetched documents: %w", err)
		}
		if last := got.header.Get(transferLast); last != "" {
			id, err := strconv.ParseUint(last, 10, 32)
			if err != nil {
				return false, apierr.New("remote_bad_response", "The remote `%s` does not number its documents.", name)
			}
			after := uint32(id)
			t.After, b.last = &after, after
		}
		size += int64(page.Len())
		b.documents += bytes.Count(page.Bytes(), []byte{'\n'})
		more = got.header.Get(transferMore) == "true"
	}
	return more, nil
}

// yieldingBuffer yields to searches on every write.
type yieldingBuffer struct {
	bytes.Buffer
	worker *pace.Worker
}

func (b *yieldingBuffer) Write(p []byte) (int, error) {
	b.worker.Yield()
	return b.Buffer.Write(p)
}

// writeTo writes all that it holds.
func (b *yieldingBuffer) writeTo(w io.Writer) error {
	for part := range slices.Chunk(b.Bytes(), writtenAtOnce) {
		b.worker.Yield()
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// writtenAtOnce is how many bytes are written to a file before the writer yields to searches again.
const writtenAtOnce = 256 << 10

// transfer requests one page. Its documents go to into, or to the reply if into is nil.
func (r *changing) transfer(ctx context.Context, name string, remote *Remote, t *Transfer, into *yieldingBuffer) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*r.n.o.RequestTimeout)
	defer cancel()
	q := &request{Message: transferMessage, key: remote.WriteAPIKey, contentType: "application/json", body: encode(t)}
	if into != nil {
		q.into = into
	}
	got, _, err := r.n.do(ctx, name, remote, q)
	if err != nil {
		if r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		return nil, err
	}
	return got, nil
}

// store adds the documents of a file to an index. If several instances have a document with the same id, the instance with the last
// name wins, unless another one has received more of the leader's writes.
func (r *changing) store(ix *index.Index, primaryKey, from string, s *source, file string) error {
	op := index.AddDocuments{Payload: file, PrimaryKey: primaryKey, Unfit: true}
	if s.fills {
		v, err := ix.PlainView()
		if err != nil {
			return err
		}
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
