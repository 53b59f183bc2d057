package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// lifecycleCost is how a program fares with documents that expire, partial updates, pages by cursor, and very many aliases.
type lifecycleCost struct {
	documents, aliases int
	plain, hiding      latencies // of searches, before half of the documents expired, and then
	patched            latencies // one field of one document, until the task is finished
	incremented        partCost  // one field of all documents, in one task
	first, last        latencies // of pages of 1,000 documents
	moved, byAlias     latencies // one alias among all; a search by it
	start              time.Duration
}

const (
	expiringDocuments = 1_000_000
	manyAliases       = 100_000
	lifecycleIndex    = "/indexes/life"

	// A page has pageDocuments; documents and aliases are also sent in batches of this size.
	pageDocuments = 1000
	sentDocuments = 100_000
)

// liveAndDie fills a directory of its own with documents, half of which have expired, changes them, reads them page by page, and
// gives aliases to their index.
func (p *program) liveAndDie(ctx context.Context) (f lifecycleCost, err error) {
	if f.documents, f.aliases = expiringDocuments, manyAliases; p.Quick {
		f.documents, f.aliases = f.documents/20, f.aliases/20
	}
	own, remove := p.own("lifecycle")
	defer remove(&err)
	s, err := own.start(ctx)
	if err != nil {
		return f, err
	}
	defer func() { s.kill() }()
	running := program{p.name, own, s}
	if err := running.addExpiring(f.documents); err != nil {
		return f, err
	}
	for _, part := range []func(*lifecycleCost) error{running.readAll, running.expire, running.update, running.alias} {
		if err := part(&f); err != nil {
			return f, err
		}
	}
	if err := s.stop(); err != nil {
		return f, err
	}
	if s, err = own.start(ctx); err != nil {
		return f, err
	}
	f.start = s.startTime
	return f, s.stop()
}

// timed appends how long n calls take.
func (l *latencies) timed(n int, do func(i int) error) error {
	for i := range n {
		began := time.Now()
		if err := do(i); err != nil {
			return err
		}
		*l = append(*l, time.Since(began))
	}
	return nil
}

// addExpiring adds documents. With a time to live, half of the documents of each word have expired.
func (p *program) addExpiring(documents int) error {
	if err := p.finish(p.patch(lifecycleIndex+"/settings", []byte(`{"searchableAttributes":["t"],"filterableAttributes":["n"]}`))); err != nil {
		return err
	}
	for from := 0; from < documents; from += sentDocuments {
		var body bytes.Buffer
		for i := from; i < min(from+sentDocuments, documents); i++ {
			fmt.Fprintf(&body, `{"id":%d,"t":"word%d of document%d","n":0,"end":%d}`+"\n", i, i%1000, i%50_000, 1+i/1000%2*4_000_000_000)
		}
		if err := p.finish(p.post(lifecycleIndex+"/documents", "application/x-ndjson", body.Bytes())); err != nil {
			return err
		}
	}
	p.settle()
	return nil
}

// expire hides the documents that have expired.
func (p *program) expire(f *lifecycleCost) error {
	search := func(i int) error {
		_, err := p.post(lifecycleIndex+"/search", "application/json", fmt.Appendf(nil, `{"q":"word%d document"}`, i%1000))
		return err
	}
	if err := f.plain.timed(1000, search); err != nil {
		return err
	}
	if err := p.finish(p.patch(lifecycleIndex+"/settings", []byte(`{"timeToLive":{"attribute":"end"}}`))); err != nil {
		return err
	}
	p.settle()
	return f.hiding.timed(1000, search)
}

// update increments a field of some documents one by one, and of all in one task.
func (p *program) update(f *lifecycleCost) error {
	if err := f.patched.timed(100, func(i int) error {
		return p.finish(p.patch(lifecycleIndex+"/documents", fmt.Appendf(nil, `[{"id":%d,"increment":{"n":1}}]`, i*f.documents/100)))
	}); err != nil {
		return err
	}
	p.settle()
	var body bytes.Buffer
	for i := range f.documents {
		fmt.Fprintf(&body, `{"id":%d,"increment":{"n":1}}`+"\n", i)
	}
	cpu, began := p.cpuSeconds(), time.Now()
	if err := p.finish(p.do(fasthttp.MethodPatch, lifecycleIndex+"/documents", "application/x-ndjson", body.Bytes())); err != nil {
		return err
	}
	f.incremented.took = time.Since(began)
	p.settle()
	f.incremented.cpuSeconds = p.cpuSeconds() - cpu
	return nil
}

// readAll reads all documents page by page.
func (p *program) readAll(f *lifecycleCost) error {
	const shown = 20 // pages
	page := func(cursor string) (next *string, err error) {
		b, err := p.post(lifecycleIndex+"/search", "application/json", fmt.Appendf(nil, `{"limit":%d,"cursor":%q}`, pageDocuments, cursor))
		var answer struct {
			NextCursor *string `json:"nextCursor"`
		}
		if err == nil {
			err = json.Unmarshal(b, &answer)
		}
		return answer.NextCursor, err
	}
	if err := f.first.timed(shown, func(int) error { _, err := page(""); return err }); err != nil {
		return err
	}
	cursor := new(string)
	for cursor != nil {
		if err := f.last.timed(1, func(int) (err error) { cursor, err = page(*cursor); return err }); err != nil {
			return err
		}
	}
	f.last = f.last[max(0, len(f.last)-shown):]
	return nil
}

// alias gives the index aliases, and moves some of them.
func (p *program) alias(f *lifecycleCost) error {
	for from := 0; from < f.aliases; from += pageDocuments {
		var body bytes.Buffer
		for i := from; i < min(from+pageDocuments, f.aliases); i++ {
			fmt.Fprintf(&body, `,{"alias":"alias-%d","indexUid":"life"}`, i)
		}
		body.WriteByte(']')
		body.Bytes()[0] = '['
		if _, err := p.post("/aliases", "application/json", body.Bytes()); err != nil {
			return err
		}
	}
	if err := f.moved.timed(100, func(i int) error {
		_, err := p.put(fmt.Sprintf("/aliases/alias-%d", i*f.aliases/100), []byte(`{"indexUid":"life"}`))
		return err
	}); err != nil {
		return err
	}
	return f.byAlias.timed(1000, func(i int) error {
		_, err := p.post(fmt.Sprintf("/indexes/alias-%d/search", i*f.aliases/1000), "application/json", fmt.Appendf(nil, `{"q":"word%d document"}`, i%1000))
		return err
	})
}

// rows returns the names of the rows of the table.
func (f *lifecycleCost) rows() []string {
	return []string{
		"a search, median ms", "a search when half of them have expired, median ms", "one field of a document, median ms until the task is finished",
		"one field of all documents in one task, increments a second", "one field of all documents in one task, CPU s until the program rests",
		"first page of 1,000 by cursor, median ms", "the last pages, median ms",
		fmt.Sprintf("one of %d aliases is set, median ms", f.aliases), "a search by an alias, median ms", "from the start to the first answer, ms",
	}
}

func (f *lifecycleCost) figures() []float64 {
	perSecond := 0.0
	if f.incremented.took > 0 {
		perSecond = float64(f.documents) / f.incremented.took.Seconds()
	}
	return []float64{
		f.plain.quantile(.5), f.hiding.quantile(.5), f.patched.quantile(.5), perSecond, f.incremented.cpuSeconds, f.first.quantile(.5), f.last.quantile(.5),
		f.moved.quantile(.5), f.byAlias.quantile(.5), 1000 * f.start.Seconds(),
	}
}
