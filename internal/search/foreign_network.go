package search

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/selection"
	"svc/internal/shard"
	"svc/internal/turns"
	"svc/segment"
)

// The documents of a foreign index may be on other instances. So a search of the network first asks all instances for the documents
// that a `_foreign` part of its filter selects, before it is sent to any of them. Once the hits of the page are known, it asks for
// the foreign documents that these name.

// ForeignNetwork asks all instances of a network for documents of a foreign index. target is the view of the index here.
type ForeignNetwork interface {
	// Select returns the ids of the documents that a filter selects, at most filter.MostForeign.
	Select(ctx context.Context, target *index.View, inner *filter.Expr) ([]string, error)
	// Read returns the shown parts of documents by id, {} for missing ones. Documents of an instance that fails are left out.
	Read(ctx context.Context, target *index.View, ids []string) (map[string][]byte, error)
}

// Check refuses foreign keys that lead to an index which is missing, or cannot be opened. A nil Foreign has none.
func (f *Foreign) Check(v *index.View) error {
	_, err := f.hydration(v)
	return err
}

// Resolve asks the network for the documents that the filter, which may be nil, selects in foreign indexes of v. The resulting filter
// selects the same on every instance. Errors carry the code.
func (f *Foreign) Resolve(ctx context.Context, n ForeignNetwork, v *index.View, e *filter.Expr, code apierr.Code, contains bool) (*filter.Expr, error) {
	if f == nil || !e.HasForeign() {
		return e, nil
	}
	return e.Resolve(v.Settings.ForeignKeys, code, func(uid string, inner *filter.Expr) ([]string, bool, error) {
		if !f.readable(uid) {
			return nil, false, nil
		}
		target, err := f.view(v, uid)
		if err != nil {
			return nil, false, fmt.Errorf("cannot read the foreign index %s: %w", uid, err)
		}
		if target == nil {
			return nil, false, nil
		}
		if _, err := bind(ctx, target, inner, filtering{code: code, contains: contains}); err != nil { // with the errors of this instance
			return nil, true, err
		}
		ids, err := n.Select(ctx, target, inner)
		return ids, true, err
	})
}

// SelectForeign returns the ids of the documents of a view in some shards that a filter selects, at most filter.MostForeign.
func SelectForeign(ctx context.Context, v *index.View, inner *filter.Expr, contains bool, shards []string, ring *shard.Ring) ([]string, error) {
	rows, err := universe(ctx, v, filter.And(inner, filter.InShards(shards)), filtering{code: "invalid_search_filter", contains: contains, shards: ring})
	if err != nil {
		return nil, err
	}
	var ids []string
	for i, s := range v.Segments {
		for it := rows[i].Iterator(); it.HasNext() && len(ids) < filter.MostForeign; {
			ids = append(ids, string(s.ExternalID(segment.Row(it.Next()))))
		}
	}
	return ids, nil
}

// AppendPeerIDs appends ids in the form of ReadType.
func AppendPeerIDs(dst []byte, ids []string) []byte {
	for _, id := range ids {
		dst = appendText(append(dst, 1), id)
	}
	return append(dst, 0)
}

// ParseIDs reads what an instance answered. If reading ended early, it returns the error of reading.Ended.
func ParseIDs(body []byte, reading *Reading) (ids []string, err error) {
	p := peerReader{left: body, Reading: reading}
	for p.byte() == 1 {
		if len(ids) == filter.MostForeign {
			return nil, errReadMore
		}
		id := p.text()
		if p.bad || !document.ValidID(id) {
			return nil, errRead
		}
		if err := p.make(len(id)); err != nil {
			return nil, err
		}
		if ids, err = makeRoom(reading, ids, 1, nameBytes); err != nil {
			return nil, err
		}
		ids = append(ids, string(id))
	}
	return ids, p.end()
}

// ForeignReader reads documents of a foreign index as hits show them. It is for one goroutine.
type ForeignReader struct {
	docs  foreignDocuments
	meter budget.Meter
}

// NewForeignReader returns the reader of a view.
func NewForeignReader(account *budget.Account, v *index.View) *ForeignReader {
	r := &ForeignReader{meter: budget.NewMeter(account, 0)}
	r.docs = foreignDocuments{view: v, shown: selection.Of(v.Settings.DisplayedAttributes), meter: &r.meter}
	return r
}

// Read returns the displayed part of a document, or nil if there is none.
func (r *ForeignReader) Read(id []byte) ([]byte, error) {
	if _, _, ok := r.docs.view.Find(id); !ok {
		return nil, nil
	}
	return r.docs.read(id)
}

// AppendPeer appends the document of an id in the form of ReadType.
func (r *ForeignReader) AppendPeer(dst []byte, id []byte) ([]byte, error) {
	shown, err := r.Read(id)
	if err != nil {
		return nil, err
	}
	if shown == nil {
		return append(dst, 0), nil
	}
	return appendText(append(dst, 1), shown), nil
}

