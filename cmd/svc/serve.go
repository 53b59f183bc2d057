package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"svc/fastapi"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
)

// serveCommand is the server with its options.
type serveCommand struct {
	DBPath               string   `name:"db-path" default:"./data.svc" placeholder:"DIR" help:"Directory of all data."`
	HTTPAddr             string   `name:"http-addr" default:"localhost:7700" placeholder:"HOST:PORT" help:"Address to listen on."`
	MasterKey            string   `name:"master-key" placeholder:"KEY" help:"Key that opens everything. Without one, everything is open to everyone."`
	Env                  string   `name:"env" default:"development" enum:"development,production" help:"development or production; the latter insists on a master key and has no page on /."`
	HTTPPayloadSizeLimit size     `name:"http-payload-size-limit" default:"100 MB" placeholder:"SIZE" help:"Largest request body, decompressed."`
	MaxIndexingMemory    size     `name:"max-indexing-memory" default:"0" placeholder:"SIZE" help:"Memory for indexing (default: two thirds of the machine's)."`
	MaxIndexingThreads   threads  `name:"max-indexing-threads" default:"" placeholder:"N" help:"Threads for indexing, or unlimited (default: half of the cores)."`
	DumpDir              string   `name:"dump-dir" default:"dumps/" placeholder:"DIR" help:"Directory of dumps."`
	SnapshotDir          string   `name:"snapshot-dir" default:"snapshots/" placeholder:"DIR" help:"Directory of snapshots."`
	LogLevel             logLevel `name:"log-level" default:"INFO" placeholder:"LEVEL" help:"OFF, ERROR, WARN, INFO, DEBUG or TRACE."`
	NoAnalytics          bool     `name:"no-analytics" help:"Accepted for the sake of old command lines: there are no analytics."`
	ConfigFilePath       string   `name:"config-file-path" placeholder:"FILE" help:"TOML file with options (default: ./config.toml if it is there)."`
	Pprof                bool     `name:"pprof" help:"Serve profiles under /debug/pprof."`

	ContainsFilter  bool     `name:"experimental-contains-filter" help:"Allow CONTAINS in filters."`
	EnableMetrics   bool     `name:"experimental-enable-metrics" help:"Switch the feature metrics on."`
	EnableLogsRoute bool     `name:"experimental-enable-logs-route" help:"Switch the feature logsRoute on."`
	SearchQueueSize int      `name:"experimental-search-queue-size" default:"1000" placeholder:"N" help:"Searches that may wait for their turn."`
	DropSearchAfter int      `name:"experimental-drop-search-after" default:"60" placeholder:"SECONDS" help:"How long a search may wait for its turn."`
	SearchesPerCore int      `name:"experimental-nb-searches-per-core" default:"4" placeholder:"N" help:"Searches that run at once, for each core."`
	LogsMode        logsMode `name:"experimental-logs-mode" default:"HUMAN" placeholder:"MODE" help:"HUMAN or JSON."`
	BatchedTasks    *int     `name:"experimental-max-number-of-batched-tasks" placeholder:"N" help:"Tasks in a batch, at most; 0 stops processing (default: unlimited)."`
	BatchedSize     size     `name:"experimental-limit-batched-tasks-total-size" default:"0" placeholder:"SIZE" help:"Payload bytes in a batch, at most (default: half of the indexing memory, at most 10 GiB)."`
}

// masterKeyBytes is the length from which on a master key is not easily guessed.
const masterKeyBytes = 16

// stopTime is how long running requests may go on after a signal.
const stopTime = 30 * time.Second

// Validate checks what a single option cannot say.
func (c *serveCommand) Validate() error {
	switch {
	case c.SearchQueueSize < 0:
		return errors.New("--experimental-search-queue-size must be 0 or more")
	case c.DropSearchAfter < 1:
		return errors.New("--experimental-drop-search-after must be 1 or more")
	case c.SearchesPerCore < 1:
		return errors.New("--experimental-nb-searches-per-core must be 1 or more")
	case c.BatchedTasks != nil && *c.BatchedTasks < 0:
		return errors.New("--experimental-max-number-of-batched-tasks must be 0 or more")
	case c.HTTPPayloadSizeLimit == 0:
		return errors.New("--http-payload-size-limit must be more than 0")
	}
	return nil
}

// Run serves until a signal.
func (c *serveCommand) Run(p program) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return c.serve(ctx, p, nil)
}

