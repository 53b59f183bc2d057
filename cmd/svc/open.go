package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
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
	"svc/internal/trace"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// base is the part of a server that lives as long as the process, independent of its data.
type base struct {
	p      program
	log    *slog.Logger
	heard  *logs.Log
	memory *memoryKeeper
	tracer *trace.Tracer
	limits index.Options
	damage damageWatch // of a reader
}

// data is the open content of a data directory. Its stores lead, as those of a writer, or they follow the writer of a group.
type data struct {
	opened
	catalog  *index.Catalog
	queue    *task.Queue
	keys     *auth.Keys
	features *fastapi.Features
	hooks    *webhook.Store
	rules    *rule.Store
	chats    *chat.Store
	node     *network.Node
	sender   *webhook.Sender
	place    dump.Place
	serving  fastapi.Options // for the server of these data
}

// opened are closed in the opposite order to that in which they were added.
type opened []namedCloser

type namedCloser struct {
	what string
	io.Closer
}

func (o *opened) add(what string, x io.Closer) { *o = append(*o, namedCloser{what, x}) }

// Close closes all of them.
func (o opened) Close() (err error) {
	for _, x := range slices.Backward(o) {
		if e := x.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("cannot close %s: %w", x.what, e))
		}
	}
	return err
}

// closerFunc is a function that closes something.
type closerFunc func()

func (f closerFunc) Close() error {
	f()
	return nil
}

// reserveBytes is the room on the disk that is held for deletions. Deleting an index writes a few blocks to the queue, its journal and the
// catalog; a catalog of 64 KiB and more has a base, and only what differs is written.
const reserveBytes = 1 << 20