// ParseForeign reads the answer of an instance for some ids: nil for each that it does not have. The documents are in the body, to
// which 8 bytes are appended. If reading ends early, it returns the error of reading.Ended.
func ParseForeign(body []byte, ids int, reading *Reading) ([][]byte, error) {
	padded := append(body, make([]byte, document.Padding)...)
	p := peerReader{left: padded[:len(body):len(body)], Reading: reading}
	if err := p.make(ids * textBytes); err != nil {
		return nil, err
	}
	docs := make([][]byte, ids)
	for i := range docs {
		if p.stop(p.step()) {
			break
		}
		if p.byte() != 1 {
			continue
		}
		docs[i] = p.text()
		from := len(body) - len(p.left) - len(docs[i])
		if !p.bad && !document.Compacted(padded, from, from+len(docs[i])) {
			return nil, errReadDocument
		}
	}
	return docs, p.end()
}

// readableKeys returns the indexes that hits of v may show documents of, for this caller.
func (f *Foreign) readableKeys(v *index.View) []string {
	if f == nil {
		return nil
	}
	var uids []string
	for _, k := range v.Settings.ForeignKeys {
		if f.readable(k.ForeignIndexUID) && !slices.Contains(uids, k.ForeignIndexUID) {
			uids = append(uids, k.ForeignIndexUID)
		}
	}
	return uids
}

// LeftIDs returns the indexes whose ids other instances must not replace in hits of v, because this instance replaces them by
// documents.
func (f *Foreign) LeftIDs(v *index.View) []string { return f.readableKeys(v) }

// leaving returns a hydration that leaves the ids of some foreign indexes, also in formatted fields, or nil.
func leaving(v *index.View, uids []string) *hydration {
	var h *hydration
	for _, k := range v.Settings.ForeignKeys {
		if !slices.Contains(uids, k.ForeignIndexUID) {
			continue
		}
		if h == nil {
			h = &hydration{at: map[string]*foreignDocuments{}}
		}
		if h.at[k.FieldName] == nil {
			h.at[k.FieldName] = &foreignDocuments{leaves: true}
		}
	}
	return h
}

// networkHydration inserts documents of all instances into hits that have been written with ids.
type networkHydration struct {
	*hydration
	within []hydratedKey // keys, and the same below _formatted
}

// networkHydration returns the one of an index, or nil if there is nothing to do.
func (r *FederatedResponse) networkHydration(uid string) (*networkHydration, error) {
	if h, known := r.hydrations[uid]; known {
		return h, nil
	}
	var made *networkHydration
	v, err := r.request.Foreign.Views.Find(uid)
	if err != nil {
		return nil, err
	}
	if v != nil {
		h, err := r.request.Foreign.hydration(v)
		if err != nil {
			return nil, err
		}
		if h != nil {
			made = &networkHydration{hydration: h}
			for _, k := range h.keys {
				k.docs.asked = map[string]bool{}
				made.within = append(made.within, k, hydratedKey{"_formatted." + k.path, k.docs})
			}
		}
	}
	if r.hydrations == nil {
		r.hydrations = map[string]*networkHydration{}
	}
	r.hydrations[uid] = made
	return made, nil
}

// hydrate inserts foreign documents into the hits of the network, which were appended last.
func (r *FederatedResponse) hydrate(ctx context.Context, dst []byte, spans *hitSpans) ([]byte, error) {
	of := make([]*networkHydration, len(r.hits)) // by hit
	any := false
	for i := range r.hits {
		h := &r.hits[i]
		uid := ""
		switch {
		case h.remote != nil:
			uid = h.theirs().uid
		case h.query.leaves != nil:
			uid = h.query.view.UID
		default:
			continue
		}
		var err error
		if of[i], err = r.networkHydration(uid); err != nil {
			return nil, err
		}
		any = any || of[i] != nil
	}
	if !any {
		return dst, nil
	}
	hits, release, err := spans.copies(turns.Of(ctx).Account(), dst)
	if err != nil {
		return nil, err
	}
	defer release()
	var scratch []byte
	for i, hit := range hits {
		if of[i] != nil {
			var err error
			if scratch, err = appendHydrated(scratch[:0], hit, of[i].within); err != nil { // which notes the ids
				return nil, err
			}
		}
	}
	if err := r.readForeign(ctx, len(dst)); err != nil {
		return nil, err
	}
	dst, spans.ends = dst[:spans.begin], spans.ends[:0]
	for i, hit := range hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		if of[i] == nil {
			dst = append(dst, hit...)
		} else {
			var err error
			if dst, err = appendHydrated(dst, hit, of[i].within); err != nil {
				return nil, err
			}
		}
		spans.ends = append(spans.ends, len(dst))
	}
	return dst, nil
}

// readForeign requests the documents of the recorded ids from the network. The answer has the given length.
func (r *FederatedResponse) readForeign(ctx context.Context, length int) error {
	account := turns.Of(ctx).Account()
	read := map[string]map[string][]byte{} // by index: several keys may lead to the same
	for _, uid := range slices.Sorted(maps.Keys(r.hydrations)) {
		h := r.hydrations[uid]
		if h == nil {
			continue
		}
		h.meter = budget.NewMeter(account, length)
		for _, k := range h.keys {
			d := k.docs
			if d.asked == nil { // another key leads there, too
				continue
			}
			known := read[d.view.UID]
			if known == nil {
				known = map[string][]byte{}
				read[d.view.UID] = known
			}
			var ids []string
			for id := range d.asked {
				if known[id] == nil {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			docs, err := r.request.ForeignNetwork.Read(ctx, d.view, ids)
			if err != nil {
				return err
			}
			maps.Copy(known, docs)
			d.asked, d.known, d.only = nil, known, true
		}
	}
	return nil
}
