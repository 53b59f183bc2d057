package index

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
	"svc/segment/synonym"
)

// View is one immutable state of an index, shared by all callers while it is current. Data from it and its segments is valid until
// Release.
type View struct {
	Outline
	Cache    *query.Cache // of derivations over this view's segments
	Segments []segment.Live

	kept    *settingsFile   // of Settings; nil: the manifest has them
	files   []*file         // of Segments
	beside  [][]*columnFile // by file: its files of columns, as the manifest names them
	evicted bool            // the segments are not open; see evict.go
	resting atomic.Int64    // bytes of the directory of an evicted index; 0: not known

	expiring     *expiring    // nil: documents do not expire, or the view is derived; see expiry.go
	cold         atomic.Bool  // of some of files nothing was read ahead
	refs         atomic.Int64 // one of them is the index's while the view is current
	distribution func() map[string]int
	embeddings   func() [2]int // vectors, documents with one
	live         func() []*roaring.Bitmap
	stale        func() stale
	older        func() []*text.Analyzer
}

// successor returns a view with the outline of v, without its segments and sizes. It is not shared yet.
func (v *View) successor() *View {
	next := &View{Outline: v.Outline}
	next.Generation++
	next.size, next.tally = nil, new(atomic.Pointer[tally])
	return next
}

// show gives a new view its segments, with a reference to each.
func (v *View) show(results *resultcache.Cache, files []*file, lives []segment.Live) {
	v.files, v.Segments = files, lives
	v.beside = make([][]*columnFile, len(files))
	v.refs.Store(1)
	v.cold.Store(slices.ContainsFunc(files, func(f *file) bool { return !f.ahead.Load() }))
	scopes := make([]*resultcache.Scope, len(files))
	v.size = &Size{Segments: len(files)}
	for i, l := range lives {
		files[i].refs.Add(1)
		v.beside[i] = files[i].columnFiles()
		scopes[i] = files[i].results
		v.size.add(l)
	}
	if v.Settings != nil && v.Settings.TimeToLive != nil {
		v.expiring = new(expiring)
	}
	v.Cache = query.NewCache(results, scopes...)
	v.distribution = sync.OnceValue(v.countFields)
	v.embeddings = sync.OnceValue(v.countEmbeddings)
	v.live = sync.OnceValue(v.findLive)
	v.stale = sync.OnceValue(v.findStale)
	v.older = sync.OnceValue(v.findOlder)
}

// unnameBut marks the files of v that next does not have: no manifest names them any more, so they are removed at their last release.
func (v *View) unnameBut(next *View) {
	for _, f := range v.files {
		f.unnamed.Store(!slices.Contains(next.files, f))
	}
	if v.kept != nil {
		v.kept.unnamed.Store(v.kept != next.kept)
	}
}

// readAhead has what searches need of the segments read, once each.
func (v *View) readAhead() {
	if !v.cold.Swap(false) {
		return
	}
	var ix *Index
	n := 0
	for _, f := range v.files {
		if f.readAhead() {
			ix, n = f.ix, n+1
		}
	}
	if ix != nil {
		ix.options.Logger.Debug("reading ahead the vectors of an index", slog.String("index", v.UID), slog.Int("segments", n))
	}
}

// retain takes a reference, unless the last one was released.
func (v *View) retain() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release releases the view. The caller must not use anything of it afterwards.
func (v *View) Release() {
	n := v.refs.Add(-1)
	if n < 0 && invariant.Enabled {
		invariant.Fail("a view of %s was released %d times too often", v.UID, -n)
	}
	if n == 0 {
		v.end()
	}
}

// end releases what an unused view holds.
func (v *View) end() {
	if v.expiring != nil {
		v.expiring.drop()
	}
	v.Cache.Close()
	for _, f := range v.files {
		f.release()
	}
	if v.kept != nil {
		v.kept.release()
	}
}

// CheckSums reports damage in the segments of the view. Callers that copy an index check first, because a damaged copy would replace
// an intact one.
func (v *View) CheckSums(ctx context.Context) error {
	for _, l := range v.Segments {
		if err := l.CheckSums(ctx); err != nil {
			return err
		}
	}
	return nil
}

// largest returns the segment with the most rows, or nil if there are none.
func (v *View) largest() (r *segment.Reader) {
	for _, l := range v.Segments {
		if r == nil || l.Rows() > r.Rows() {
			r = l.Reader
		}
	}
	return r
}