// open opens the stores of the data directory, whose changes go through a file system. lead starts the tasks of a writer.
func (o *options) open(b *base, files vfs.FS, follow bool) (_ *data, err error) {
	d := &data{place: dump.PlaceIn(o.DBPath)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	log, place, limits := b.log, d.place, b.limits
	limits.FS, limits.Follow = files, follow
	if d.catalog, err = index.OpenCatalog(place.Indexes, limits); err != nil {
		return nil, err
	}
	d.add("the indexes", d.catalog)
	b.p.gc.heed(d.catalog.Searches(), limits.MaxIndexingMemory)
	b.memory.heed(d.catalog.Searches())
	launched, err := o.launchedWebhook()
	if err != nil {
		return nil, err
	}
	if d.hooks, err = webhook.Open(files, place.Webhooks, launched); err != nil {
		return nil, err
	}
	d.sender = webhook.NewSender(webhook.Options{FS: files, File: place.Cursors, Store: d.hooks, Policy: o.AllowedNetworks, Log: log})
	if d.keys, err = auth.Open(auth.Options{FS: files, File: place.Keys, MasterKey: o.MasterKey, Now: time.Now, Logger: log, Follow: follow}); err != nil {
		return nil, err
	}
	d.add("the API keys", d.keys)
	if d.features, err = fastapi.OpenFeatures(files, place.Features, o.launchedFeatures()...); err != nil {
		return nil, err
	}
	kept := place.KeptRules()
	if follow { // the writer takes them in
		kept = ""
	}
	if d.rules, err = rule.Open(rule.Options{FS: files, File: place.Rules, Kept: kept, Bounds: o.Rules.bounds(), Objects: o.newest(), Log: log}); err != nil {
		return nil, err
	}
	session, err := b.p.session()
	if err != nil {
		return nil, err
	}
	d.node, err = network.Open(network.Options{
		FS: files, File: place.Network, Work: place.Work, Catalog: d.catalog, Logger: log, Allowed: o.AllowedNetworks, Now: time.Now, SearchTimeout: time.Duration(o.RemoteSearchTimeout) * time.Second,
		RequestTimeout: time.Duration(o.ProxyRequestTimeout) * time.Second, AnswerTimeout: time.Duration(o.ProxyBackoffTimeout) * time.Second,
		OutboxLimit: int64(o.NetworkOutboxLimit),
	})
	if err != nil {
		return nil, err
	}
	if d.chats, err = chat.Open(files, place.Chats); err != nil {
		return nil, err
	}
	if !follow {
		if err := d.chats.Adopt(place.KeptChats(), log); err != nil {
			return nil, err
		}
	}
	dumps, snapshots, err := o.copies(session)
	if err != nil {
		return nil, err
	}
	maker := dump.New(dump.Options{
		FS: vfs.OS, Place: place, Version: apiVersion, Program: svcVersion, Logger: log, Now: time.Now,
		Catalog: d.catalog, Keys: d.keys, Webhooks: d.hooks, Features: d.features.JSON, Network: d.node.DumpJSON, Chats: d.chats, Rules: d.rules.Dump,
		DumpDir:         o.DumpDir,
		SnapshotFile:    o.Snapshots.file(o.DBPath),
		SnapshotVersion: versionContent(), CompactInSnapshot: !o.Snapshots.NoCompaction, Bucket: o.Snapshots.bucket(session),
		Allowed: o.AllowedNetworks, PayloadLimit: int64(o.HTTPPayloadSizeLimit),
	})
	executors := maker.Executors()
	executors[task.NetworkTopologyChange] = d.node.Executor
	executors[task.RuleUpdate], executors[task.RuleClear] = d.rules.Executor, d.rules.Executor
	d.queue, err = task.Open(task.Options{
		FS: files, Dir: place.Tasks, Catalog: d.catalog, Logger: log, Now: time.Now, Tracer: b.tracer,
		MaxBatchTasks: o.batchTasks(), MaxBatchBytes: o.batchBytes(limits.MaxIndexingMemory), MaxTasks: o.maxTasks(), Concurrent: o.ConcurrentIndexes,
		Reserve: reserveBytes,
		OnBatch: d.node.Ended, OnEnd: d.sender.Deliver, OnForward: d.node.Forwarded, Owned: d.node.Owned, Executors: executors, Follow: follow,
	})
	if err != nil {
		return nil, err
	}
	d.add("the task queue", d.queue)
	d.add("the network", d.node)
	return d, o.prepare(b, d, dumps, snapshots)
}

// prepare configures how a server serves the data, and opens what it needs in addition.
func (o *options) prepare(b *base, d *data, dumps, snapshots string) error {
	providers := chat.NewProviders(o.AllowedNetworks)
	d.add("the connections to chat providers", providers)
	reranker, err := o.reranker()
	if err != nil {
		return err
	}
	if reranker != nil {
		d.add("the personalization", reranker)
	}
	var changes *audit.Log
	if o.AuditLog != "" {
		if changes, err = audit.Open(vfs.OS, o.AuditLog); err != nil {
			return err
		}
		d.add("the audit log", changes)
	}
	var searches *analytics.Recorder
	if o.Analytics > 0 {
		searches, err = analytics.Open(analytics.Options{FS: vfs.OS, Dir: d.place.Analytics, Retention: time.Duration(o.Analytics), Now: time.Now, Log: b.log})
		if err != nil {
			return err
		}
		d.add("the analytics", searches)
	}
	version := buildVersion()
	version.Package = o.speaks()
	d.serving = fastapi.Options{
		Catalog: d.catalog, Queue: d.queue, Keys: d.keys, Webhooks: d.hooks, Network: d.node, Chats: d.chats, Providers: providers, Rules: d.rules, Reranker: reranker, Audit: changes, Analytics: searches, Features: d.features, Logger: b.log, Log: b.heard,
		PayloadLimit: int64(o.HTTPPayloadSizeLimit), Production: o.Env == "production", NoDashboard: o.NoDashboard, Demo: o.Demo, Pprof: o.Pprof,
		Version: version, Newest: o.newest(), Replication: o.Replication, MetricsPrefix: o.MetricsPrefix, SlowSearch: time.Duration(o.SlowSearchMs) * time.Millisecond, Tracer: b.tracer,
		Searches: o.SearchesPerCore * runtime.GOMAXPROCS(0), SearchQueue: o.SearchQueueSize,
		DropSearchAfter: time.Duration(o.DropSearchAfter) * time.Second,
		JSONLimit:       int64(o.Costs.JSONSize), AnswerLimit: int64(o.Costs.AnswerSize), Memory: o.Costs.memory(),
		Connections: o.Costs.connections(), MultiQueries: o.Costs.MultiQueries,
		DumpDir: dumps, SnapshotFile: snapshots,
		CursorSecret: scroll.Secret(o.MasterKey),
	}
	return nil
}

// lead starts what only a server that takes writes does: it notifies webhooks of batches and other instances of the network of
// writes, builds suggestions, and makes scheduled snapshots.
func (d *data) lead(o *options, log *slog.Logger) error {
	d.add("the webhooks", closerFunc(d.sender.Close))
	if err := d.sender.Start(d.queue); err != nil {
		return err
	}
	d.node.Start(d.queue)
	if err := noteStores(vfs.OS, o.DBPath); err != nil {
		return err
	}
	suggestions := suggest.New(suggest.Options{Catalog: d.catalog, Queue: d.queue, Analytics: d.serving.Analytics, Spread: func() bool { return d.node.Network().Led() }, Log: log})
	suggestions.Start()
	d.add("the suggestions", suggestions)
	d.add("the schedule of snapshots", o.Snapshots.Schedule.start(d.queue, log))
	return nil
}
