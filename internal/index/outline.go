package index

import (
	"fmt"
	"sync/atomic"
	"time"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// Outline is what is known of a state of an index whether or not its segments are open. It is immutable.
type Outline struct {
	UID        string
	PrimaryKey string // "" when not yet known
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Settings   *settings.Settings
	Fields     *settings.Fields
	Analyzer   *text.Analyzer
	Generation uint64 // of the index; grows with every change, compaction too

	names     []string // path of each FieldID; its array is shared with later views, which append
	nextBatch uint64
	results   []result
	shardsOf  *Catalog
	likeness  *likeness // of Settings; keeps it for other indexes

	embedders    []*ViewEmbedder    // by ascending name
	nextEmbedder segment.EmbedderID // no embedder has this number or a higher one

	size  *Size                  // nil: not known, as the segments are not open and an earlier program wrote the manifest
	tally *atomic.Pointer[tally] // of it nil: not counted yet
}

// Size is how much is in an index.
type Size struct {
	Documents     int   // live ones
	DocumentBytes int64 // of their JSON, estimated where documents of a segment are deleted
	Segments      int
	SegmentBytes  int64 // of their files
	DeletedRows   int
}

// add adds a segment. The bytes of its live documents are estimated from their share of the rows.
func (s *Size) add(l segment.Live) {
	info, live := l.Info(), liveCount(l)
	s.Documents += live
	s.SegmentBytes += info.Bytes
	s.DeletedRows += info.Rows - live
	if info.Rows > 0 {
		s.DocumentBytes += int64(float64(info.DocumentBytes) * float64(live) / float64(info.Rows))
	}
}

// tally has the numbers for which the segments of an index have to be read.
type tally struct {
	Fields   []int `json:",omitempty"` // by FieldID: the documents with a first-level field
	Vectors  int   `json:",omitempty"`
	Embedded int   `json:",omitempty"` // documents with a vector
}

// Counts is what statistics say of an index.
type Counts struct {
	Size
	FieldDistribution map[string]int // documents that have each first-level field
	Vectors, Embedded int            // vectors, and documents with one
}

// Outline returns the outline of the current state. It opens nothing.
func (ix *Index) Outline() *Outline { return &ix.current.Load().Outline }

// Size returns how much is stored in the index now, including expired documents. It opens segments only if the manifest does not have
// the numbers; only then an error is possible.
func (ix *Index) Size() (Size, error) {
	if s := ix.Outline().size; s != nil {
		return *s, nil
	}
	v, err := ix.PlainView()
	if err != nil {
		return Size{}, err
	}
	defer v.Release()
	return *v.size, nil
}

// Counts returns the statistics of the index as it is now, without expired documents. It opens the segments only when they were not
// counted before, or when documents expire.
func (ix *Index) Counts() (Counts, error) {
	o := ix.Outline()
	if o.size == nil || o.tally.Load() == nil || o.Settings.TimeToLive != nil {
		v, err := ix.ReadView()
		if err != nil {
			return Counts{}, err
		}
		defer v.Release()
		v.count()
		o = &v.Outline
	}
	t := o.tally.Load()
	c := Counts{Size: *o.size, FieldDistribution: make(map[string]int), Vectors: t.Vectors, Embedded: t.Embedded}
	for id, n := range t.Fields {
		if n > 0 {
			c.FieldDistribution[o.names[id]] = n
		}
	}
	return c, nil
}

// count makes the tally of a view.
func (v *View) count() *tally {
	if t := v.tally.Load(); t != nil {
		return t
	}
	t := new(tally)
	t.Vectors, t.Embedded = v.Embeddings()
	t.Fields = make([]int, len(v.names))
	last := 0
	distribution := v.FieldDistribution()
	for id, name := range v.names {
		if t.Fields[id] = distribution[name]; t.Fields[id] > 0 {
			last = id + 1
		}
	}
	t.Fields = t.Fields[:last:last]
	v.tally.Store(t)
	return t
}

// A commit counts at once what takes little time, so that statistics of very many indexes open none of them.
const (
	talliedDocuments = 20_000
	talliedLists     = 1_000 // of rows: fields times segments
)

// shortTally returns the tally for the manifest. It returns nil if counting would delay a commit, or meets damage, which
// callers that need the data report.
func (v *View) shortTally() *tally {
	if t := v.tally.Load(); t != nil {
		return t
	}
	if v.Documents() > talliedDocuments || len(v.names)*len(v.files) > talliedLists {
		return nil
	}
	var t *tally
	if err := mapped.Guard(func() error { t = v.count(); return nil }); err != nil {
		return nil
	}
	return t
}

// checkTally refuses a tally of fields that the manifest does not have.
func (m *manifest) checkTally(name string) error {
	if t := m.Tally; t != nil && len(t.Fields) > len(m.Fields) {
		return &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("%d fields are counted, but there are %d", len(t.Fields), len(m.Fields))}
	}
	return nil
}
