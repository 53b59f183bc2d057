//go:build ignore

// This program answers searches with bleve for the benchmark: bleve DOCUMENTS DIRECTORY. engines.py describes the protocol. It is built
// with a module file of its own, so that svc does not depend on bleve.

package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"
)

const (
	page  = 20
	batch = 1000 // documents
)

var fields = []string{"name", "summary", "description"}

func main() {
	runtime.GOMAXPROCS(1)
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(documents, dir string) error {
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	var index bleve.Index
	for in.Scan() {
		if in.Text() == "build" {
			began := cpu()
			var err error
			if index, err = build(documents, dir); err != nil {
				return err
			}
			fmt.Fprintln(out, float64(cpu()-began)/1e6)
		} else {
			var kind string
			var n int
			if _, err := fmt.Sscanf(in.Text(), "search %s %d", &kind, &n); err != nil {
				return fmt.Errorf("reading the command %q: %w", in.Text(), err)
			}
			for range n {
				in.Scan()
				began := cpu()
				found, err := index.Search(bleve.NewSearchRequestOptions(ask(kind, in.Text()), page, 0, false))
				if err != nil {
					return fmt.Errorf("searching for %q: %w", in.Text(), err)
				}
				fmt.Fprintln(out, cpu()-began, len(found.Hits))
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// cpu is the processor time of the process in microseconds.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}

func build(documents, dir string) (bleve.Index, error) {
	text := bleve.NewTextFieldMapping()
	text.Store, text.IncludeInAll, text.DocValues = false, false, false
	document := bleve.NewDocumentStaticMapping()
	for _, field := range fields {
		document.AddFieldMappingsAt(field, text)
	}
	mapping := bleve.NewIndexMapping()
	mapping.DefaultMapping = document
	index, err := bleve.New(dir, mapping)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(documents)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	b := index.NewBatch()
	for lines.Scan() {
		values := strings.Split(lines.Text(), "\t")
		d := make(map[string]any, len(fields))
		for i, field := range fields {
			d[field] = values[i+1]
		}
		if err := b.Index(values[0], d); err != nil {
			return nil, err
		}
		if b.Size() == batch {
			if err := index.Batch(b); err != nil {
				return nil, err
			}
			b.Reset()
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return index, index.Batch(b)
}

// ask makes a query: all words, each in any field.
func ask(kind, text string) query.Query {
	parts := strings.Fields(text)
	if kind == "phrase" {
		parts = []string{text}
	}
	var all []query.Query
	for _, part := range parts {
		var any []query.Query
		for _, field := range fields {
			any = append(any, one(kind, field, part))
		}
		all = append(all, bleve.NewDisjunctionQuery(any...))
	}
	return bleve.NewConjunctionQuery(all...)
}

func one(kind, field, part string) query.Query {
	switch kind {
	case "prefix":
		q := bleve.NewPrefixQuery(part)
		q.SetField(field)
		return q
	case "typo":
		q := bleve.NewFuzzyQuery(part)
		q.SetFuzziness(1)
		q.SetField(field)
		return q
	case "phrase":
		q := bleve.NewMatchPhraseQuery(part)
		q.SetField(field)
		return q
	}
	q := bleve.NewTermQuery(part)
	q.SetField(field)
	return q
}
