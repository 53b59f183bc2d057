package rank

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/vfs"
	"svc/segment"
)

// document is a document of a test. Values are string or float64; a field with several values is an array.
type document struct {
	id     segment.DocID
	values map[string][]any
	at     *point

	vectors []float32 // vectors of testEmbedder, concatenated
}

// testEmbedder is the embedder of tests.
var testEmbedder = segment.EmbedderShape{ID: 3, Dimensions: 3}

// doc makes a document from pairs of a field and a value. Repeated fields become arrays.
func doc(id int, pairs ...any) *document {
	d := &document{id: segment.DocID(id), values: map[string][]any{}}
	for i := 0; i < len(pairs); i += 2 {
		f := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case int:
			d.values[f] = append(d.values[f], float64(v))
		case point:
			d.at = &v
		default:
			d.values[f] = append(d.values[f], v)
		}
	}
	return d
}

func (d *document) fields() []string {
	var names []string
	for f := range d.values {
		names = append(names, f)
	}
	slices.Sort(names)
	return names
}

// parseSettings returns the default settings, changed by a body of PATCH /settings.
func parseSettings(t testing.TB, body string) *settings.Settings {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(body), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func analyzerOf(s *settings.Settings) *text.Analyzer {
	return text.New(text.Config{StopWords: s.StopWords, Separators: s.SeparatorTokens, NonSeparators: s.NonSeparatorTokens, Dictionary: s.Dictionary})
}

// build makes an index. parts are the documents of each segment; deleted ids are not live.
func build(t testing.TB, s *settings.Settings, parts [][]*document, deleted map[segment.DocID]bool) *Index {
	t.Helper()
	return buildWith(t, s, parts, deleted, false)
}

// buildWith is build. With stale, the segments were made when all fields were searchable.
func buildWith(t testing.TB, s *settings.Settings, parts [][]*document, deleted map[segment.DocID]bool, stale bool) *Index {
	t.Helper()
	return buildBy(t, s, analyzerOf(s), parts, deleted, stale)
}

// buildBy is buildWith with an analyzer.
func buildBy(t testing.TB, s *settings.Settings, a *text.Analyzer, parts [][]*document, deleted map[segment.DocID]bool, stale bool) *Index {
	t.Helper()
	seen := map[string]bool{}
	var names []string
	for _, part := range parts {
		for _, d := range part {
			for _, f := range d.fields() {
				if !seen[f] {
					seen[f] = true
					names = append(names, f)
				}
			}
		}
	}
	slices.Sort(names)
	ix := &Index{Settings: s, Fields: settings.Resolve(names, s, "id"), Analyzer: a, Synonyms: query.Synonyms(s, a), Cache: query.NewCache(resultcache.New(64 << 20))}
	fs := vfs.NewMem()
	for n, part := range parts {
		b := segment.NewBuilder(segment.BuilderOptions{Prefixes: s.PrefixSearch != settings.PrefixDisabled,
			Embedders: []segment.EmbedderShape{testEmbedder}})
		slices.SortFunc(part, func(a, b *document) int { return int(a.id) - int(b.id) })
		gone := roaring.New()
		for row, d := range part {
			if deleted[d.id] {
				gone.Add(uint32(row))
			}
			b.StartDoc(d.id, fmt.Appendf(nil, "%d-%d", d.id, n), []byte("{}"))
			for _, name := range d.fields() {
				addField(b, ix, name, d.values[name], stale)
			}
			if d.at != nil {
				b.Geo(d.at.lat, d.at.lng)
			}
			if d.vectors != nil {
				b.Vectors(testEmbedder.ID, segment.DocVectors{Vectors: d.vectors})
			}
			b.EndDoc()
		}
		name := fmt.Sprintf("%d.seg", n)
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r, err := segment.Open(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		live := segment.Live{Reader: r}
		if !gone.IsEmpty() {
			live.Deleted = gone
		}
		ix.Segments = append(ix.Segments, live)
	}
	return ix
}

func addField(b *segment.Builder, ix *Index, name string, values []any, stale bool) {
	id, _ := ix.Fields.ID(name)
	b.Present(id)
	var p text.Positions
	for _, v := range values {
		p.Visit()
		var s string
		switch v := v.(type) {
		case string:
			s = v
			b.String(id, text.FacetKey(nil, []byte(s)), []byte(s))
		case float64:
			s = formatNumber(v)
			b.Number(id, numeric.Of(v))
		case int64:
			s = strconv.FormatInt(v, 10)
			b.Number(id, numeric.OfInt(v))
		}
		if stale || ix.Fields.Info(id).Searchable {
			ix.Analyzer.Index(&p, []byte(s), ix.Fields.Info(id).Locales, func(w []byte, at uint16) { b.Word(id, w, at) })
		}
	}
	if stale || ix.Fields.Info(id).Searchable {
		b.WordCount(id, p.Words())
	}
}

// universe returns the live rows.
func universe(ix *Index) []*roaring.Bitmap {
	var u []*roaring.Bitmap
	for _, s := range ix.Segments {
		u = append(u, s.LiveRows())
	}
	return u
}

// found lists the ids of hits.
func found(r *Result) string {
	var ids []string
	for _, h := range r.Hits {
		ids = append(ids, fmt.Sprint(h.ID))
	}
	return strings.Join(ids, " ")
}
