// Command bench measures svc from outside: it starts a server on a directory and a port of its own, fills it, queries it, and writes
// the results into the tables of BENCHMARKS.md and the profiles of profiles/.
//
// Documents and queries are drawn from fixed seeds: two runs measure the same work.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Server      string            `placeholder:"PATH" help:"Server binary (default: built from ./cmd/svc)."`
	Data        string            `placeholder:"FILE" help:"Documents, .ndjson or .ndjson.gz (default: generated package descriptions)."`
	Documents   int               `default:"63666" placeholder:"N" help:"How many documents to generate."`
	Short       bool              `help:"Generate short texts in many languages instead: names and summaries. For --fresh, --measure first, --against and --cores."`
	Large       int               `placeholder:"N" help:"Ask first queries, and those beside updates, of so many generated documents, too: how costs grow with the collection."`
	Out         string            `placeholder:"FILE" help:"File whose tables are rewritten (default: print them)."`
	Profiles    string            `placeholder:"DIR" help:"Also capture CPU and heap profiles into this directory; with --measure, CPU profiles of what is asked beside updates and warm."`
	Vectors     string            `placeholder:"DIR" help:"Measure vectors instead: those of a directory with two .npy files (rows of float16 or float32; queries have \"quer\" in their name), or generated."`
	Recall      bool              `help:"Measure instead the recall and time of vector searches, with filters and without, on generated vectors of many kinds; prints a table. --vectors DIR adds a kind, --kinds selects some, and --keep keeps their graphs."`
	Rows        int               `default:"30000" placeholder:"N" help:"With --vectors generated: how many; of more than 100,000, or 1,000 dimensions, the graph is built on all cores, and not over HTTP."`
	Dimensions  int               `default:"384" placeholder:"N" help:"With --vectors generated: of how many dimensions."`
	Peers       string            `placeholder:"PYTHON" help:"With --vectors: measure hnswlib, faiss and usearch too, as far as this Python has them."`
	Peer        map[string]string `placeholder:"NAME=PROGRAM" mapsep:"none" help:"Measure instead, in one run with other servers of this API, first queries, warm ones, and those under updates; prints a table with ratios. May be given several times."`
	Against     string            `placeholder:"COMMIT" help:"Measure instead first queries beside the server of another commit of this repository, in a table and in the format of Go's benchmarks, for benchstat -col /server."`
	Counts      bool              `help:"With --against: count instructions under valgrind, which other work on the machine does not change."`
	Keep        string            `placeholder:"DIR" help:"With --peer: where the data directories are made, one a program, and found again by the next run. With --vectors: where graphs are, the same."`
	Measure     []string          `enum:"first,between,updates,warm,attribute,indexes,queue,lifecycle" placeholder:"PART,..." help:"With --peer, or alone: what to measure of first queries, those between two updates, those beside updates, and warm ones (default: these), of a new filterable attribute, of 10,000 indexes, of 200,000 tasks that are canceled and deleted, and of the life of a million documents."`
	Kinds       string            `placeholder:"TEXT" help:"With --peer: only the kinds of queries with this in their name. With --recall: only such kinds of vectors."`
	Kernels     bool              `hidden:"" help:"Measure the kernels of the running tier alone and print JSON."`
	Service     bool              `help:"Measure instead how a server with many keys, indexes and finished tasks starts and lists them; prints a table."`
	Texts       bool              `help:"Measure instead what crops of texts of 1 MB cost, which are those of the documents laid end to end."`
	Network     bool              `help:"Measure instead how three instances move documents and search together; prints tables."`
	Group       bool              `help:"Measure instead what a reader costs its writer, how far behind it is, and how fast it catches up; prints tables."`
	Kills       int               `placeholder:"N" help:"With --voters: kill the leader N times, and measure only failovers and transfers. Negative: measure none of them."`
	Steady      time.Duration     `placeholder:"DURATION" help:"With --voters: write and search at full speed for so long, without faults, and count how often the leader changes."`
	Directories []string          `placeholder:"DIR,..." help:"With --voters: where the data of the lone server and of the leader are made, of the second voter, and of the third, for example on disks of their own."`
	SyncDelay   time.Duration     `placeholder:"TIME" help:"With --voters: delay each fsync and fdatasync of a server by TIME (Linux). Use it with --directories in memory to simulate a disk for each voter."`
	Apart       bool              `help:"With --voters: pin the lone server and the first leader to the first processor, and the other voters to the last one (Linux)."`
	SyncTimes   string            `hidden:"" placeholder:"DIR" help:"Print how long a sync of a file there takes, as JSON, and end."`
	Publish     bool              `help:"Measure instead what a publication costs its server, how far behind it is, and how fast it is restored and followed; prints tables."`
	Voters      bool              `help:"Measure instead what three voters cost, and how long writes fail after the leader is killed; prints tables."`
	Cores       []int             `placeholder:"N,..." help:"Measure instead how indexing and searches grow with the server's processors, to which it is held (Linux); prints tables."`
	Members     bool              `help:"Measure instead first searches with aggregations, groups, score functions and filters on one object, alone and beside updates; prints a table."`
	Fresh       bool              `help:"Measure instead an import, first queries from its end on while segments are merged, and first queries after that; prints a table."`
	Engines     string            `placeholder:"PYTHON" help:"Measure instead svc beside search libraries: tantivy and Xapian as far as this Python has them, Lucene and bleve; prints a table."`
	Jars        string            `placeholder:"DIR" help:"With --engines: where the jars lucene-core and lucene-analysis-common are."`
	Libraries   []string          `enum:"tantivy,Xapian,Lucene,bleve" default:"tantivy,Xapian,Lucene,bleve" placeholder:"NAME,..." help:"With --engines: which of them."`
	Write       string            `placeholder:"FILE" help:"Write the documents to a file and end."`
	Quick       bool              `help:"A twentieth of the work: to see that everything runs, not to compare."`
}

