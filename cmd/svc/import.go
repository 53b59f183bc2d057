package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"svc/internal/client"
	"svc/internal/index"
	"svc/internal/vfs"
)

// importCommand sends documents to a running server.
type importCommand struct {
	Index string `arg:"" optional:"" help:"Index to import into (with --from, also the source index; default: all)."`
	File  string `arg:"" optional:"" help:"File of documents: JSON, NDJSON or CSV, plain or compressed with gzip or zstd (default: standard input)."`

	remoteOptions `embed:""`

	From       string `name:"from" placeholder:"URL" help:"Import documents and settings of this running server instead of a file."`
	FromKey    string `name:"from-key" placeholder:"KEY" help:"API key of that server."`
	PrimaryKey string `name:"primary-key" placeholder:"FIELD" help:"Field with the document ids, for a new index (default: inferred from the first documents)."`
	Format     string `name:"format" default:"auto" enum:"auto,json,ndjson,csv" placeholder:"FORMAT" help:"json, ndjson or csv (default: inferred from the file name or its first bytes)."`
	Delimiter  string `name:"csv-delimiter" placeholder:"CHAR" help:"Separator of CSV fields (default: a comma)."`
	Update     bool   `name:"update" help:"Keep fields of existing documents that the new ones lack."`
	BatchSize  size   `name:"batch-size" default:"24 MiB" placeholder:"SIZE" help:"Size of a request (default: ${default}); smaller if the server accepts less."`
	MaxTasks   int    `name:"max-tasks" default:"16" placeholder:"N" help:"Maximum number of requests waiting in the server's queue (default: ${default})."`
	State      string `name:"state" placeholder:"FILE" help:"File for the progress of the import (default: a file in the user's cache directory). It is removed at the end."`
	Restart    bool   `name:"restart" help:"Start over, even if a part was imported before."`
}

// importPatience is how long an import waits for a server. Fixing a full disk or a restart may take that long.
const importPatience = 15 * time.Minute

// Run imports, and says how far it is.
func (c *importCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	to.Patience = importPatience
	switch {
	case c.From != "" && c.File != "":
		return errors.New("--from and a file exclude each other")
	case c.From != "":
		err = c.fromServer(ctx, p, to)
	case c.Index == "":
		return errors.New("name the index to import into: svc import INDEX [FILE]")
	default:
		err = c.fromFile(ctx, p, to)
	}
	if ctx.Err() != nil {
		return errors.New("stopped: run the same command to resume")
	}
	return err
}

