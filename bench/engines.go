package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// engines compares search libraries with svc: the same documents and queries, 20 hits, processor time on one thread.
type engines struct {
	data    *dataset
	kinds   []engineKind
	columns []engineColumn
	missing []string // with the reason
	request float64  // milliseconds of processor time that svc needs for a request that searches nothing
}

// engineKind is a kind of queries, as the protocol of engines.py names it.
type engineKind struct {
	name, kind string
	queries    []string
}

// engineColumn has the figures of an engine. Times of searches are the mean processor time in milliseconds.
type engineColumn struct {
	name     string
	indexing float64 // seconds of processor time
	first    []engineCost
	again    []engineCost
}

type engineCost struct {
	cpu  float64
	hits int // on the first pages of all queries together
}

// engineNotes say what each engine does less than svc, or otherwise.
const engineNotes = `svc runs with GOMAXPROCS=1, answers over HTTP and ranks by its rules; the others rank by BM25, in process. They return the numbers of documents, svc the ids.
svc also looks for typos and prefixes in the kinds of plain words.
`

// engineNote has a note on an engine, shown if it was measured.
var engineNote = map[string]string{
	"tantivy": `the ranking knows no typos, proximity or order of attributes. A typo is a fuzzy term, a prefix a fuzzy term of distance 0. Hits
  are not counted. It indexes three fields of text and stores the number of a document. svc also reads JSON, looks ids up, stores whole
  documents, notes which fields they have, and writes postings of short prefixes and checksums.`,
	"Lucene": `the ranking knows no typos, proximity or order of attributes. It counts up to 1,000 hits. Its processor time comes in steps of
  10 ms, and includes compiling the code, which matters most for the first queries.`,
	"bleve": `the ranking knows no typos, proximity or order of attributes. It counts all hits.`,
	"Xapian": `it ranks by a variant of BM25. All fields are one text. A typo is replaced by the nearest spelling before the search: other near
  words are not found.`,
}

const enginesQueries = 300 // of a kind

// runEngines measures svc and the installed engines, one after the other.
func (m *measurement) runEngines(ctx context.Context) (*engines, error) {
	n := enginesQueries
	if m.Quick {
		n /= 20
	}
	f := &engines{data: m.data}
	drawn, err := drawQueries(m.data, n, true)
	if err != nil {
		return nil, err
	}
	kindOf := map[string]string{"one word": "words", "three words": "words", "prefix of 1–4 letters": "prefix", "a typo and a word": "typo", "two-word phrase": "phrase"}
	for _, k := range drawn {
		kind, ok := kindOf[k.name]
		if !ok {
			continue
		}
		e := engineKind{name: k.name, kind: kind}
		for _, body := range k.bodies {
			var r request
			if err := json.Unmarshal(body, &r); err != nil {
				return nil, fmt.Errorf("cannot read a query: %w", err)
			}
			e.queries = append(e.queries, strings.Trim(r.Q, `"`))
		}
		f.kinds = append(f.kinds, e)
	}
	if err := f.askServer(ctx, m); err != nil {
		return nil, err
	}
	work := filepath.Dir(m.dir)
	documents := filepath.Join(work, "documents.tsv")
	if err := writeTabbed(documents, m.data); err != nil {
		return nil, err
	}
	bleve := filepath.Join(work, "bleve")
	if slices.Contains(m.Libraries, "bleve") {
		build := exec.CommandContext(ctx, "go", "build", "-modfile", "bench/engines/bleve.mod", "-o", bleve, "bench/enginebleve.go")
		if out, err := build.CombinedOutput(); err != nil {
			progress("cannot build the program with bleve: %v\n%s", err, out)
		}
	}
	script := filepath.Join("bench", "engines", "engines.py")
	for _, e := range []struct {
		name    string
		command []string
	}{
		{"tantivy", []string{m.Engines, script, "tantivy", documents}},
		{"Xapian", []string{m.Engines, script, "xapian", documents}},
		{"Lucene", []string{"java", "-cp", filepath.Join(m.Jars, "*"), filepath.Join("bench", "engines", "Lucene.java"), documents}},
		{"bleve", []string{bleve, documents}},
	} {
		if !slices.Contains(m.Libraries, e.name) {
			continue
		}
		dir := filepath.Join(work, "engine-"+e.name)
		if e.name != "bleve" { // which makes it
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, fmt.Errorf("cannot make a directory for %s: %w", e.name, err)
			}
		}
		c, err := f.askEngine(ctx, append(e.command, dir))
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			f.missing = append(f.missing, fmt.Sprintf("%s: %v", e.name, err))
			continue
		}
		c.name = e.name
		f.columns = append(f.columns, c)
		progress("%s: indexed with %.1f s of CPU", c.name, c.indexing)
	}
	return f, nil
}