func main() {
	if ok, err := delaysSyncs(os.Args[1:]); ok {
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
			os.Exit(1)
		}
		return
	}
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Measures svc and writes the tables of BENCHMARKS.md."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.Kills != 0 && !o.Voters {
		return errors.New("--kills needs --voters")
	}
	if o.Steady > 0 && (!o.Voters || o.Kills != 0) {
		return errors.New("--steady needs --voters, and goes without --kills")
	}
	if n := len(o.Directories); n > 0 && (!o.Voters || n != 3) {
		return errors.New("--directories needs --voters and three directories")
	}
	if o.SyncDelay > 0 && (!o.Voters || o.Steady > 0) {
		return errors.New("--sync-delay needs --voters, and goes without --steady")
	}
	if o.Apart && (!o.Voters || o.Steady > 0 || o.Kills > 0) {
		return errors.New("--apart needs --voters, and cannot be used with --steady or a positive --kills")
	}
	if o.SyncTimes != "" {
		l, err := syncTimes(o.SyncTimes)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(l)
	}
	if o.Write != "" && (o.Service || o.Vectors != "") {
		return errors.New("--write writes the documents of a data set: use it without --service and --vectors")
	}
	dir, err := os.MkdirTemp("", "svc-bench-")
	if err != nil {
		return fmt.Errorf("cannot make a working directory: %w", err)
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil && e != nil {
			err = fmt.Errorf("cannot remove the working directory: %w", e)
		}
	}()
	if o.Kernels {
		return json.NewEncoder(os.Stdout).Encode(measureKernels(o.Quick))
	}
	if o.Recall {
		return runVectorKinds(ctx, o, cmp.Or(o.Keep, dir))
	}
	data := &dataset{}
	if !o.Service && o.Vectors == "" {
		if data, err = o.load(); err != nil {
			return err
		}
	}
	if o.Write != "" {
		if err := os.WriteFile(o.Write, data.payload, 0o666); err != nil {
			return fmt.Errorf("cannot write the documents: %w", err)
		}
		return nil
	}
	binary := o.Server
	if binary == "" {
		binary = filepath.Join(dir, "svc")
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/svc")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("cannot build the server: %w", err)
		}
	}
	if o.Vectors != "" {
		f, err := runVectors(ctx, o, dir, binary)
		if err != nil {
			return err
		}
		return o.write(f.set.name, f.tables())
	}
	m := measurement{options: o, data: data, binary: binary, dir: filepath.Join(dir, "data")}
	if o.Service {
		f, err := m.runService(ctx)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(f.table())
		return err
	}
	if o.Texts {
		e := readEnvironment(o)
		f, err := m.runLongTexts(ctx)
		if err != nil {
			return err
		}
		return o.write("long texts of "+data.name, append(e.heading("Long texts: "+m.data.title, m.data), f.table()...))
	}
	if o.Engines != "" {
		e := readEnvironment(o)
		f, err := m.runEngines(ctx)
		if err != nil {
			return err
		}
		return o.write("engines, "+data.name, append(e.heading("Search libraries, "+data.title, data), f.tables()...))
	}
	if o.Members {
		e := readEnvironment(o)
		f, err := m.runMembers(ctx)
		if err != nil {
			return err
		}
		return o.write("members, "+data.name, append(e.heading("Members of searches, "+data.title, data), f.table()...))
	}
	if o.Fresh {
		f, err := m.runFresh(ctx)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(f.tables())
		return err
	}
	if len(o.Cores) > 0 {
		e := readEnvironment(o)
		g, err := m.runCores(ctx)
		if err != nil {
			return err
		}
		return o.write("cores, "+data.name, append(e.heading("More and more processors, "+data.title, data), g.tables()...))
	}
	if o.Against != "" {
		return m.runAgainst(ctx)
	}
	if len(o.Peer)+len(o.Measure) > 0 {
		c, err := m.compare(ctx)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(c.tables())
		return err
	}
	if o.Network {
		e := readEnvironment(o)
		f, err := m.runNetwork(ctx)
		if err != nil {
			return err
		}
		return o.write("network of "+data.name, append(e.heading("A network of three instances, "+data.title, data), f.table()...))
	}
	if o.Group {
		e := readEnvironment(o)
		list, err := m.runGroup(ctx)
		if err != nil {
			return err
		}
		var tables [][]byte
		for _, f := range list {
			tables = append(tables, f.table())
		}
		return o.write("group of "+data.name, append(e.heading("A writer and its reader, "+data.title, data), bytes.Join(tables, []byte("\n"))...))
	}
	if o.Publish {
		e := readEnvironment(o)
		f, err := m.runPublish(ctx)
		if err != nil {
			return err
		}
		return o.write("publication of "+data.name, append(e.heading("A publication, "+data.title, data), f.table()...))
	}
	if o.Steady > 0 {
		e := readEnvironment(o)
		f, err := m.runSteady(ctx)
		if err != nil {
			return err
		}
		return o.write("voters without faults, "+data.name, append(e.heading("Three voters without faults, "+data.title, data), f.table()...))
	}
	if o.Voters {
		e := readEnvironment(o)
		f, err := m.runVoters(ctx)
		if err != nil {
			return err
		}
		return o.write("voters, "+data.name, append(e.heading("Three voters, "+data.title, data), f.table(o)...))
	}
	r, err := m.run(ctx)
	if err != nil {
		return err
	}
	return o.write(data.name, r.tables())
}

