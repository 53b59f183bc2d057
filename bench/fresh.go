package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// fresh is what first queries cost from the end of an import on, and once merges have ended.
type fresh struct {
	data     *dataset
	indexing indexing
	disk     int64 // when merges have ended
	windows  []freshWindow
	fresh    []asked // by kind
	merged   []asked
	kinds    []queryKind
	memory   memory // after all queries
	start    time.Duration
}

// freshWindow has the searches of some seconds after the import.
type freshWindow struct {
	until    time.Duration // since the import
	segments int           // files at its end
	took     latencies
}

const (
	freshQueries = 600 // of a kind: half of them while segments are merged, the others afterwards
	freshWindows = 2 * time.Second
)

// runFresh imports the documents and asks queries of all kinds in turns.
func (m *measurement) runFresh(ctx context.Context) (*fresh, error) {
	f := &fresh{data: m.data}
	n := freshQueries
	if m.Quick {
		n /= 20
	}
	var err error
	if f.kinds, err = drawQueries(m.data, n, true); err != nil {
		return nil, err
	}
	if m.Keep != "" {
		m.dir = filepath.Join(m.Keep, "svc")
	}
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { s.kill() }()
	if err := s.finish(s.patch("/indexes/"+index+"/settings", m.data.settings())); err != nil {
		return nil, err
	}
	if f.indexing, err = m.index(s); err != nil {
		return nil, err
	}
	progress("indexed in %.1f s, CPU %.1f s", f.indexing.seconds, f.indexing.cpuSeconds)
	if err := f.askFresh(m, s, n/2); err != nil {
		return nil, err
	}
	s.settle()
	if f.disk, err = diskBytes(m.dir); err != nil {
		return nil, err
	}
	progress("merged")
	f.merged = make([]asked, len(f.kinds))
	if err := f.inTurns(n/2, n, func(kind int, body []byte) error {
		_, err := f.merged[kind].once(s, body)
		return err
	}); err != nil {
		return nil, err
	}
	f.memory = s.memory()
	if err := s.stop(); err != nil {
		return nil, err
	}
	started, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	s = started
	f.start = s.startTime
	return f, s.stop()
}

// inTurns calls ask with the queries of all kinds from one place to another, one of each kind after the other.
func (f *fresh) inTurns(from, to int, ask func(kind int, body []byte) error) error {
	for i := from; i < to; i++ {
		for k := range f.kinds {
			if i < len(f.kinds[k].bodies) {
				if err := ask(k, f.kinds[k].bodies[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// askFresh asks the first n queries of each kind while segments are merged.
func (f *fresh) askFresh(m *measurement, s *server, n int) error {
	began := time.Now()
	var window freshWindow
	end := func() (err error) {
		window.until = time.Since(began)
		window.segments, err = segmentFiles(m.dir)
		f.windows = append(f.windows, window)
		window = freshWindow{}
		return err
	}
	f.fresh = make([]asked, len(f.kinds))
	if err := f.inTurns(0, n, func(kind int, body []byte) error {
		took, err := f.fresh[kind].once(s, body)
		window.took = append(window.took, took)
		if err == nil && time.Since(began) > time.Duration(len(f.windows)+1)*freshWindows {
			err = end()
		}
		return err
	}); err != nil {
		return err
	}
	return end()
}

// once asks one query.
func (a *asked) once(s *server, body []byte) (time.Duration, error) {
	before, began := s.cpuSeconds(), time.Now()
	if _, err := s.connection().search(body); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if len(a.first) == 0 || took > a.slowest {
		a.slowest, a.worst = took, body
	}
	a.first = append(a.first, took)
	a.turns = append(a.turns, 1000*(s.cpuSeconds()-before))
	return took, nil
}

// segmentFiles counts the segment files below dir.
func segmentFiles(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".seg" {
			n++
		}
		return nil // merges remove files meanwhile
	})
	return n, err
}

// tables are the figures as Markdown.
func (f *fresh) tables() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %d documents, %.0f MiB.\n\n", f.data.title, f.data.documents, mib(int64(len(f.data.payload))))
	fmt.Fprintf(&b, "| figure | value |\n| --- | ---: |\n| import, s | %.1f |\n| import, CPU s | %.1f |\n| peak memory, MiB | %.0f |\n", f.indexing.seconds, f.indexing.cpuSeconds, mib(f.indexing.peak))
	fmt.Fprintf(&b, "| data directory after the import, MiB | %.0f |\n| once merged, MiB | %.0f |\n", mib(f.indexing.disk), mib(f.disk))
	fmt.Fprintf(&b, "| memory after the searches, MiB | %.0f |\n| anonymous, MiB | %.0f |\n| start, ms | %.0f |\n\n", mib(f.memory.resident), mib(f.memory.anonymous), 1000*f.start.Seconds())
	b.WriteString("| seconds after the import | segments | queries | p50 ms | p99 ms | worst ms |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, w := range f.windows {
		fmt.Fprintf(&b, "| %.1f | %d | %d | %.1f | %.1f | %.1f |\n", w.until.Seconds(), w.segments, len(w.took), w.took.quantile(.5), w.took.quantile(.99), w.took.quantile(1))
	}
	b.WriteString("\n| first queries | after the import: p50 ms | p99 ms | worst ms | once merged: CPU ms | p50 ms | p99 ms | worst ms | the worst |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for k := range f.kinds {
		early, late := &f.fresh[k], &f.merged[k]
		var cpu float64
		for _, ms := range late.turns {
			cpu += ms / float64(len(late.turns))
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f | `%s` |\n", f.kinds[k].name,
			early.first.quantile(.5), early.first.quantile(.99), early.first.quantile(1), cpu, late.first.quantile(.5), late.first.quantile(.99), late.first.quantile(1), late.worst)
	}
	return b.Bytes()
}