// askServer measures svc with and without typos. Like the libraries, it has one thread.
func (f *engines) askServer(ctx context.Context, m *measurement) error {
	others := m.environment
	m.environment = append(slices.Clone(others), "GOMAXPROCS=1")
	defer func() { m.environment = others }()
	s, err := m.start(ctx)
	if err != nil {
		return err
	}
	defer func() { s.kill() }()
	if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte(`{"searchableAttributes":["name","summary","description"]}`))); err != nil {
		return err
	}
	before := s.cpuSeconds()
	if _, err := m.index(s); err != nil {
		return err
	}
	s.settle() // merges count, as they do for the others
	indexing := s.cpuSeconds() - before
	for _, typos := range []bool{true, false} {
		name := "svc"
		if !typos {
			name = "svc without typos"
		}
		if err := s.finish(s.patch("/indexes/"+index+"/settings/typo-tolerance", fmt.Appendf(nil, `{"enabled":%t}`, typos))); err != nil {
			return err
		}
		s.settle()
		if err := s.stop(); err != nil {
			return err
		}
		started, err := m.start(ctx) // caches are empty
		if err != nil {
			return err
		}
		s = started
		s.settle()
		column := engineColumn{name: name, indexing: indexing}
		c := s.connection()
		for _, k := range f.kinds {
			for _, round := range []*[]engineCost{&column.first, &column.again} {
				var cost engineCost
				for _, q := range k.queries {
					if k.kind == "phrase" {
						q = `"` + q + `"`
					}
					before := s.cpuSeconds()
					answer, err := c.search(fmt.Appendf(nil, `{"q":%q,"limit":20,"attributesToRetrieve":["id"],"matchingStrategy":"all"}`, q))
					if err != nil {
						return err
					}
					cost.cpu += 1000 * (s.cpuSeconds() - before)
					var found struct{ Hits []json.RawMessage }
					if err := json.Unmarshal(answer, &found); err != nil {
						return fmt.Errorf("cannot read the answer to %s: %w", q, err)
					}
					cost.hits += len(found.Hits)
				}
				cost.cpu /= float64(len(k.queries))
				*round = append(*round, cost)
			}
		}
		f.columns = append(f.columns, column)
		progress("%s: asked", name)
	}
	before = s.cpuSeconds()
	for range enginesQueries {
		if _, err := s.do(fasthttp.MethodGet, "/health", "", nil); err != nil {
			return err
		}
	}
	f.request = 1000 * (s.cpuSeconds() - before) / enginesQueries
	return s.stop()
}

// writeTabbed writes the documents as engines.py reads them.
func writeTabbed(name string, d *dataset) error {
	var b bytes.Buffer
	plain := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")
	id := 0
	for line := range bytes.Lines(d.payload) {
		var doc struct {
			Name, Summary, Description string
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			return fmt.Errorf("cannot read a document: %w", err)
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\n", id, plain.Replace(doc.Name), plain.Replace(doc.Summary), plain.Replace(doc.Description))
		id++
	}
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("cannot write documents: %w", err)
	}
	return nil
}

// askEngine runs an engine that speaks the protocol of engines.py.
func (f *engines) askEngine(ctx context.Context, command []string) (c engineColumn, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	var said bytes.Buffer
	process.Stderr = &said
	in, err := process.StdinPipe()
	if err != nil {
		return c, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := process.Start(); err != nil {
		return c, err
	}
	answers := bufio.NewScanner(out)
	err = c.ask(f.kinds, in, answers)
	if e := in.Close(); err == nil {
		err = e
	}
	if e := process.Wait(); err == nil {
		err = e
	}
	if err != nil && said.Len() > 0 {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return c, fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return c, err
}

// ask has an engine index the documents, and asks all queries twice.
func (c *engineColumn) ask(kinds []engineKind, in io.Writer, answers *bufio.Scanner) (err error) {
	if _, err := io.WriteString(in, "build\n"); err != nil {
		return err
	}
	if !answers.Scan() {
		return errors.New("it ended while it indexed")
	}
	if c.indexing, err = strconv.ParseFloat(answers.Text(), 64); err != nil {
		return fmt.Errorf("it answered %q", answers.Text())
	}
	for _, k := range kinds {
		for _, round := range []*[]engineCost{&c.first, &c.again} {
			if _, err := fmt.Fprintf(in, "search %s %d\n%s\n", k.kind, len(k.queries), strings.Join(k.queries, "\n")); err != nil {
				return err
			}
			var cost engineCost
			for range k.queries {
				if !answers.Scan() {
					return errors.New("it ended while it searched")
				}
				var micros float64
				var hits int
				if _, err := fmt.Sscan(answers.Text(), &micros, &hits); err != nil {
					return fmt.Errorf("it answered %q", answers.Text())
				}
				cost.cpu += micros / 1000 / float64(len(k.queries))
				cost.hits += hits
			}
			*round = append(*round, cost)
		}
	}
	return nil
}

// tables are the figures as Markdown.
func (f *engines) tables() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %d documents, %.0f MiB. Cells of searches: CPU ms a query, first / again; hits on the first pages of all queries together.\n\n| CPU |", f.data.title, f.data.documents, mib(int64(len(f.data.payload))))
	rule := "\n| --- |"
	for i := range f.columns {
		fmt.Fprintf(&b, " %s |", f.columns[i].name)
		rule += " --- |"
	}
	fmt.Fprintf(&b, "%s\n| indexing, s |", rule)
	for i := range f.columns {
		fmt.Fprintf(&b, " %.1f |", f.columns[i].indexing)
	}
	for k := range f.kinds {
		fmt.Fprintf(&b, "\n| %s |", f.kinds[k].name)
		for i := range f.columns {
			c := &f.columns[i]
			fmt.Fprintf(&b, " %.2f / %.2f; %d |", c.first[k].cpu, c.again[k].cpu, c.first[k].hits)
		}
	}
	fmt.Fprintf(&b, "\n\nOf a search by svc, %.2f ms are for HTTP: as much as a request takes that searches nothing.\n%s", f.request, engineNotes)
	for i, c := range f.columns {
		if note := engineNote[c.name]; note != "" {
			if i == 0 || engineNote[f.columns[i-1].name] == "" {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "- %s: %s\n", c.name, note)
		}
	}
	for _, reason := range f.missing {
		fmt.Fprintf(&b, "\nNot measured: %s\n", reason)
	}
	return b.Bytes()
}