// write prints tables, or puts them in their place in a file.
func (o *options) write(name string, tables []byte) error {
	if o.Out == "" {
		_, err := os.Stdout.Write(tables)
		return err
	}
	return rewrite(o.Out, name, tables)
}

// load reads the documents, or makes them.
func (o *options) load() (*dataset, error) {
	if o.Data == "" {
		n := o.Documents
		if o.Quick {
			n /= 20
		}
		if o.Short {
			return generateShort(n), nil
		}
		return generate(n), nil
	}
	d, err := readDataset(o.Data)
	if err != nil {
		return nil, err
	}
	if o.Quick {
		d = d.first(d.documents / 20)
	}
	return d, nil
}

// A dataset is documents, one a line.
type dataset struct {
	name      string // of its section in BENCHMARKS.md
	title     string
	documents int
	payload   []byte
	short     bool // as generateShort makes them
	objects   bool // as withObjects makes them
}

// settings returns the settings of the index with the documents.
func (d *dataset) settings() []byte {
	switch {
	case d.short:
		return []byte(shortSettings)
	case d.objects:
		return []byte(memberSettings)
	}
	return []byte(indexSettings)
}

func (d *dataset) first(n int) *dataset {
	rest := d.payload
	for range n {
		_, rest, _ = bytes.Cut(rest, []byte{'\n'})
	}
	return &dataset{name: d.name, title: "Start of " + d.title, documents: n, payload: d.payload[:len(d.payload)-len(rest)], short: d.short}
}

