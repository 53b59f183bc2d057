package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
)

// published is the cost of a publication to a directory for its server, its lag, and the time to restore and follow it.
type published struct {
	alone, with []imported // by turns
	lag         latencies  // while documents are imported
	sent, fresh int64      // bytes: all that was uploaded, and files that were new

	log, image []restoring // all changes in the log behind the image, and all in the image
	follows    []restoring
}

// imported is an import at full speed, until all tasks have ended.
type imported struct{ took, cpu float64 } // seconds

// restoring is a restore, and a copy of the same files with their checksums: both sync each file.
type restoring struct{ svc, plain copying }

const (
	publishRounds = 3
	importBytes   = 2 << 20 // of a request
	lagEvery      = 50 * time.Millisecond
)

// runPublish measures a server alone and one that publishes, by turns.
func (m *measurement) runPublish(ctx context.Context) (*published, error) {
	f, rounds := new(published), publishRounds
	if m.Quick {
		rounds = 1
	}
	for round := range rounds {
		for _, with := range []bool{round%2 == 1, round%2 == 0} {
			if err := m.publishRound(ctx, f, with); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// publishRound imports all documents to a new server, which publishes or does not.
func (m *measurement) publishRound(ctx context.Context, f *published, with bool) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(m.dir), "publish-")
	if err != nil {
		return fmt.Errorf("cannot make a working directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := &publishing{m: *m, dir: dir, bucket: filepath.Join(dir, "bucket")}
	p.m.dir = filepath.Join(dir, "writer")
	if with {
		p.m.arguments = []string{"--publish", "file://" + filepath.ToSlash(p.bucket)}
	}
	s, err := p.m.start(ctx)
	if err != nil {
		return err
	}
	defer func() { s.kill() }()
	i, lag, err := p.load(s, with)
	if err != nil {
		return err
	}
	progress("published %t: %.2f s, %.2f s of CPU, p99 of lag %.2f s, at most %.2f s", with, i.took, i.cpu, lag.quantile(.99)/1000, lag.quantile(1)/1000)
	if !with {
		f.alone = append(f.alone, i)
		return nil
	}
	f.with, f.lag = append(f.with, i), append(f.lag, lag...)
	if f.sent, f.fresh, err = objectBytes(p.bucket); err != nil {
		return err
	}
	r, err := p.restore(ctx)
	if err != nil {
		return err
	}
	f.log = append(f.log, r)
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = p.m.start(ctx); err != nil { // a start uploads an image
		return err
	}
	if err := caughtUp(s); err != nil {
		return err
	}
	if r, err = p.restore(ctx); err != nil {
		return err
	}
	f.image = append(f.image, r)
	if r.svc, err = p.follow(ctx); err != nil {
		return err
	}
	f.follows = append(f.follows, r)
	return nil
}

// publishing is a server with a publication.
type publishing struct {
	m           measurement
	dir, bucket string
}

// load sends all documents as fast as the server takes them, and waits until they are indexed and published.
func (p *publishing) load(s *server, with bool) (i imported, lag latencies, err error) {
	if _, err := s.patch("/experimental-features", []byte(`{"metrics":true}`)); err != nil {
		return i, nil, err
	}
	if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte(indexSettings))); err != nil {
		return i, nil, err
	}
	if with {
		if err := caughtUp(s); err != nil { // the first image
			return i, nil, err
		}
	}
	done := make(chan struct{})
	watched := new(errgroup.Group)
	watched.Go(func() error {
		for {
			select {
			case <-done:
				return nil
			case <-time.After(lagEvery):
			}
			if !with { // both are asked as often
				if _, err := s.do(fasthttp.MethodGet, "/health", "", nil); err != nil {
					return err
				}
				continue
			}
			n, err := s.lag()
			if err != nil {
				return err
			}
			lag = append(lag, n)
		}
	})
	began, cpu := time.Now(), s.cpuSeconds()
	var last []byte
	for _, part := range parts(p.m.data.payload, max(len(p.m.data.payload)/importBytes, 1)) {
		if last, err = s.post("/indexes/"+index+"/documents?primaryKey=id", "application/x-ndjson", part); err != nil {
			break
		}
	}
	if err == nil {
		err = s.finish(last, nil)
	}
	i = imported{time.Since(began).Seconds(), s.cpuSeconds() - cpu}
	close(done)
	if err = errors.Join(err, watched.Wait()); err != nil || !with {
		return i, lag, err
	}
	s.settle()
	return i, lag, caughtUp(s)
}

// lag is what the metrics of a server say of its publication.
func (s *server) lag() (time.Duration, error) {
	text, err := s.do(fasthttp.MethodGet, "/metrics", "", nil)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "svc_publish_lag_seconds "); ok {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err != nil || math.IsNaN(seconds) {
				break
			}
			return time.Duration(seconds * float64(time.Second)), nil
		}
	}
	return math.MaxInt64, nil // the first image is not published yet
}

// caughtUp waits until a server has published all that it has now.
func caughtUp(s *server) error {
	began := time.Now()
	for ; time.Since(began) < 10*time.Minute; time.Sleep(10 * time.Millisecond) {
		lag, err := s.lag()
		if err != nil || lag < time.Since(began) {
			return err
		}
	}
	return errors.New("the server has not published everything within 10 minutes")
}

