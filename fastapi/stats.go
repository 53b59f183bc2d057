package fastapi

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/index"
	"svc/internal/task"
)

// indexStatistics is what the API counts of an index.
type indexStatistics struct {
	NumberOfDocuments         int                  `json:"numberOfDocuments"`
	RawDocumentDBSize         byteSize             `json:"rawDocumentDbSize"`
	AvgDocumentSize           byteSize             `json:"avgDocumentSize"`
	IsIndexing                bool                 `json:"isIndexing"`
	NumberOfEmbeddings        int                  `json:"numberOfEmbeddings"`
	NumberOfEmbeddedDocuments int                  `json:"numberOfEmbeddedDocuments"`
	FieldDistribution         map[string]int       `json:"fieldDistribution"`
	IndexSize                 *byteSize            `json:"indexSize,omitempty"`             // of all its files; of v1.53
	UsedIndexSize             *byteSize            `json:"usedIndexSize,omitempty"`         // without the space of deleted documents
	InternalDatabaseSizes     *map[string]byteSize `json:"internalDatabaseSizes,omitempty"` // size of the segments' files, by content
}

// newestStats is the shape of indexStatistics in v1.54.
func newestStats() schema {
	shape := shown[indexStatistics]()
	shape["required"] = append(shape["required"].([]string), "indexSize", "usedIndexSize")
	return shape
}

// byteSize is shown as a number of bytes, or to people.
type byteSize struct {
	bytes int64
	human bool
}

func (b byteSize) MarshalJSON() ([]byte, error) {
	if b.human {
		return appendString(nil, task.FormatSize(b.bytes)), nil
	}
	return strconv.AppendInt(nil, b.bytes, 10), nil
}

// statsQuery is the query string of statistics.
type statsQuery struct {
	internal bool // include the content of the segments' files
	human    bool // sizes are shown to people
}

var statsParams = []param[statsQuery]{
	{name: "showInternalDatabaseSizes", code: "invalid_stats_show_internal_database_sizes", kind: flag, set: func(q *statsQuery, a *arg) error { q.internal = a.flag; return nil }},
	{name: "sizeFormat", code: "invalid_stats_size_format", kind: textual, shape: oneOf("raw", "human"), set: func(q *statsQuery, a *arg) error {
		if a.text != "raw" && a.text != "human" {
			return a.expected("`raw` or `human`")
		}
		q.human = a.text == "human"
		return nil
	}},
}

// statsQueryOf reads the query string and ignores unknown parameters.
func statsQueryOf(ctx *fasthttp.RequestCtx) (q statsQuery, err error) {
	var known fasthttp.Args
	for i := range statsParams {
		if v := ctx.QueryArgs().Peek(statsParams[i].name); v != nil {
			known.SetBytesV(statsParams[i].name, v)
		}
	}
	return q, decodeQuery(&q, &known, statsParams)
}

func (q *statsQuery) size(bytes int64) byteSize { return byteSize{bytes, q.human} }

// count returns the statistics of one index. Optional ones that q requests open its segments.
func (s *Server) count(ix *index.Index, q *statsQuery) (indexStatistics, error) {
	n, err := ix.Counts()
	if err != nil {
		return indexStatistics{}, err
	}
	c := indexStatistics{
		NumberOfDocuments:         n.Documents,
		RawDocumentDBSize:         q.size(n.DocumentBytes),
		AvgDocumentSize:           q.size(0),
		IsIndexing:                s.queue.Indexing(ix.UID()),
		NumberOfEmbeddings:        n.Vectors,
		NumberOfEmbeddedDocuments: n.Embedded,
		FieldDistribution:         n.FieldDistribution,
	}
	if c.NumberOfDocuments > 0 {
		c.AvgDocumentSize = q.size(n.DocumentBytes / int64(n.Documents))
	}
	if s.newest {
		total, used, err := ix.DiskBytes()
		if err != nil {
			return indexStatistics{}, err
		}
		all, live := q.size(total), q.size(used)
		c.IndexSize, c.UsedIndexSize = &all, &live
	}
	if q.internal {
		v, err := ix.PlainView()
		if err != nil {
			return indexStatistics{}, err
		}
		defer v.Release()
		sizes := map[string]byteSize{}
		for name, bytes := range v.SectionBytes() {
			sizes[name] = q.size(bytes)
		}
		c.InternalDatabaseSizes = &sizes
	}
	return c, nil
}

// fieldCountBytes is the approximate memory of a field in the table of document counts.
const fieldCountBytes = 64

func (s *Server) indexStats(ctx *fasthttp.RequestCtx) error {
	q, err := statsQueryOf(ctx)
	if err != nil {
		return err
	}
	ix, err := s.index(ctx)
	if err != nil {
		return err
	}
	if err := roomFor(ctx).Hold(ix.Outline().Fields.Len() * fieldCountBytes); err != nil {
		return err
	}
	counts, err := s.count(ix, &q)
	if err != nil {
		return err
	}
	return answer(ctx, counts)
}

// diskBytes returns the size of the files of indexes, tasks and keys, and the used part of it.
func (s *Server) diskBytes() (total, used int64) {
	total, used = s.catalog.DiskBytes()
	others := s.queue.DiskBytes() + s.keys.DiskBytes()
	return total + others, used + others
}

// stats shows the statistics of all indexes that the key reaches. It omits and logs an index that cannot be opened.
func (s *Server) stats(ctx *fasthttp.RequestCtx) error {
	q, err := statsQueryOf(ctx)
	if err != nil {
		return err
	}
	total, used := s.diskBytes()
	shown := struct {
		DatabaseSize     byteSize        `json:"databaseSize"`
		UsedDatabaseSize byteSize        `json:"usedDatabaseSize"`
		LastUpdate       *string         `json:"lastUpdate"`
		Indexes          json.RawMessage `json:"indexes"`
	}{DatabaseSize: q.size(total), UsedDatabaseSize: q.size(used)}
	indexes := s.grow(ctx)
	defer indexes.end()
	var last time.Time
	var lacks []string // uids of indexes that are left out
	var lack error
	for _, uid := range s.reached(ctx) {
		ix := s.catalog.Get(uid)
		if ix == nil { // deleted since
			continue
		}
		o := ix.Outline()
		if err := indexes.room.Hold(o.Fields.Len() * fieldCountBytes); err != nil {
			return err
		}
		counts, err := s.count(ix, &q)
		if err != nil { // it cannot be opened: omit it, like a quarantined one
			if lacks = append(lacks, uid); lack == nil {
				lack = err
			}
			continue
		}
		if o.UpdatedAt.After(last) {
			last = o.UpdatedAt
		}
		indexes.body = append(appendString(append(indexes.body, ','), uid), ':')
		if err := indexes.add(counts); err != nil {
			return err
		}
	}
	if len(lacks) > 0 {
		s.log.Warn("statistics omit indexes that cannot be opened now", slog.Int("indexes", len(lacks)), slog.String("first", lacks[0]), slog.Any("error", lack))
	}
	if !last.IsZero() {
		moment := rfc3339(last)
		shown.LastUpdate = &moment
	}
	if len(indexes.body) == 0 {
		indexes.body = append(indexes.body, '{')
	}
	indexes.body[0] = '{'
	shown.Indexes = append(indexes.body, '}')
	b, err := encoding.Marshal(shown)
	if err != nil {
		return err
	}
	answerRaw(ctx, b) // the indexes are charged
	return nil
}