// A measurement is one run of everything.
type measurement struct {
	options
	data   *dataset
	binary string
	dir    string // of the server's data; made by the server

	masterKey   string   // of the server; "" for none
	arguments   []string // of the server, beside those that all have
	environment []string // of the server, beside this program's
	processors  int      // to which the server is held, 0 for all
	under       []string // the program that runs the server, with its arguments; nil: none
}

const index = "packages"

const indexSettings = `{"searchableAttributes":["name","summary","description","tags","maintainer"],` +
	`"filterableAttributes":["section","architecture","installedSize","tags"],"sortableAttributes":["installedSize","name"]}`

func (m *measurement) run(ctx context.Context) (*results, error) {
	r := &results{data: m.data, environment: readEnvironment(m.options)}
	if err := m.compareSizes(ctx, r); err != nil {
		return nil, err
	}
	s, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	r.startTime, r.startMemory = s.startTime, s.memory()

	if err := s.finish(s.patch("/indexes/"+index+"/settings", m.data.settings())); err != nil {
		return nil, err
	}
	if r.indexing, err = m.index(s); err != nil {
		return nil, err
	}
	progress("indexed %d documents in %.1f s", m.data.documents, r.indexing.seconds)
	if r.updates, err = m.update(s); err != nil {
		return nil, err
	}
	progress("updated single documents")
	kinds, err := drawQueries(m.data, queriesOfKind, false)
	if err != nil {
		return nil, err
	}
	figures, err := drawFigures(kinds)
	if err != nil {
		return nil, err
	}
	for i, k := range slices.Concat(kinds, figures) {
		if i == len(kinds) {
			if err := s.finish(s.patch("/indexes/"+index+"/settings", []byte("{"+scoreRules+"}"))); err != nil {
				return nil, err
			}
		}
		f, err := m.search(s, k)
		if err != nil {
			return nil, err
		}
		progress("%-32s p50 %.2f ms, %.0f QPS", k.name, f.p50, f.qps)
		r.searches = append(r.searches, f)
	}
	r.searchedMemory = s.memory()
	if m.Profiles != "" {
		if err := m.profile(s, r.indexing.seconds, kinds); err != nil {
			return nil, err
		}
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	again, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	defer again.kill()
	r.restartTime, r.restartMemory = again.startTime, again.memory()
	if err := again.stop(); err != nil {
		return nil, err
	}
	if r.beside, err = m.rules(ctx, kinds[0]); err != nil {
		return nil, err
	}
	progress("%d search rules that no search meets add %.0f µs", r.beside.rules, microseconds(r.beside.added))
	return r, nil
}

// index sends all documents in one request and waits until the task is finished.
func (m *measurement) index(s *server) (f indexing, err error) {
	s.resetPeak()
	cpu, began := s.cpuSeconds(), time.Now()
	if err := s.finish(s.post("/indexes/"+index+"/documents?primaryKey=id", "application/x-ndjson", m.data.payload)); err != nil {
		return f, err
	}
	f.seconds = time.Since(began).Seconds()
	f.cpuSeconds = s.cpuSeconds() - cpu
	f.peak = s.memory().peak
	f.disk, err = diskBytes(m.dir)
	return f, err
}

// update changes single documents, one after the other, each until its task is finished.
func (m *measurement) update(s *server) (latencies, error) {
	n := 200
	if m.Quick {
		n = 20
	}
	var l latencies
	for i := range n {
		id := i * m.data.documents / n
		body := fmt.Sprintf(`[{"id":%d,"summary":"changed for the %d. time by the benchmark"}]`, id, i)
		began := time.Now()
		if err := s.finish(s.put("/indexes/"+index+"/documents", []byte(body))); err != nil {
			return nil, err
		}
		l = append(l, time.Since(began))
	}
	return l, nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
