package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/embed"
	"svc/internal/filter"
	"svc/internal/settings"
	"svc/segment"
)

// ViewEmbedder is an embedder of an index as a view has it. All views with the same embedder share it. It is immutable except for
// what Open caches.
type ViewEmbedder struct {
	Name       string
	ID         segment.EmbedderID // of its vectors in the segments
	Dimensions int                // of its vectors; known without asking the provider
	Binary     bool               // of its vectors there are only bits
	Half       bool               // its vectors have half precision
	Config     *settings.Embedder // as set, without the defaults

	unfit     []segment.EmbedderShape // in which documents have given vectors that do not fit; ascending, none like the embedder's own
	fragments []fragmentEntry
	pool      *embed.Pool
	opened    atomic.Pointer[embed.Embedder]
	opening   chan struct{} // holds one while Open works
}

// Opened returns what Open has made; nil: nothing yet.
func (e *ViewEmbedder) Opened() *embed.Embedder { return e.opened.Load() }

// Open returns what makes vectors of documents and queries. The first call makes it, from the stored
// dimensions, so that no provider is asked. An error is not remembered.
func (e *ViewEmbedder) Open(ctx context.Context) (*embed.Embedder, error) {
	if opened := e.Opened(); opened != nil {
		return opened, nil
	}
	select {
	case e.opening <- struct{}{}:
		defer func() { <-e.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if opened := e.Opened(); opened != nil {
		return opened, nil
	}
	opened, err := e.pool.Open(ctx, e.Config, e.Dimensions, nil)
	if err != nil {
		return nil, err
	}
	e.opened.Store(opened)
	return opened, nil
}

// Fragment returns the number by which segments know an indexing fragment.
func (e *ViewEmbedder) Fragment(name string) (number uint16, ok bool) {
	for _, f := range e.fragments {
		if f.Name == name {
			return f.Number, true
		}
	}
	return 0, false
}

// generates reports whether vectors can be made of documents that bring none.
func (e *ViewEmbedder) generates() bool { return e.Config.Generates() }

func (e *ViewEmbedder) shape() segment.EmbedderShape {
	return segment.EmbedderShape{ID: e.ID, Dimensions: e.Dimensions, Binary: e.Binary, Half: e.Half}
}

// Shapes returns the shapes of the stored vectors of the embedder: its own shape first, then other dimensions of vectors
// that users sent. No search compares the latter. A document has an entry in one of the shapes.
func (e *ViewEmbedder) Shapes() []segment.EmbedderShape {
	return append([]segment.EmbedderShape{e.shape()}, e.unfit...)
}

// IDs returns the numbers of the shapes.
func (e *ViewEmbedder) IDs() []segment.EmbedderID {
	ids := []segment.EmbedderID{e.ID}
	for _, s := range e.unfit {
		ids = append(ids, s.ID)
	}
	return ids
}

// keepsUnfit reports whether documents may have vectors of a shape that is not the embedder's own.
func (e *ViewEmbedder) keepsUnfit(id segment.EmbedderID) bool {
	return slices.ContainsFunc(e.unfit, func(s segment.EmbedderShape) bool { return s.ID == id })
}

// Entries reads what the documents of a segment have for an embedder, in whichever shape.
type Entries []*segment.Vectors

// Row is segment.Vectors.Row, with the length of each vector.
func (r Entries) Row(dst []float32, row segment.Row) (v segment.DocVectors, dimensions int, ok bool) {
	for _, vs := range r {
		if v, ok = vs.Row(dst, row); ok {
			return v, vs.Dimensions(), true
		}
	}
	return v, 0, false
}

// EntriesOf returns the entries of a segment. read returns its vectors of an embedder, or nil.
func (e *ViewEmbedder) EntriesOf(read func(segment.EmbedderID) *segment.Vectors) Entries {
	var r Entries
	for _, id := range e.IDs() {
		if vs := read(id); vs != nil {
			r = append(r, vs)
		}
	}
	return r
}

// Embedder returns the embedder with a name.
func (v *View) Embedder(name string) (*ViewEmbedder, bool) {
	return findEmbedder(v.embedders, name)
}

// Embedders returns all embedders by ascending name. The slice is shared and not to be modified.
func (v *View) Embedders() []*ViewEmbedder { return v.embedders }

// Entries returns what documents have by segment and embedder, nil where no document of the segment has an entry for the embedder.
func (v *View) Entries() [][]Entries {
	readers := make([][]Entries, len(v.Segments))
	for i, s := range v.Segments {
		readers[i] = make([]Entries, len(v.embedders))
		for k, embedder := range v.embedders {
			readers[i][k] = embedder.EntriesOf(s.Vectors)
		}
	}
	return readers
}

func findEmbedder[T string | []byte](list []*ViewEmbedder, name T) (*ViewEmbedder, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(e *ViewEmbedder, name T) int { return strings.Compare(e.Name, string(name)) })
	if !ok {
		return nil, false
	}
	return list[i], true
}

// knows reports whether an embedder has the number.
func (v *View) knows(id segment.EmbedderID) bool {
	return slices.ContainsFunc(v.embedders, func(e *ViewEmbedder) bool { return e.ID == id || e.keepsUnfit(id) })
}

// hasStrayVectors reports whether segments hold vectors of deleted embedders. Merges drop them.
func (v *View) hasStrayVectors() bool {
	for _, l := range v.Segments {
		if slices.ContainsFunc(l.Embedders(), func(s segment.EmbedderShape) bool { return !v.knows(s.ID) }) {
			return true
		}
	}
	return false
}

// Embeddings returns the number of vectors of all embedders, and of documents that have at least one.
// It is computed once a view.
func (v *View) Embeddings() (vectors, documents int) {
	n := v.embeddings()
	return n[0], n[1]
}

// countEmbeddings counts the vectors of live documents, over all embedders, and the live documents that have
// any.
func (v *View) countEmbeddings() (n [2]int) {
	for _, l := range v.Segments {
		embedded := roaring.New()
		for _, e := range v.embedders {
			for _, vs := range e.EntriesOf(l.Vectors) {
				n[0] += vs.Count()
				embedded.Or(vs.Rows())
				if l.Deleted != nil {
					n[0] -= vs.CountIn(l.Deleted)
				}
			}
		}
		if l.Deleted != nil {
			embedded.AndNot(l.Deleted)
		}
		n[1] += int(embedded.GetCardinality())
	}
	return n
}

// embedderEntry is an embedder in a manifest, without its configuration, which is in the settings.
type embedderEntry struct {
	Name       string
	ID         segment.EmbedderID
	Dimensions int
	Binary     bool            `json:",omitempty"`
	Half       bool            `json:",omitempty"`
	Fragments  []fragmentEntry `json:",omitempty"` // by ascending number
	Unfit      []unfitEntry    `json:",omitempty"` // by ascending number
}

// hasHalf reports whether the embedder has vectors in half precision.
func (e embedderEntry) hasHalf() bool {
	return e.Half || slices.ContainsFunc(e.Unfit, func(u unfitEntry) bool { return u.Half })
}

// unfitEntry is a shape in which documents keep vectors that do not fit their embedder.
type unfitEntry struct {
	ID         segment.EmbedderID
	Dimensions int
	Binary     bool `json:",omitempty"`
	Half       bool `json:",omitempty"`
}

// fragmentEntry numbers an indexing fragment inside its embedder. The number of a deleted one is reused: the vectors made of it were
// deleted in the same commit.
type fragmentEntry struct {
	Name   string
	Number uint16
}

// embeddersOf joins the embedders of a manifest and of the settings. An embedder that the manifest lacks has no vectors;
// the next change of settings adds it.
func embeddersOf(entries []embedderEntry, next segment.EmbedderID, s *settings.Settings, pool *embed.Pool) ([]*ViewEmbedder, error) {
	var list []*ViewEmbedder
	seen := make(map[segment.EmbedderID]bool, len(entries))
	for i, e := range entries {
		switch cfg := s.Embedders[e.Name]; {
		case cfg == nil:
			return nil, fmt.Errorf("embedder %q is not in the settings", e.Name)
		case e.ID >= next || seen[e.ID]:
			return nil, fmt.Errorf("the embedder number %d is given twice or not below %d", e.ID, next)
		case i > 0 && entries[i-1].Name >= e.Name:
			return nil, fmt.Errorf("embedder %q is not in order", e.Name)
		case e.Dimensions <= 0:
			return nil, fmt.Errorf("embedder %q has %d dimensions", e.Name, e.Dimensions)
		}
		seen[e.ID] = true
		var unfit []segment.EmbedderShape
		for k, u := range e.Unfit {
			if u.ID >= next || seen[u.ID] || u.Dimensions <= 0 || k > 0 && e.Unfit[k-1].ID >= u.ID {
				return nil, fmt.Errorf("embedder %q keeps vectors of %d dimensions under the number %d, which is given twice, not below %d or not in order", e.Name, u.Dimensions, u.ID, next)
			}
			seen[u.ID] = true
			unfit = append(unfit, segment.EmbedderShape(u))
		}
		list = append(list, &ViewEmbedder{Name: e.Name, ID: e.ID, Dimensions: e.Dimensions, Binary: e.Binary, Half: e.Half,
			Config: s.Embedders[e.Name], unfit: unfit, fragments: e.Fragments, pool: pool, opening: make(chan struct{}, 1)})
	}
	return list, nil
}

// entriesOf returns what the manifest says of embedders.
func entriesOf(list []*ViewEmbedder) []embedderEntry {
	var entries []embedderEntry
	for _, e := range list {
		entry := embedderEntry{Name: e.Name, ID: e.ID, Dimensions: e.Dimensions, Binary: e.Binary, Half: e.Half, Fragments: e.fragments}
		for _, s := range e.unfit {
			entry.Unfit = append(entry.Unfit, unfitEntry(s))
		}
		entries = append(entries, entry)
	}
	return entries
}

// FilterEmbedders returns the embedders as filters know them, not nil.
func (v *View) FilterEmbedders() []filter.Embedder {
	list := make([]filter.Embedder, len(v.embedders))
	for i, e := range v.embedders {
		list[i] = filter.Embedder{Name: e.Name, IDs: e.IDs()}
		if len(e.fragments) > 0 {
			list[i].Fragments = make(map[string]uint16, len(e.fragments))
		}
		for _, f := range e.fragments {
			list[i].Fragments[f.Name] = f.Number
		}
	}
	return list
}
