package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	longTexts     = 40        // documents
	longTextBytes = 1_000_000 // of each

	longTextSettings = `{"searchableAttributes":["body"]}`
)

// crops is what crops of long texts cost.
type crops struct {
	texts    int
	indexing indexing
	searches []cropping
}

// cropping is one kind of search: its first query, and the repeated one.
type cropping struct {
	name         string
	queries      int
	first, again cropCost
}

type cropCost struct{ cpu, p99 float64 } // milliseconds; cpu a query

// runLongTexts fills a server with the texts of the documents laid end to end, and asks for crops of them.
func (m *measurement) runLongTexts(ctx context.Context) (*crops, error) {
	kinds, err := drawQueries(m.data, 60, true)
	if err != nil {
		return nil, err
	}
	texts := longTexts
	if m.Quick {
		texts = 4
	}
	if m.data, err = layTexts(m.data, texts); err != nil {
		return nil, err
	}
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte(longTextSettings))); err != nil {
		return nil, err
	}
	f := &crops{texts: m.data.documents}
	if f.indexing, err = m.index(s); err != nil {
		return nil, err
	}
	progress("indexed %d texts in %.1f s", f.texts, f.indexing.seconds)
	for _, k := range kinds {
		c := cropping{name: k.name}
		var bodies [][]byte
		for _, body := range k.bodies {
			var r request
			if err := json.Unmarshal(body, &r); err != nil {
				return nil, fmt.Errorf("cannot read a query: %w", err)
			}
			if r.Filter != nil || r.Facets != nil {
				break
			}
			bodies = append(bodies, fmt.Appendf(nil, `{"q":%q,"limit":20,"attributesToRetrieve":["id"],"attributesToCrop":["body"],"cropLength":10}`, r.Q))
		}
		if c.queries = len(bodies); c.queries == 0 {
			continue
		}
		for _, cost := range []*cropCost{&c.first, &c.again} {
			took := make(latencies, 0, len(bodies))
			cpu := s.cpuSeconds()
			for _, body := range bodies {
				began := time.Now()
				if _, err := s.post("/indexes/"+index+"/search", "application/json", body); err != nil {
					return nil, err
				}
				took = append(took, time.Since(began))
			}
			cost.cpu = 1000 * (s.cpuSeconds() - cpu) / float64(len(bodies))
			cost.p99 = took.quantile(.99)
		}
		progress("%-32s first %.1f ms CPU, again %.1f", c.name, c.first.cpu, c.again.cpu)
		f.searches = append(f.searches, c)
	}
	return f, s.stop()
}

// layTexts makes n documents with a long text each, by repeating the texts of documents.
func layTexts(d *dataset, n int) (*dataset, error) {
	out := &dataset{name: d.name, title: fmt.Sprintf("%d texts of 1 MB, laid of those of %s", n, d.title), documents: n}
	var text bytes.Buffer
	rest := d.payload
	for id := range n {
		for text.Reset(); text.Len() < longTextBytes; {
			if len(rest) == 0 {
				rest = d.payload
			}
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte{'\n'})
			var s sample
			if err := json.Unmarshal(line, &s); err != nil {
				return nil, fmt.Errorf("cannot read a document: %w", err)
			}
			fmt.Fprintf(&text, "%s. %s\n\n", s.Summary, s.Description)
		}
		body, err := json.Marshal(text.String())
		if err != nil {
			return nil, fmt.Errorf("cannot write a text: %w", err)
		}
		out.payload = fmt.Appendf(out.payload, `{"id":%d,"body":%s}`+"\n", id, body)
	}
	return out, nil
}

// table is the figures as Markdown.
func (f *crops) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Indexed in %.1f s (%.1f s of the processors), %.1f MiB on the disk. Pages of 20 hits, each with a crop of 10 words of its text, on one connection; each query is asked for the first time, then again.\n\n", f.indexing.seconds, f.indexing.cpuSeconds, mib(f.indexing.disk))
	b.WriteString("| query | queries | first: CPU ms | p99 ms | again: CPU ms | p99 ms |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, c := range f.searches {
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f | %.1f |\n", c.name, c.queries, c.first.cpu, c.first.p99, c.again.cpu, c.again.p99)
	}
	return b.Bytes()
}
