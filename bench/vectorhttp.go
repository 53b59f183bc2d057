package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// overHTTP is the cost of vectors that are written and searched through the API.
type overHTTP struct {
	payload  int
	indexing indexing
	searches []searching
}

const vectorSettings = `{"searchableAttributes":["title"],"embedders":{"bench":{"source":"userProvided","dimensions":%d}}}`

// runVectorsOverHTTP sends the vectors to a server, with titles of three random words, and asks it.
func (m *measurement) runVectorsOverHTTP(ctx context.Context, set *vectorSet) (*overHTTP, error) {
	m.data = set.documents()
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	if err := s.finish(s.patch("/indexes/"+index+"/settings", fmt.Appendf(nil, vectorSettings, set.base.columns))); err != nil {
		return nil, err
	}
	f := &overHTTP{payload: len(m.data.payload)}
	if f.indexing, err = m.index(s); err != nil {
		return nil, err
	}
	progress("indexed %d vectors over HTTP in %.1f s", set.base.rows, f.indexing.seconds)
	for _, k := range set.kinds() {
		x, err := m.search(s, k)
		if err != nil {
			return nil, err
		}
		progress("%-32s p50 %.2f ms, %.0f QPS", k.name, x.p50, x.qps)
		f.searches = append(f.searches, x)
	}
	return f, s.stop()
}

func appendVector(b []byte, v []float32) []byte {
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}

func titleWord(r *rand.Rand) string { return "word" + strconv.Itoa(r.IntN(1000)) }

// documents are the vectors as documents.
func (s *vectorSet) documents() *dataset {
	r := rand.New(rand.NewPCG(3, 3))
	d := &dataset{name: s.name, title: s.title, documents: s.base.rows}
	for i := range s.base.rows {
		d.payload = fmt.Appendf(d.payload, `{"id":%d,"title":"%s %s %s","_vectors":{"bench":`, i, titleWord(r), titleWord(r), titleWord(r))
		d.payload = append(appendVector(d.payload, s.base.row(i)), "}}\n"...)
	}
	return d
}

// kinds are searches with the vectors of the queries.
func (s *vectorSet) kinds() []queryKind {
	r := rand.New(rand.NewPCG(4, 4))
	vector, hybrid := queryKind{name: "vector, limit 10"}, queryKind{name: "two words + vector, semanticRatio 0.5, limit 10"}
	for i := range queriesOfKind {
		v := appendVector(nil, s.queries.row(i%s.queries.rows))
		vector.bodies = append(vector.bodies, fmt.Appendf(nil, `{"vector":%s,"limit":%d,"hybrid":{"embedder":"bench","semanticRatio":1}}`, v, neighbours))
		hybrid.bodies = append(hybrid.bodies, fmt.Appendf(nil, `{"q":"%s %s","vector":%s,"limit":%d,"hybrid":{"embedder":"bench","semanticRatio":0.5}}`,
			titleWord(r), titleWord(r), v, neighbours))
	}
	return []queryKind{vector, hybrid}
}