// LiveRows returns, by segment, the rows that are not deleted. They are shared: the caller may keep but not modify them.
func (v *View) LiveRows() []*roaring.Bitmap { return v.live() }

// findLive returns the live rows of each segment.
func (v *View) findLive() []*roaring.Bitmap {
	rows := make([]*roaring.Bitmap, len(v.Segments))
	for i, s := range v.Segments {
		rows[i] = s.LiveRows()
	}
	return rows
}

// Documents is the number of live documents.
func (v *View) Documents() int {
	if v.size == nil { // of files that are no index's
		return 0
	}
	return v.size.Documents
}

// SectionBytes returns how many bytes of the segments' files each kind of data takes.
func (v *View) SectionBytes() map[string]int64 {
	sizes := map[string]int64{}
	for _, s := range v.Segments {
		s.AddSectionBytes(sizes)
	}
	return sizes
}

// Find returns where the document with an external id stands.
func (v *View) Find(externalID []byte) (seg int, row segment.Row, ok bool) {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		l := v.Segments[i]
		if row, ok := l.Lookup(externalID); ok && (l.Deleted == nil || !l.Deleted.Contains(uint32(row))) {
			return i, row, true
		}
	}
	return 0, 0, false
}

// FieldDistribution returns the number of documents per first-level field. It is computed once per view. The map is shared and must
// not be modified.
func (v *View) FieldDistribution() map[string]int { return v.distribution() }

// countFields counts the live documents that have each field of the first level. A key with a dot counts
// under its whole name.
func (v *View) countFields() map[string]int {
	counts := make(map[string]int)
	for _, l := range v.Segments {
		for id, name := range v.names {
			of := l.Present
			if strings.Contains(name, ".") { // a member of an object, unless it is a key as a whole
				of = l.DottedKey
			}
			rows := of(segment.FieldID(id))
			n := rows.GetCardinality()
			if l.Deleted != nil {
				n -= rows.AndCardinality(l.Deleted)
			}
			if n > 0 {
				counts[name] += int(n)
			}
		}
	}
	return counts
}

// manifest returns what the view is on disk, with deleted rows as stones have them.
func (v *View) manifest(nextSegment uint64, stones map[*file]tombstones) *manifest {
	m := &manifest{CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, PrimaryKey: v.PrimaryKey, Fields: v.names,
		Segments: make([]segmentEntry, len(v.files)), NextSegment: nextSegment, NextBatch: v.nextBatch, Results: v.results,
		Embedders: entriesOf(v.embedders), NextEmbedder: v.nextEmbedder, Size: v.size, Tally: v.shortTally()}
	for _, e := range v.Settings.Embedders {
		m.half = m.half || e.HalfPrecision != nil
	}
	switch {
	case v.kept != nil:
		m.SettingsFile = v.kept.number
	case v.likeness.inline != nil:
		m.Settings = v.likeness.inline
	default: // as an earlier program wrote it
		m.Settings = v.Settings.Encode()
	}
	for i, f := range v.files {
		t := stones[f]
		m.Segments[i] = segmentEntry{Number: f.number, Tombstones: t.file, Deleted: t.since}
		for _, c := range v.beside[i] {
			m.Segments[i].Columns = append(m.Segments[i].Columns, c.number)
		}
	}
	return m
}

// setSettings changes the settings of a view that is not shared yet; fields belong to them.
func (v *View) setSettings(s *settings.Settings, fields *settings.Fields) {
	analyzer := v.Analyzer
	a, _ := v.shardsOf.likenessOf(v.shardsOf.formOf(s), func() (*settings.Settings, *text.Analyzer, error) {
		if !sameAnalysis(v.Settings, s) {
			analyzer = newAnalyzer(s)
		}
		return s, analyzer, nil
	})
	v.Fields = fields
	v.resemble(a)
}

// resemble lets a view that is not yet shared use the parts that it has in common with other views.
func (v *View) resemble(a *likeness) { v.Settings, v.Analyzer, v.likeness = a.settings, a.analyzer, a }

// Synonyms returns the table of synonyms, which is valid until Release.
func (v *View) Synonyms() *synonym.Table {
	if v.kept != nil {
		return v.kept.table(v.likeness)
	}
	return v.likeness.table()
}

func sameAnalysis(a, b *settings.Settings) bool {
	return slices.Equal(a.StopWords, b.StopWords) && slices.Equal(a.SeparatorTokens, b.SeparatorTokens) &&
		slices.Equal(a.NonSeparatorTokens, b.NonSeparatorTokens) && slices.Equal(a.Dictionary, b.Dictionary)
}
