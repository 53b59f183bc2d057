package main

import (
	"context"
	"crypto/tls"
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
	"svc/internal/analytics"
	"svc/internal/audit"
	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/dump"
	"svc/internal/index"
	"svc/internal/logs"
	"svc/internal/network"
	"svc/internal/rule"
	"svc/internal/scroll"
	"svc/internal/suggest"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
	"svc/segment"
)

// serveCommand runs the server.
type serveCommand struct {
	options `embed:""`
}

// serveName is the command's name.
const serveName = "serve"

// stopTime is how long running requests may go on after a signal. With the time that webhooks get afterwards it is less than the
// 10 s that supervisors of containers wait before they kill.
const stopTime = 5 * time.Second

// Run serves until a signal.
func (c *serveCommand) Run(p program) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return c.serve(ctx, p, nil)
}

// serve serves until ctx is done. ready, when not nil, is told the address.
func (o *options) serve(ctx context.Context, p program, ready func(net.Addr)) (err error) {
	if err := o.checkMasterKey(); err != nil {
		return err
	}
	if err := p.replaceGermanWords(); err != nil {
		return err
	}
	secure, err := o.TLS.config()
	if err != nil {
		return err
	}
	o.DBPath, o.DumpDir = filepath.ToSlash(o.DBPath), filepath.ToSlash(o.DumpDir)
	if strings.HasPrefix(o.DBPath, "//") && runtime.GOOS == "windows" {
		return fmt.Errorf("%s is on another machine, but mapped files must be on a local disk. Choose another directory with --db-path", o.DBPath)
	}
	// Before there is a data directory: where another program listens, none is begun.
	listener, err := net.Listen("tcp", o.HTTPAddr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w. Choose another address with --http-addr", o.HTTPAddr, err)
	}
	defer listener.Close() // again, after the server did
	address := "http://" + listener.Addr().String()
	if secure != nil {
		listener = tls.NewListener(plaintextListener{listener}, secure)
		address = "https://" + listener.Addr().String()
	}
	heard := logs.New(p.err, logs.AtLeast(o.LogLevel.Level), o.LogsMode.mode())
	log := heard.Logger()
	if o.Group.reads() {
		return o.follow(ctx, p, listener, address, log, ready)
	}
	place := dump.PlaceIn(o.DBPath)
	memory := keepMemoryLow()
	defer memory.Close()
	tracer, err := o.tracer(listener.Addr().String(), log)
	if err != nil {
		return err
	}
	defer closing(&err, "the traces", tracer)
	limits := o.limits()
	limits.Logger, limits.Now, limits.Tracer = log, time.Now, tracer
	limits.FS = vfs.OS
	limits.Embedders = o.pool(p, log)
	defer closing(&err, "the embedders", limits.Embedders)
	from, fill, err := o.Imports.plan(ctx, o.DBPath, place, limits)
	if err != nil {
		return err
	}
	lock, err := openDataDir(vfs.OS, o.DBPath, from, fill)
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	writer, err := o.openWriter(log)
	if err != nil {
		return err
	}
	defer closing(&err, "the group", writer)
	files := writer.fs()
	limits.FS = files
	segment.ReadAheadOf(memoryBytes())
	catalog, err := index.OpenCatalog(place.Indexes, limits)
	if err != nil {
		return err
	}
	defer closing(&err, "the indexes", catalog)
	p.gc.heed(catalog.Searches(), limits.MaxIndexingMemory)
	memory.heed(catalog.Searches())
	launched, err := o.launchedWebhook()
	if err != nil {
		return err
	}
	hooks, err := webhook.Open(files, place.Webhooks, launched)
	if err != nil {
		return err
	}
	sender := webhook.NewSender(webhook.Options{FS: files, File: place.Cursors, Store: hooks, Policy: o.AllowedNetworks, Log: log})
	keys, err := auth.Open(auth.Options{FS: files, File: place.Keys, MasterKey: o.MasterKey, Now: time.Now, Logger: log})
	if err != nil {
		return err
	}
	defer closing(&err, "the API keys", keys)
	features, err := fastapi.OpenFeatures(files, place.Features, o.launchedFeatures()...)
	if err != nil {
		return err
	}
	rules, err := rule.Open(rule.Options{FS: files, File: place.Rules, Kept: place.KeptRules(), Bounds: o.Rules.bounds(), Objects: o.newest(), Log: log})
	if err != nil {
		return err
	}
	session, err := p.session()
	if err != nil {
		return err
	}
	node, err := network.Open(network.Options{
		FS: files, File: place.Network, Work: place.Work, Catalog: catalog, Logger: log, Allowed: o.AllowedNetworks, Now: time.Now, SearchTimeout: time.Duration(o.RemoteSearchTimeout) * time.Second,
		RequestTimeout: time.Duration(o.ProxyRequestTimeout) * time.Second, AnswerTimeout: time.Duration(o.ProxyBackoffTimeout) * time.Second,
		OutboxLimit: int64(o.NetworkOutboxLimit),
	})
	if err != nil {
		return err
	}
	chats, err := chat.Open(files, place.Chats)
	if err != nil {
		return err
	}
	if err := chats.Adopt(place.KeptChats(), log); err != nil {
		return err
	}
	dumps, snapshots, err := o.copies(session)
	if err != nil {
		return err
	}
	maker := dump.New(dump.Options{
		FS: vfs.OS, Place: place, Version: apiVersion, Program: svcVersion, Logger: log, Now: time.Now,
		Catalog: catalog, Keys: keys, Webhooks: hooks, Features: features.JSON, Network: node.DumpJSON, Chats: chats, Rules: rules.Dump,
		DumpDir:         o.DumpDir,
		SnapshotFile:    o.Snapshots.file(o.DBPath),
		SnapshotVersion: versionContent(), CompactInSnapshot: !o.Snapshots.NoCompaction, Bucket: o.Snapshots.bucket(session),
		Allowed: o.AllowedNetworks, PayloadLimit: int64(o.HTTPPayloadSizeLimit),
	})
	executors := maker.Executors()
	executors[task.NetworkTopologyChange] = node.Executor
	executors[task.RuleUpdate], executors[task.RuleClear] = rules.Executor, rules.Executor
	queue, err := task.Open(task.Options{
		FS: files, Dir: place.Tasks, Catalog: catalog, Logger: log, Now: time.Now, Tracer: tracer,
		MaxBatchTasks: o.batchTasks(), MaxBatchBytes: o.batchBytes(limits.MaxIndexingMemory), MaxTasks: o.maxTasks(), Concurrent: o.ConcurrentIndexes,
		OnBatch: node.Ended, OnEnd: sender.Deliver, OnForward: node.Forwarded, Owned: node.Owned, Executors: executors,
	})
	if err != nil {
		return err
	}
	defer closing(&err, "the task queue", queue)
	defer sender.Close() // it reads the queue
	if err := sender.Start(queue); err != nil {
		return err
	}
	node.Start(queue)
	defer closing(&err, "the network", node)
	if err := noteStores(vfs.OS, o.DBPath); err != nil {
		return err
	}
	defer closing(&err, "the schedule of snapshots", o.Snapshots.Schedule.start(queue, log))
	providers := chat.NewProviders(o.AllowedNetworks)
	defer closing(&err, "the connections to chat providers", providers)
	reranker, err := o.reranker()
	if err != nil {
		return err
	}
	if reranker != nil {
		defer closing(&err, "the personalization", reranker)
	}
	var changes *audit.Log
	if o.AuditLog != "" {
		if changes, err = audit.Open(vfs.OS, o.AuditLog); err != nil {
			return err
		}
		defer closing(&err, "the audit log", changes)
	}
	var searches *analytics.Recorder
	if o.Analytics > 0 {
		searches, err = analytics.Open(analytics.Options{FS: vfs.OS, Dir: place.Analytics, Retention: time.Duration(o.Analytics), Now: time.Now, Log: log})
		if err != nil {
			return err
		}
		defer closing(&err, "the analytics", searches)
	}
	suggestions := suggest.New(suggest.Options{Catalog: catalog, Queue: queue, Analytics: searches, Spread: func() bool { return node.Network().Led() }, Log: log})
	suggestions.Start()
	defer closing(&err, "the suggestions", suggestions)
	version := buildVersion()
	version.Package = o.speaks()
	server := fastapi.New(fastapi.Options{
		Catalog: catalog, Queue: queue, Keys: keys, Webhooks: hooks, Network: node, Chats: chats, Providers: providers, Rules: rules, Reranker: reranker, Audit: changes, Analytics: searches, Features: features, Logger: log, Log: heard,
		PayloadLimit: int64(o.HTTPPayloadSizeLimit), Production: o.Env == "production", NoDashboard: o.NoDashboard, Demo: o.Demo, Pprof: o.Pprof,
		Version: version, Newest: o.newest(), Replication: o.Replication, MetricsPrefix: o.MetricsPrefix, SlowSearch: time.Duration(o.SlowSearchMs) * time.Millisecond, Tracer: tracer,
		Searches: o.SearchesPerCore * runtime.GOMAXPROCS(0), SearchQueue: o.SearchQueueSize,
		DropSearchAfter: time.Duration(o.DropSearchAfter) * time.Second,
		JSONLimit:       int64(o.Costs.JSONSize), AnswerLimit: int64(o.Costs.AnswerSize), Memory: o.Costs.memory(),
		Connections: o.Costs.connections(), MultiQueries: o.Costs.MultiQueries,
		DumpDir: dumps, SnapshotFile: snapshots, Member: writer.member(),
		CursorSecret: scroll.Secret(o.MasterKey),
	})
	defer writer.hang() // before the stores that readers copy are closed
	if err := writer.serve(o.DBPath, queue, keys, server); err != nil {
		return err
	}
	awaitGraphs(ctx)
	o.greet(p.err, log, address)
	if ready != nil {
		ready(listener.Addr())
	}
	p.tell(log, "READY=1\nSTATUS=serving on "+address)

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-writer.fenced():
		err = errors.New("another member of the group has become its writer: this one stops. Its data directory is refused from now on")
	case <-ctx.Done():
	}
	p.tell(log, "STOPPING=1")
	log.Info("stopping: in-flight requests finish, the running batch runs again at the next start")
	deadline, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		log.Warn("some requests were aborted", "error", err)
	}
	return err
}

