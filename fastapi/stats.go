package fastapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/index"
)

// indexStatistics is what the API counts of an index. Sizes are bytes.
type indexStatistics struct {
	NumberOfDocuments         int            `json:"numberOfDocuments"`
	RawDocumentDBSize         int64          `json:"rawDocumentDbSize"`
	AvgDocumentSize           int64          `json:"avgDocumentSize"`
	IsIndexing                bool           `json:"isIndexing"`
	NumberOfEmbeddings        int            `json:"numberOfEmbeddings"`
	NumberOfEmbeddedDocuments int            `json:"numberOfEmbeddedDocuments"`
	FieldDistribution         map[string]int `json:"fieldDistribution"`
}

func (s *Server) count(v *index.View) indexStatistics {
	c := indexStatistics{
		NumberOfDocuments: v.Documents(),
		RawDocumentDBSize: v.DocumentBytes(),
		IsIndexing:        s.queue.Indexing(v.UID),
		FieldDistribution: v.FieldDistribution(),
	}
	c.NumberOfEmbeddings, c.NumberOfEmbeddedDocuments = v.Embeddings()
	if c.NumberOfDocuments > 0 {
		c.AvgDocumentSize = c.RawDocumentDBSize / int64(c.NumberOfDocuments)
	}
	if c.FieldDistribution == nil {
		c.FieldDistribution = map[string]int{}
	}
	return c
}

func (s *Server) indexStats(ctx *fasthttp.RequestCtx) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	defer v.Release()
	return answer(ctx, s.count(v))
}

// diskBytes returns the size of the files of indexes, tasks and keys, and how much of it is in use.
func (s *Server) diskBytes() (total, used int64) {
	total, used = s.catalog.DiskBytes()
	others := s.queue.DiskBytes() + s.keys.DiskBytes()
	return total + others, used + others
}

func (s *Server) stats(ctx *fasthttp.RequestCtx) error {
	total, used := s.diskBytes()
	shown := struct {
		DatabaseSize     int64                      `json:"databaseSize"`
		UsedDatabaseSize int64                      `json:"usedDatabaseSize"`
		LastUpdate       *string                    `json:"lastUpdate"`
		Indexes          map[string]indexStatistics `json:"indexes"`
	}{total, used, nil, map[string]indexStatistics{}}
	var last time.Time
	for _, uid := range s.reached(ctx) {
		ix := s.catalog.Get(uid)
		if ix == nil { // deleted since
			continue
		}
		v := ix.View()
		shown.Indexes[uid] = s.count(v)
		if v.UpdatedAt.After(last) {
			last = v.UpdatedAt
			moment := rfc3339(last)
			shown.LastUpdate = &moment
		}
		v.Release()
	}
	return answer(ctx, shown)
}