// fromFile imports a file or standard input. Only a file has a checkpoint. Its name, size and time identify the file.
func (c *importCommand) fromFile(ctx context.Context, p program, to *client.Client) error {
	file, format := os.Stdin, client.Format(c.Format)
	var at *checkpoints
	total := int64(0)
	if format == "auto" {
		format = client.FormatOf(c.File)
	}
	if c.File != "" && c.File != "-" {
		var err error
		if file, err = os.Open(c.File); err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		total = info.Size()
		whole, err := filepath.Abs(c.File)
		if err != nil {
			return err
		}
		if at, err = c.checkpoints(p, to, fmt.Sprintf("%s %d %d", whole, info.Size(), info.ModTime().UnixNano()), c.Index); err != nil {
			return err
		}
	}
	in := &countingReader{from: file}
	documents, err := client.Open(in, format, c.Delimiter)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", c.File, err)
	}
	share := func(client.Progress) float64 {
		if total == 0 {
			return 0
		}
		return float64(in.n.Load()) / float64(total)
	}
	if err = c.run(ctx, p, to, c.Index, c.PrimaryKey, documents, at, share); errors.Is(err, client.ErrNoDocuments) {
		name := c.File
		if at == nil {
			name = "standard input"
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// countingReader counts the bytes that are read.
type countingReader struct {
	from io.Reader
	n    atomic.Int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.n.Add(int64(n))
	return n, err
}

// fromServer imports one index of another server, or all.
func (c *importCommand) fromServer(ctx context.Context, p program, to *client.Client) error {
	from, err := client.New(c.From, c.FromKey, false)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	from.Waiting, from.Patience = to.Waiting, to.Patience
	names := []string{c.Index}
	if c.Index == "" {
		if names, err = indexNames(ctx, from); err != nil {
			return err
		}
	}
	for _, index := range names {
		if err := c.fromIndex(ctx, p, from, to, index); err != nil {
			return fmt.Errorf("index %s: %w", index, err)
		}
	}
	return nil
}

// indexNames returns the names of all indexes of a server. It is an error if the server lists an index twice, for example because it
// ignores the offset, or a name that no index can have: the name would reach the terminal and the other server.
func indexNames(ctx context.Context, c *client.Client) (names []string, err error) {
	seen := map[string]bool{}
	for {
		var page struct {
			Results []struct {
				UID string `json:"uid"`
			}
			Total  int
			Offset *int
		}
		if err := c.Call(ctx, http.MethodGet, fmt.Sprintf("/indexes?limit=1000&offset=%d", len(names)), nil, &page); err != nil {
			return nil, err
		}
		if len(page.Results) == 0 {
			return names, nil
		}
		if page.Offset != nil && *page.Offset != len(names) {
			return nil, fmt.Errorf("%s lists indexes from %d, but the offset was %d: it ignores the offset", c.Host(), *page.Offset, len(names))
		}
		if n := len(names) + len(page.Results); n > page.Total {
			return nil, fmt.Errorf("%s lists %d indexes of %d: it ignores the offset", c.Host(), n, page.Total)
		}
		for _, ix := range page.Results {
			switch {
			case !index.ValidUID(ix.UID):
				return nil, fmt.Errorf("%s lists an index named %.100q, which is not a valid index name", c.Host(), ix.UID)
			case seen[ix.UID]:
				return nil, fmt.Errorf("%s lists the index %s twice: it ignores the offset", c.Host(), ix.UID)
			}
			seen[ix.UID] = true
			names = append(names, ix.UID)
		}
	}
}

// fromIndex copies an index of another server: its settings, then its documents. Keys of embedders that the
// server hides are left out.
func (c *importCommand) fromIndex(ctx context.Context, p program, from, to *client.Client, index string) error {
	at, err := c.checkpoints(p, to, c.From, index)
	if err != nil {
		return err
	}
	path := "/indexes/" + url.PathEscape(index)
	var source struct{ PrimaryKey string }
	if err := from.Call(ctx, http.MethodGet, path, nil, &source); err != nil {
		return err
	}
	var stats struct{ NumberOfDocuments int }
	if err := from.Call(ctx, http.MethodGet, path+"/stats", nil, &stats); err != nil {
		return err
	}
	var settings map[string]any
	if err := from.Call(ctx, http.MethodGet, path+"/settings", nil, &settings); err != nil {
		return err
	}
	for _, name := range leaveOutHiddenKeys(settings) {
		fmt.Fprintf(p.err, "%s: the embedder %s has a key that the server does not reveal: set the key to embed documents\n", index, name)
	}
	if _, err := to.Do(ctx, http.MethodPatch, path+"/settings", settings); err != nil {
		return fmt.Errorf("its settings: %w", err)
	}
	share := func(now client.Progress) float64 { return float64(now.Read) / float64(max(stats.NumberOfDocuments, 1)) }
	if err = c.run(ctx, p, to, index, source.PrimaryKey, from.Documents(index), at, share); errors.Is(err, client.ErrNoDocuments) {
		return nil // an empty index was copied
	}
	return err
}

// leaveOutHiddenKeys takes the keys of embedders out of settings, which show a part of them alone, and names those embedders.
func leaveOutHiddenKeys(settings map[string]any) (names []string) {
	embedders, _ := settings["embedders"].(map[string]any)
	for name, e := range embedders {
		if e, ok := e.(map[string]any); ok && e["apiKey"] != nil {
			delete(e, "apiKey")
			names = append(names, name)
		}
	}
	return names
}

// run imports documents from where the checkpoint says, if the server still knows the tasks that it names.
func (c *importCommand) run(ctx context.Context, p program, to *client.Client, index, primaryKey string, documents *client.Documents, at *checkpoints, share func(client.Progress) float64) error {
	o := client.Import{
		Index: index, PrimaryKey: primaryKey, Delimiter: c.Delimiter, Update: c.Update,
		BatchBytes: int(max(c.BatchSize, 1)), MaxTasks: c.MaxTasks,
	}
	var begin client.Checkpoint
	if at != nil {
		o.Save = at.save
		begin = at.load()
		known, err := to.Known(ctx, index, begin)
		if err != nil {
			return err
		}
		if !known || c.Restart {
			begin = client.Checkpoint{}
		}
		if begin.Sent > 0 {
			fmt.Fprintf(p.err, "%s: resuming after %d documents\n", index, begin.Sent)
		}
	}
	display := newProgress(p.err, index, begin.Sent, share)
	o.Progress = display.tell
	last, err := o.Run(ctx, to, documents, begin)
	if errors.Is(err, client.ErrNoDocuments) {
		return err
	}
	display.end(last, err)
	if err != nil {
		return err
	}
	if at != nil {
		return at.remove()
	}
	return nil
}

// checkpoints keeps how far an import is in a file.
type checkpoints struct{ file, source string }

// checkpoints returns the checkpoints of an import from a source into an index.
func (c *importCommand) checkpoints(p program, to *client.Client, source, index string) (*checkpoints, error) {
	hash := sha256.Sum256([]byte(strings.Join([]string{source, to.Host(), index, c.PrimaryKey, c.Format, c.Delimiter, fmt.Sprint(c.Update)}, "\n")))
	sum := hex.EncodeToString(hash[:16])
	if c.State != "" {
		return &checkpoints{c.State, sum}, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		fmt.Fprintf(p.err, "the import cannot resume after a stop (%v): name a file with --state\n", err)
		return nil, nil
	}
	dir = filepath.Join(dir, "svc")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot store the progress of the import: %w; name a file with --state", err)
	}
	return &checkpoints{filepath.Join(dir, "import-"+sum+".json"), sum}, nil
}

// load returns the last checkpoint, or that of the beginning. The checkpoint of another import does not count: a user may name the same
// file for several.
func (s *checkpoints) load() (at client.Checkpoint) {
	b, err := os.ReadFile(s.file)
	if err != nil || json.Unmarshal(b, &at) != nil || at.Source != "" && at.Source != s.source {
		return client.Checkpoint{}
	}
	return at
}

func (s *checkpoints) save(at client.Checkpoint) error {
	at.Source = s.source
	b, err := json.Marshal(at)
	if err == nil {
		_, err = vfs.Replace(vfs.OS, s.file, b)
	}
	return err
}

func (s *checkpoints) remove() error {
	if err := os.Remove(s.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// progress prints the progress of an import: on a terminal as one line that changes, else as a line now and then.
type progress struct {
	out      io.Writer
	index    string
	share    func(client.Progress) float64 // of all documents, those read; 0: not known
	begin    time.Time
	before   int // documents that were imported before
	terminal bool
	every    time.Duration
	printed  time.Time
}

func newProgress(out io.Writer, index string, before int, share func(client.Progress) float64) *progress {
	d := &progress{out: out, index: index, share: share, begin: time.Now(), before: before, every: 5 * time.Second}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			d.terminal, d.every = true, 200*time.Millisecond
		}
	}
	d.printed = d.begin
	return d
}

func (d *progress) tell(now client.Progress) {
	if time.Since(d.printed) < d.every {
		return
	}
	d.printed = time.Now()
	line := d.line(now, time.Since(d.begin))
	if d.terminal {
		fmt.Fprintf(d.out, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(d.out, line)
}

func (d *progress) line(now client.Progress, took time.Duration) string {
	line := fmt.Sprintf("%s: %d documents sent, %d searchable, %.0f/s, %d tasks waiting", d.index, now.Sent, now.Done, rate(now.Sent-d.before, took), now.Waiting)
	// The estimate counts searchable documents, because the server continues to index after the last document is sent.
	share := d.share(now)
	if share <= 0 || now.Read <= 0 || now.Done <= d.before {
		return line
	}
	all := float64(now.Read) / min(share, 1)
	left := time.Duration(float64(took) * max(all-float64(now.Done), 0) / float64(now.Done-d.before))
	return line + fmt.Sprintf(", %d%%, %v left", int(min(100*float64(now.Done)/all, 100)), left.Round(time.Second))
}

func (d *progress) end(last client.Progress, err error) {
	if d.terminal {
		fmt.Fprint(d.out, "\r\x1b[K")
	}
	took := time.Since(d.begin)
	if err == nil {
		fmt.Fprintf(d.out, "%s: %s in %v, %.0f/s\n", d.index, counted(last.Done-d.before, "document"), took.Round(10*time.Millisecond), rate(last.Done-d.before, took))
		return
	}
	fmt.Fprintf(d.out, "%s: %d documents sent, %d searchable\n", d.index, last.Sent, last.Done)
}

func rate(n int, took time.Duration) float64 { return float64(n) / max(took.Seconds(), 1e-3) }
