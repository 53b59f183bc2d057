package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

var bounded = flag.Bool("bounded", false, "TestIndexingMemoryIsBounded takes documents of 100 MB, 65,535 fields and a million documents")

// process is the program in its own process, whose anonymous memory is measured.
type process struct {
	*crashServer
	peak atomic.Int64 // bytes of anonymous memory
	stop func()
}

// startProcess starts the test binary as the program.
func startProcess(t *testing.T, data string, args ...string) *process {
	t.Helper()
	t.Setenv(asProgram, "1")
	p := &process{crashServer: startServer(t, os.Args[0], data, args...)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if n := anonymousMemory(p.process.Process.Pid); n > p.peak.Load() {
				p.peak.Store(n)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	p.stop = func() {
		cancel()
		<-done
		p.process.Process.Kill()
		p.process.Wait()
	}
	t.Cleanup(p.stop)
	return p
}

// anonymousMemory returns the bytes of a process that are not backed by files, or 0 if that is unknown.
func anonymousMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// stream sends a body written by write.
func (p *process) stream(t *testing.T, path string, write func(w *bufio.Writer)) {
	t.Helper()
	r, w := io.Pipe()
	go func() {
		b := bufio.NewWriterSize(w, 1<<16)
		write(b)
		w.CloseWithError(b.Flush())
	}()
	resp, err := http.Post(p.url+path, "application/x-ndjson", r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s: %s %v", resp.Status, b, err)
	}
}

// succeeds waits until all tasks have ended, and checks that they succeeded.
func (p *process) succeeds(t *testing.T) {
	t.Helper()
	s := &cutServer{url: p.url, log: new(logstest.Buffer)}
	if err := s.idle(30 * time.Minute); err != nil {
		t.Fatal(err)
	}
	var failed struct {
		Total int
	}
	if body, err := s.call(http.MethodGet, "/tasks?statuses=failed,canceled", "", &failed); err != nil || failed.Total > 0 {
		t.Fatalf("%.500s %v", body, err)
	}
}

// TestIndexingMemoryIsBounded indexes and merges data that are large in one dimension each. The anonymous memory of the process must stay
// below --max-indexing-memory plus 100 MiB; more would get the process killed in a container.
func TestIndexingMemoryIsBounded(t *testing.T) {
	if anonymousMemory(os.Getpid()) == 0 {
		t.Skip("this system does not report anonymous memory")
	}
	bound := int64(32 << 20)
	// sizes of the payload and of one document in bytes; numbers of fields and of tiny documents
	payload, document, fields, tiny := int64(0), 5<<20, 8_000, 50_000
	if *bounded {
		payload, document, fields, tiny = 10*bound, 100_000_000, 65_000, 1_000_000
	} else if testing.Short() {
		t.Skip("it takes some seconds")
	} else {
		bound = 2 << 20
		payload = 10 * bound
	}
	words := func(r *rand.Rand, w *bufio.Writer, bytes int) {
		for n := 0; n < bytes; {
			k, _ := fmt.Fprintf(w, "w%x ", r.IntN(1<<uint(4+r.IntN(14))))
			if n += k; r.IntN(100) == 0 { // lines as in a text
				k, _ = w.WriteString(`\n`)
				n += k
			}
		}
	}
	for _, c := range []struct {
		name  string
		write func(r *rand.Rand, w *bufio.Writer)
	}{
		{"a payload ten times the bound", func(r *rand.Rand, w *bufio.Writer) {
			for i, sent := 0, int64(0); sent < payload; i++ {
				fmt.Fprintf(w, `{"id":%d,"n":%d,"tags":["t%d","u%d"],"text":"`, i, r.IntN(1000), i%7, i%100)
				words(r, w, 2000)
				w.WriteString("\"}\n")
				sent += 2060
			}
		}},
		{"a large document", func(r *rand.Rand, w *bufio.Writer) {
			w.WriteString(`{"id":1,"text":"`)
			words(r, w, document)
			w.WriteString("\"}\n")
		}},
		{"many fields", func(_ *rand.Rand, w *bufio.Writer) {
			for i := range 20 {
				fmt.Fprintf(w, `{"id":%d`, i)
				for f := range fields / 20 {
					fmt.Fprintf(w, `,"field%d":"value %d"`, i*fields/20+f, f)
				}
				w.WriteString("}\n")
			}
		}},
		{"many tiny documents", func(_ *rand.Rand, w *bufio.Writer) {
			for i := range tiny {
				fmt.Fprintf(w, "{\"id\":%d}\n", i)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startProcess(t, filepath.Join(t.TempDir(), "db"), "--max-indexing-memory", fmt.Sprint(bound), "--http-payload-size-limit", "4 GB")
			s := &cutServer{url: p.url, log: new(logstest.Buffer)}
			if _, err := s.call(http.MethodPatch, "/indexes/x/settings", `{"filterableAttributes":["n","tags"],"sortableAttributes":["n"]}`, nil); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			p.stream(t, "/indexes/x/documents", func(w *bufio.Writer) { c.write(r, w) })
			p.succeeds(t)
			indexed := p.peak.Swap(0)
			if _, err := s.call(http.MethodPost, "/indexes/x/compact", "", nil); err != nil {
				t.Fatal(err)
			}
			p.succeeds(t)
			merged := p.peak.Load()
			t.Logf("at most %d MiB of anonymous memory while indexing, %d MiB while compacting; the limit is %d MiB", indexed>>20, merged>>20, bound>>20)
			if most := max(indexed, merged); most > bound+100<<20 {
				t.Errorf("%d MiB of anonymous memory, want at most %d MiB plus 100 MiB", most>>20, bound>>20)
			}
		})
	}
}

// TestAcceptedWritesOutliveAFullDisk checks that accepted writes wait while a small disk is full, and are applied when there is room.
func TestAcceptedWritesOutliveAFullDisk(t *testing.T) {
	dir := smallDisk(t, "160m")
	if dir == "" {
		t.Skip("cannot create a small disk here")
	}
	p := startProcess(t, filepath.Join(dir, "db"), "--max-indexing-memory", "16 MiB")
	t.Cleanup(p.stop) // before the disk is unmounted
	s := &cutServer{url: p.url, log: new(logstest.Buffer)}
	if _, err := s.call(http.MethodPost, "/indexes", `{"uid":"x","primaryKey":"id"}`, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.idle(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 136<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// Send incompressible bodies until there is no room.
	r := rand.New(rand.NewPCG(3, 4))
	accepted, refused := 0, 0
	for refused == 0 && accepted < 1000 {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "{\"id\":%d,\"text\":\"", accepted*40+i)
			for range 500 {
				fmt.Fprintf(&b, "%x ", r.Uint64())
			}
			b.WriteString("\"}\n")
		}
		resp, err := http.Post(p.url+"/indexes/x/documents", "application/x-ndjson", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case resp.StatusCode == http.StatusAccepted:
			accepted++
		case strings.Contains(string(body), `"no_space_left_on_device"`):
			refused++
		default:
			t.Fatalf("%s: %s", resp.Status, body)
		}
	}
	var list struct{ Total int }
	if body, err := s.call(http.MethodGet, "/tasks?statuses=failed,canceled", "", &list); err != nil || list.Total > 0 {
		t.Fatalf("%.500s %v", body, err)
	}
	if refused == 0 || accepted < 3 {
		t.Fatalf("%d writes were accepted, %d refused", accepted, refused)
	}
	// Searches continue, and the server reports that tasks wait.
	if body, err := s.call(http.MethodPost, "/indexes/x/search", `{"q":"0 1","limit":1}`, nil); err != nil {
		t.Errorf("a search on a full disk: %.500s %v", body, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var health struct {
			Status  string
			Details struct{ ParkedIndexes int }
		}
		body, err := s.call(http.MethodGet, "/health", "", &health)
		if err == nil && health.Status == "available" && health.Details.ParkedIndexes == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not report a parked index: %s %v", body, err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.idle(3 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if body, err := s.call(http.MethodPost, "/indexes/y/documents", `[{"id":1}]`, nil); err != nil { // needs no restart
		t.Errorf("a write when there is room again: %s %v", body, err)
	}
	if body, err := s.call(http.MethodGet, "/health", "", nil); err != nil || body != `{"status":"available"}` {
		t.Errorf("when there is room again: %s %v", body, err)
	}
	var docs struct{ Total int }
	if body, err := s.call(http.MethodGet, "/indexes/x/documents?limit=0", "", &docs); err != nil || docs.Total != 40*accepted {
		t.Errorf("%d of %d documents: %s %v", docs.Total, 40*accepted, body, err)
	}
	if body, err := s.call(http.MethodGet, "/tasks?statuses=failed,canceled", "", &list); err != nil || list.Total > 0 {
		t.Errorf("%.500s %v", body, err)
	}
}

// TestDeletionsRunOnAFullDisk fills a small disk to the last block: the deletion of an index must run, also right after a start there.
func TestDeletionsRunOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "48m")
	if dir == "" {
		t.Skip("cannot create a small disk here")
	}
	for _, restarts := range []bool{false, true} {
		db := filepath.Join(dir, fmt.Sprint("db", restarts))
		p := startProcess(t, db)
		s := &cutServer{url: p.url, log: new(logstest.Buffer)}
		for _, uid := range []string{"kept", "deleted"} {
			if _, err := s.call(http.MethodPost, "/indexes/"+uid+"/documents", `[{"id":1,"text":"some words"}]`, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.idle(time.Minute); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(dir, "ballast")
		if err := fillDisk(ballast); err != nil {
			t.Fatal(err)
		}
		if restarts {
			p.stop()
			p = startProcess(t, db)
			s.url = p.url
		}
		if body, err := s.call(http.MethodPost, "/indexes/kept/documents", `[{"id":2}]`, nil); err == nil {
			t.Errorf("restarts %v: the disk is not full: %s", restarts, body)
		}
		if body, err := s.call(http.MethodDelete, "/indexes/deleted", "", nil); err != nil {
			t.Fatalf("restarts %v: %s %v", restarts, body, err)
		}
		if err := s.idle(time.Minute); err != nil {
			t.Fatalf("restarts %v: %v", restarts, err)
		}
		var list struct{ Total int }
		if body, err := s.call(http.MethodGet, "/indexes", "", &list); err != nil || list.Total != 1 {
			t.Errorf("restarts %v: %s %v", restarts, body, err)
		}
		if !strings.Contains(p.log.String(), "gets the space of the reserve file") {
			t.Errorf("restarts %v: the deletion did not need the reserve: %s", restarts, p.log.String())
		}
		p.stop()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// fillDisk appends to a file until its disk is full to the last block.
func fillDisk(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return nil
}