// serve serves until ctx is done. ready, when not nil, is told the address.
func (c *serveCommand) serve(ctx context.Context, p program, ready func(net.Addr)) (err error) {
	if err := c.checkMasterKey(); err != nil {
		return err
	}
	log := newLogger(p.err, c.LogLevel.Level, c.LogsMode)
	lock, err := openDataDir(vfs.OS, c.DBPath)
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	listener, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.HTTPAddr, err)
	}
	defer listener.Close() // again, after the server did

	o := c.limits()
	o.FS, o.Logger, o.Now = vfs.OS, log, time.Now
	catalog, err := index.OpenCatalog(filepath.Join(c.DBPath, indexesDir), o)
	if err != nil {
		return err
	}
	defer closing(&err, "the indexes", catalog)
	queue, err := task.Open(task.Options{
		Dir: filepath.Join(c.DBPath, tasksDir), Catalog: catalog, Logger: log, Now: time.Now,
		MaxBatchTasks: c.batchTasks(), MaxBatchBytes: c.batchBytes(o.MaxIndexingMemory),
	})
	if err != nil {
		return err
	}
	defer closing(&err, "the task queue", queue)
	features, err := fastapi.OpenFeatures(vfs.OS, filepath.Join(c.DBPath, featuresFile), c.launchedFeatures()...)
	if err != nil {
		return err
	}
	server := fastapi.New(fastapi.Options{
		Catalog: catalog, Queue: queue, Features: features, Logger: log,
		PayloadLimit: int64(c.HTTPPayloadSizeLimit), MasterKey: c.MasterKey, Production: c.Env == "production", Pprof: c.Pprof,
		Version:  buildVersion(),
		Searches: c.SearchesPerCore * runtime.GOMAXPROCS(0), SearchQueue: c.SearchQueueSize,
		DropSearchAfter: time.Duration(c.DropSearchAfter) * time.Second,
	})
	c.greet(p.err, log, listener.Addr())
	if ready != nil {
		ready(listener.Addr())
	}

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping: running requests end, the running batch goes on at the next start")
	deadline, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		log.Warn("some requests were cut off", "error", err)
	}
	return nil
}

// closing closes c at the end of a function that returns *err.
func closing(err *error, what string, c io.Closer) {
	if e := c.Close(); e != nil {
		*err = errors.Join(*err, fmt.Errorf("cannot close %s: %w", what, e))
	}
}

func (c *serveCommand) checkMasterKey() error {
	if c.Env == "production" && len(c.MasterKey) < masterKeyBytes {
		return fmt.Errorf("in production a master key of at least %d bytes is needed: give one with --master-key or SVC_MASTER_KEY, for example this fresh one: %s", masterKeyBytes, suggestKey())
	}
	return nil
}

// suggestKey makes a key that nobody guesses.
func suggestKey() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// limits fills in what the machine decides.
func (c *serveCommand) limits() index.Options {
	o := index.Options{MaxIndexingMemory: int64(c.MaxIndexingMemory), MaxIndexingThreads: int(c.MaxIndexingThreads)}
	if o.MaxIndexingMemory == 0 {
		o.MaxIndexingMemory = memoryBytes() / 3 * 2
	}
	if o.MaxIndexingThreads == 0 {
		o.MaxIndexingThreads = max(runtime.NumCPU()/2, 1)
	}
	return o
}

func (c *serveCommand) batchTasks() int {
	if c.BatchedTasks == nil {
		return -1
	}
	return *c.BatchedTasks
}

func (c *serveCommand) batchBytes(indexingMemory int64) int64 {
	if c.BatchedSize > 0 {
		return int64(c.BatchedSize)
	}
	return min(indexingMemory/2, 10<<30)
}

func (c *serveCommand) launchedFeatures() []string {
	var names []string
	for name, on := range map[string]bool{"containsFilter": c.ContainsFilter, "metrics": c.EnableMetrics, "logsRoute": c.EnableLogsRoute} {
		if on {
			names = append(names, name)
		}
	}
	return names
}

// greet says where svc is and how it stands: to people, or as one line of the JSON log.
func (c *serveCommand) greet(w io.Writer, log *slog.Logger, addr net.Addr) {
	v := buildVersion()
	if c.LogsMode.json {
		log.Info("svc is ready", "address", addr.String(), "data", c.DBPath, "version", v.Package, "commit", v.Commit, "env", c.Env)
	} else {
		fmt.Fprintf(w, "svc is ready\n  address  http://%s\n  data     %s\n  version  %s (commit %s)\n", addr, c.DBPath, v.Package, v.Commit)
	}
	switch {
	case c.MasterKey == "":
		log.Warn("there is no master key: whoever reaches the address can read and change everything", "suggestion", "--master-key="+suggestKey())
	case len(c.MasterKey) < masterKeyBytes:
		log.Warn("the master key is short and may be guessed", "suggestion", "--master-key="+suggestKey())
	}
}

// unknownName is the error of a name that is none of those known.
func unknownName(name string, known ...string) error {
	return fmt.Errorf("%q is not known here: write %s or %s", name, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}
