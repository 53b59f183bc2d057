package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"
)

// readers is the cost of a reader for its writer, and its lag.
type readers struct {
	held        int // processors of the writer, which the reader does not use; 0: both share all
	batches     int
	alone, with []batched
	lag         latencies // of each batch, from its end at the writer to when the reader answers with it
	behind      latencies // of searches at the reader meanwhile
	catchUp     []copying // by another reader
	plainCopy   []copying // of the same files, by a copy on the same disk, with a sync of each
}

// copying is a copy of the data directory of a writer.
type copying struct {
	size int64 // bytes
	took time.Duration
}

// rate returns the megabytes a second.
func (c *copying) rate() float64 { return float64(c.size) / 1e6 / c.took.Seconds() }

// batched is an indexing of all documents in batches, while the server is searched.
type batched struct {
	took     time.Duration // without the waits for the reader
	worked   float64       // processor seconds of the writer
	searches latencies
}

const (
	groupRounds  = 3 // of each kind
	groupBatches = 40
	groupKey     = "a-master-key-of-the-benchmark"
)

// runGroup measures a server alone and one with a reader, by turns: both share the processors, and then, on Linux, each has half of them.
func (m *measurement) runGroup(ctx context.Context) (list []*readers, err error) {
	halves := []int{0}
	if half := runtime.NumCPU() / 2; half > 0 && runtime.GOOS == "linux" {
		halves = append(halves, half)
	}
	for _, held := range halves {
		f, err := m.runReaders(ctx, held)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

func (m *measurement) runReaders(ctx context.Context, held int) (*readers, error) {
	kinds, err := drawQueries(m.data, crossedOfKind, true)
	if err != nil {
		return nil, err
	}
	queries := inTurn(kinds)
	f := &readers{held: held, batches: groupBatches}
	rounds := groupRounds
	if m.Quick {
		f.batches, rounds = 10, 1
	}
	for round := range rounds {
		for _, grouped := range []bool{round%2 == 1, round%2 == 0} {
			if err := m.groupRound(ctx, f, queries, grouped); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// groupRound indexes all documents at a new server, with a reader or without one.
func (m *measurement) groupRound(ctx context.Context, f *readers, queries [][]byte, grouped bool) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(m.dir), "group-")
	if err != nil {
		return fmt.Errorf("cannot make a working directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var running []*server
	defer func() {
		for _, s := range running {
			s.kill()
		}
	}()
	listens, err := freeAddress()
	if err != nil {
		return err
	}
	begin := func(name string, arguments ...string) (*server, error) {
		one := *m
		one.processors = f.held
		if name != "writer" {
			one.processors = -f.held
		}
		one.dir, one.masterKey, one.arguments = filepath.Join(dir, name), groupKey, arguments
		s, err := one.start(ctx)
		if err == nil {
			running = append(running, s)
		}
		return s, err
	}
	reads := []string{"--group-name", "bench", "--group-role", "reader", "--group-join", listens}
	var arguments []string
	if grouped {
		arguments = []string{"--group-name", "bench", "--group-addr", listens}
	}
	writer, err := begin("writer", arguments...)
	if err != nil {
		return err
	}
	if err := writer.finish(writer.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return err
	}
	sides := []*crossing{{server: writer, bodies: queries}}
	var reader *server
	if grouped {
		if reader, err = begin("reader", reads...); err != nil {
			return err
		}
		if _, err := reader.follows(ctx); err != nil {
			return err
		}
		sides = append(sides, &crossing{server: reader, bodies: queries})
	}
	var b batched
	var lag latencies
	searched, err := together(sides, func() error {
		worked, began := writer.cpuSeconds(), time.Now()
		for _, part := range parts(m.data.payload, f.batches) {
			if err := writer.finish(writer.post("/indexes/"+index+"/documents?primaryKey=id", "application/x-ndjson", part)); err != nil {
				return err
			}
			if reader == nil {
				continue
			}
			ended := time.Now()
			if err := reader.reaches(writer); err != nil {
				return err
			}
			lag = append(lag, time.Since(ended))
			began = began.Add(time.Since(ended)) // the writer has nothing to do meanwhile
		}
		b.took = time.Since(began)
		b.worked = writer.cpuSeconds() - worked
		return nil
	})
	if err != nil {
		return err
	}
	b.searches = searched[0]
	progress("grouped %t: %.2f s, %.2f s of processors, p99 of searches %.2f ms, p99 of lag %.1f ms", grouped, b.took.Seconds(), b.worked, b.searches.quantile(.99), lag.quantile(.99))
	if !grouped {
		f.alone = append(f.alone, b)
		return nil
	}
	f.with, f.lag, f.behind = append(f.with, b), append(f.lag, lag...), append(f.behind, searched[1]...)
	writer.settle() // a merge during a copy would change the copied files
	return m.catchUp(ctx, f, dir, func() (*server, error) { return begin("late", reads...) })
}

// catchUp has another reader copy the data of the writer, and copies them without svc.
func (m *measurement) catchUp(ctx context.Context, f *readers, dir string, begin func() (*server, error)) error {
	began := time.Now()
	size, err := copyFiles(filepath.Join(dir, "writer", "indexes"), filepath.Join(dir, "copy"))
	if err != nil {
		return err
	}
	plain := time.Since(began)
	late, err := begin()
	if err != nil {
		return err
	}
	took, err := late.follows(ctx)
	if err != nil {
		return err
	}
	progress("%.1f MiB copied in %.2f s, by a plain copy in %.2f s", mib(size), took.Seconds(), plain.Seconds())
	f.catchUp, f.plainCopy = append(f.catchUp, copying{size, took}), append(f.plainCopy, copying{size, plain})
	return nil
}

// parts cuts lines into n parts of about the same size.
func parts(lines []byte, n int) (list [][]byte) {
	for i := n; i > 0 && len(lines) > 0; i-- {
		end := len(lines) / i
		if at := bytes.IndexByte(lines[end:], '\n'); at >= 0 && i > 1 {
			end += at + 1
		} else {
			end = len(lines)
		}
		list, lines = append(list, lines[:end]), lines[end:]
	}
	return list
}

// groupState is what GET /group says of a member.
type groupState struct {
	Position string
	Reader   *struct {
		State        string
		AnswersReads bool
	}
}

func (s *server) group() (*groupState, error) {
	b, err := s.do(fasthttp.MethodGet, "/group", "", nil)
	if err != nil {
		return nil, err
	}
	g := new(groupState)
	if err := json.Unmarshal(b, g); err != nil {
		return nil, fmt.Errorf("cannot read the state of the group: %w", err)
	}
	return g, nil
}

// follows waits until a reader has the data of its writer, and returns how long that took.
func (s *server) follows(ctx context.Context) (time.Duration, error) {
	for began := time.Now(); ; {
		g, err := s.group()
		if err != nil {
			return 0, err
		}
		if g.Reader != nil && g.Reader.State == "follows" && g.Reader.AnswersReads {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// reaches waits until a reader answers with everything that its writer has now.
func (s *server) reaches(writer *server) error {
	g, err := writer.group()
	if err != nil {
		return err
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://" + s.client.Addr + "/version")
	req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+s.key)
	req.Header.Set("Svc-Min-Position", g.Position)
	for {
		if err := s.client.Do(req, resp); err != nil {
			return fmt.Errorf("GET /version: %w", err)
		}
		switch resp.StatusCode() {
		case fasthttp.StatusOK:
			return nil
		case fasthttp.StatusServiceUnavailable: // not yet: it has waited for some seconds
		default:
			return fmt.Errorf("GET /version: status %d: %s", resp.StatusCode(), resp.Body())
		}
	}
}

// copyFiles copies the files below a directory, durably, and returns their size.
func copyFiles(from, to string) (size int64, err error) {
	err = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rest, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		n, err := copyFile(name, filepath.Join(to, rest))
		size += n
		if errors.Is(err, fs.ErrNotExist) { // a merge has removed it
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot copy the data directory: %w", err)
	}
	return size, nil
}

func copyFile(from, to string) (n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return n, errors.Join(err, out.Close())
}

// table shows it.
func (f *readers) table() []byte {
	var b bytes.Buffer
	size := func(c *copying) float64 { return mib(c.size) }
	how := "The writer, its reader and the load generator share all cores."
	if f.held > 0 {
		how = fmt.Sprintf("The writer has %d of the cores, and its reader as many others, as two hosts would. The load generator uses all.", f.held)
	}
	fmt.Fprintf(&b, "%s Aims: %s\n\n", how,
		"lag p99 at most 0.5 s; catch-up at least 400 MB/s or 0.8 of a plain copy; the writer at most 5% slower; p99 of its searches at most 1.2 ×.")
	fmt.Fprintf(&b, "| indexing in %d batches, %d searches a second at each server | alone | with a reader | × |\n| --- | --- | --- | --- |\n", f.batches, time.Second/networkPace)
	for _, row := range []struct {
		name string
		of   func(*batched) float64
	}{
		{"time, s, median", func(x *batched) float64 { return x.took.Seconds() }},
		{"processor time of the writer, s, median", func(x *batched) float64 { return x.worked }},
		{"searches of the writer, p50 ms, median", func(x *batched) float64 { return x.searches.quantile(.5) }},
		{"searches of the writer, p99 ms, median", func(x *batched) float64 { return x.searches.quantile(.99) }},
	} {
		alone, with := medianOf(f.alone, row.of), medianOf(f.with, row.of)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", row.name, alone, with, with/alone)
	}
	fmt.Fprintf(&b, "\n| the reader | |\n| --- | --- |\n")
	fmt.Fprintf(&b, "| lag behind the end of a batch | p50 %.1f ms, p99 %.1f ms, %d batches |\n", f.lag.quantile(.5), f.lag.quantile(.99), len(f.lag))
	fmt.Fprintf(&b, "| searches of the reader | p50 %.2f ms, p99 %.2f ms |\n", f.behind.quantile(.5), f.behind.quantile(.99))
	fmt.Fprintf(&b, "| catch-up of an empty reader, %.1f MiB of indexes | %.0f MB/s |\n", medianOf(f.catchUp, size), medianOf(f.catchUp, (*copying).rate))
	fmt.Fprintf(&b, "| a plain copy of the same files, synced | %.0f MB/s |\n", medianOf(f.plainCopy, (*copying).rate))
	return b.Bytes()
}