// graphTime is how long a start waits at most until what walks for vectors read is in memory.
const graphTime = 250 * time.Millisecond

// awaitGraphs waits for that: a search that comes before would wait for the disk, a page at a time, and all that come with it.
func awaitGraphs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, graphTime)
	defer cancel()
	segment.AwaitReadAhead(ctx)
}

// closing closes c at the end of a function that returns *err.
func closing(err *error, what string, c io.Closer) {
	if e := c.Close(); e != nil {
		*err = errors.Join(*err, fmt.Errorf("cannot close %s: %w", what, e))
	}
}

// greet says where svc is and how it stands: to people, or as one line of the JSON log.
func (o *options) greet(w io.Writer, log *slog.Logger, address string) {
	v := buildVersion()
	v.Package = o.speaks()
	if o.LogsMode.json {
		log.Info("svc is ready", "address", address, "data", o.DBPath, "version", v.Program, "speaks", v.Package, "commit", v.Commit, "env", o.Env)
	} else {
		fmt.Fprintf(w, "svc is ready\n  address  %s\n  data     %s\n  version  %s\n", address, o.DBPath, versionText(v))
	}
	switch {
	case o.MasterKey == "":
		log.Warn("there is no master key: every client that reaches the address has full access", "suggestion", "--master-key="+suggestKey())
	case len(o.MasterKey) < masterKeyBytes:
		log.Warn("the master key is short and may be guessed", "suggestion", "--master-key="+suggestKey())
	}
}
