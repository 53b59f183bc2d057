package filter

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

var filterRows = resultcache.NewKind[*keptRows]("rows of a filter") // under the filter as it is printed

// maxKey is the maximum length in bytes of a filter whose results are cached.
const maxKey = 1 << 10

// keptRows is what a filter has found in a segment.
type keptRows struct {
	all     *roaring.Bitmap // the rows that match, deleted or not
	deleted *roaring.Bitmap // the rows that were deleted in the view that asked last; nil: none
	live    *roaring.Bitmap // all without deleted: all itself where it has none of them
	bytes   int             // of all
}

// Kept is Rows with the cache scope of the segment: from the second use of a filter on, its result stays with the segment, whichever
// rows are deleted later. The bitmap may be shared and must not be modified.
func (b *Bound) Kept(stop Stop, s segment.Live, scope *resultcache.Scope) *roaring.Bitmap {
	if b.root == nil {
		return s.LiveRows()
	}
	k, rows := b.all(source{Live: s, scope: scope, stop: stop})
	switch {
	case s.Deleted == nil || s.Deleted.IsEmpty():
		return rows
	case k == nil:
		return roaring.AndNot(rows, s.Deleted)
	case k.deleted != s.Deleted:
		k = k.without(s.Deleted)
		filterRows.Put(scope, b.key, k, k.size())
	}
	return k.live
}

// Among returns the matching rows of a segment among rows, including deleted ones. With keep, a filter that is used again is
// evaluated for the whole segment and cached as in Kept. The bitmap may be shared and must not be modified.
func (b *Bound) Among(stop Stop, s segment.Live, scope *resultcache.Scope, rows *roaring.Bitmap, keep bool) *roaring.Bitmap {
	if b.root == nil {
		return rows
	}
	if b.key == nil || scope == nil {
		return b.root.rows(source{Live: s, scope: scope, stop: stop}, rows)
	}
	return keptAmong(b.root, source{Live: s, scope: scope, stop: stop}, b.key, rows, keep)
}

// keptAmong returns the candidates that match a part of a filter. With keep, the result of a part that is used again is cached with
// the segment.
func keptAmong(b bound, s source, key []byte, among *roaring.Bitmap, keep bool) *roaring.Bitmap {
	if k, ok := filterRows.Get(s.scope, key); ok {
		return shared(k.all, among)
	}
	if keep && filterRows.Admit(s.scope, key) {
		_, all := evaluate(b, s, key)
		return shared(all, among)
	}
	return b.rows(s, among)
}

// without returns the same with other rows deleted.
func (k *keptRows) without(deleted *roaring.Bitmap) *keptRows {
	n := &keptRows{all: k.all, deleted: deleted, live: k.all, bytes: k.bytes}
	if k.all.Intersects(deleted) {
		n.live = roaring.AndNot(k.all, deleted)
	}
	return n
}

// size is the size that the cache charges. A bitmap of deletions counts, because this may be the last reference to it.
func (k *keptRows) size() int {
	n := k.bytes + 64
	if k.deleted != nil { // it outlives the view that it is from
		n += resultcache.Overhead(k.deleted) + int(k.deleted.GetSizeInBytes())
	}
	if k.live != k.all {
		n += resultcache.Overhead(k.live) + int(k.live.GetSizeInBytes())
	}
	return n
}

// all returns the matching rows, including deleted ones, which are shared, and their cache entry, or nil if they are not cached.
func (b *Bound) all(s source) (*keptRows, *roaring.Bitmap) {
	if b.key == nil || s.scope == nil {
		return nil, b.root.rows(s, nil)
	}
	return keep(b.root, s, b.key)
}

// keep returns the rows of a part of a filter. It caches them when the key is requested repeatedly.
func keep(b bound, s source, key []byte) (*keptRows, *roaring.Bitmap) {
	if k, ok := filterRows.Get(s.scope, key); ok {
		return k, k.all
	}
	if !filterRows.Admit(s.scope, key) {
		return nil, b.rows(s, nil)
	}
	return evaluate(b, s, key)
}

// evaluate is keep for rows that are not cached yet and have to be.
func evaluate(b bound, s source, key []byte) (*keptRows, *roaring.Bitmap) {
	rows := b.rows(s, nil)
	if s.stop.stops() {
		return nil, rows
	}
	k := newKeptRows(s, key, rows)
	return k, k.all
}

// newKeptRows caches a result, which includes deleted rows.
func newKeptRows(s source, key []byte, rows *roaring.Bitmap) *keptRows {
	k := &keptRows{}
	k.all = rowlist.Flat(rows)
	k.bytes = resultcache.Size(k.all)
	k.live = k.all
	filterRows.Put(s.scope, key, k, k.size())
	return k
}

// Key identifies, among all filters of the index, the rows that the filter finds in a segment, including deleted ones. It is nil if
// they depend on more than the segment.
func (b *Bound) Key() []byte { return b.key }

// keptPart is a cached part of a filter whose other parts cannot be cached, such as a shard, whose documents the network assigns.
type keptPart struct {
	bound
	key []byte
}

func (m keptPart) rows(s source, among *roaring.Bitmap) *roaring.Bitmap {
	if s.scope == nil {
		return m.bound.rows(s, among)
	}
	return keptAmong(m.bound, s, m.key, among, true)
}

// keepParts has those parts of a filter kept that can be, where all of them have to match and others cannot.
func keepParts(n node, root bound) bound {
	j, ok := n.(*junction)
	if !ok || j.or {
		return root
	}
	var lasts []node
	var kept, others allOf
	for i, part := range root.(allOf) {
		if lasting(j.kids[i]) {
			lasts, kept = append(lasts, j.kids[i]), append(kept, part)
		} else {
			others = append(others, part)
		}
	}
	if len(kept) == 0 || len(others) == 0 {
		return root
	}
	key := (&Expr{root: join(false, lasts)}).key()
	if key == nil {
		return root
	}
	return append(others, keptPart{kept, key})
}

// key identifies a filter among all others of the index. Fields never change their numbers, and the rows of a condition in a segment
// depend on nothing else. It is nil if they depend on more.
func (e *Expr) key() []byte {
	if !lasting(e.root) {
		return nil
	}
	key := print(nil, e.root, "")
	if len(key) > maxKey {
		return nil
	}
	return key
}

// lasting reports whether the result of a node in a segment never changes.
func lasting(n node) bool {
	switch n := n.(type) {
	case *junction:
		if len(n.kids) > maxKey/4 {
			return false
		}
		for _, k := range n.kids {
			if !lasting(k) {
				return false
			}
		}
		return true
	case *not:
		return lasting(n.kid)
	case *elements:
		return lasting(n.kid)
	case *condition:
		return n.attr != shardAttr && len(n.values) <= maxKey/4
	}
	return false
}