// objectBytes returns the total size of all objects of a bucket, and of the files in them. It does not count the copies of bbolt's
// files in images, because these files are not new.
func objectBytes(bucket string) (all, files int64, err error) {
	err = filepath.WalkDir(bucket, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all += info.Size()
		if filepath.Base(filepath.Dir(filepath.Dir(name))) != "files" {
			return nil
		}
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		var start [20]byte
		if _, err := io.ReadFull(in, start[:]); err == nil && [4]byte(start[16:]) == [4]byte{0xed, 0xda, 0x0c, 0xed} {
			return nil
		}
		files += info.Size()
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("cannot measure the bucket: %w", err)
	}
	return all, files, nil
}

// restore restores the last position, and copies the result.
func (p *publishing) restore(ctx context.Context) (r restoring, err error) {
	to := filepath.Join(p.dir, "restored")
	began := time.Now()
	if out, err := exec.CommandContext(ctx, p.m.binary, "restore", "--from", "file://"+filepath.ToSlash(p.bucket), "--to", to).CombinedOutput(); err != nil {
		return r, fmt.Errorf("cannot restore: %w\n%s", err, out)
	}
	r.svc.took = time.Since(began)
	copied := filepath.Join(p.dir, "copied")
	began = time.Now()
	if r.plain.size, err = checkedCopy(to, copied); err != nil {
		return r, fmt.Errorf("cannot copy the restored directory: %w", err)
	}
	r.plain.took, r.svc.size = time.Since(began), r.plain.size
	progress("%.1f MiB restored in %.2f s, copied in %.2f s", mib(r.svc.size), r.svc.took.Seconds(), r.plain.took.Seconds())
	return r, errors.Join(os.RemoveAll(to), os.RemoveAll(copied))
}

// checkedCopy copies the files below a directory durably, several at once, and computes the checksum of each as svc does.
func checkedCopy(from, to string) (size int64, err error) {
	var g errgroup.Group
	g.SetLimit(8)
	err = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		size += info.Size()
		g.Go(func() error { return checkedCopyFile(name, filepath.Join(to, rest)) })
		return nil
	})
	return size, errors.Join(err, g.Wait())
}

func checkedCopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(out, xxh3.New()), in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// follow starts a server without data that follows, and waits until it answers.
func (p *publishing) follow(ctx context.Context) (c copying, err error) {
	reader := p.m
	reader.dir, reader.arguments = filepath.Join(p.dir, "reader"), []string{"--follow", "file://" + filepath.ToSlash(p.bucket)}
	began := time.Now()
	s, err := reader.start(ctx)
	if err != nil {
		return c, err
	}
	defer s.kill()
	if _, err := s.follows(ctx); err != nil {
		return c, err
	}
	c.took = time.Since(began)
	c.size, err = diskBytes(reader.dir)
	progress("%.1f MiB followed in %.2f s", mib(c.size), c.took.Seconds())
	return c, err
}

// medianOf returns the median of a figure of several runs.
func medianOf[T any](runs []T, of func(*T) float64) float64 {
	list := make([]float64, len(runs))
	for i := range runs {
		list[i] = of(&runs[i])
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// table shows it.
func (f *published) table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "A directory on the same disk is the bucket. The server, the load generator and the disk's cache share the machine. Aims: %s\n\n",
		"at most 1.1 times the bytes of new files; the server at most 3% slower; lag p99 at most 5 s; a restore at 0.8 of a copy; a reader after the transfer and 10 s.")
	fmt.Fprintf(&b, "| import at full speed, median of %d | alone | with --publish | × |\n| --- | --- | --- | --- |\n", len(f.with))
	for _, row := range []struct {
		name string
		of   func(*imported) float64
	}{
		{"time, s", func(x *imported) float64 { return x.took }},
		{"CPU time of the server, s", func(x *imported) float64 { return x.cpu }},
	} {
		alone, with := medianOf(f.alone, row.of), medianOf(f.with, row.of)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.3f |\n", row.name, alone, with, with/alone)
	}
	fmt.Fprintf(&b, "\n| the publication | |\n| --- | --- |\n")
	fmt.Fprintf(&b, "| `svc_publish_lag_seconds` in the imports | p50 %.2f s, p99 %.2f s, at most %.2f s |\n",
		f.lag.quantile(.5)/1000, f.lag.quantile(.99)/1000, f.lag.quantile(1)/1000)
	fmt.Fprintf(&b, "| uploaded | %.1f MiB, %.4f times the bytes of new files |\n", mib(f.sent), float64(f.sent)/float64(f.fresh))
	mega := func(r *restoring) float64 { return mib(r.svc.size) }
	fmt.Fprintf(&b, "\n| median | size | MB/s | a copy with checksums and syncs, MB/s | × |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range []struct {
		name string
		runs []restoring
	}{{"`svc restore`, all files in the image", f.image}, {"`svc restore`, all changes behind the image", f.log}} {
		svc := medianOf(row.runs, func(r *restoring) float64 { return r.svc.rate() })
		plain := medianOf(row.runs, func(r *restoring) float64 { return r.plain.rate() })
		fmt.Fprintf(&b, "| %s | %.1f MiB | %.0f | %.0f | %.2f |\n", row.name, medianOf(row.runs, mega), svc, plain, svc/plain)
	}
	fmt.Fprintf(&b, "\nA server without data that starts with --follow answers after %.2f s. The copy of the same %.1f MiB takes %.2f s.\n",
		medianOf(f.follows, func(r *restoring) float64 { return r.svc.took.Seconds() }), medianOf(f.follows, mega),
		medianOf(f.follows, func(r *restoring) float64 { return r.plain.took.Seconds() }))
	return b.Bytes()
}
