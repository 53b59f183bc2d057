package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"svc/fastapi"
	"svc/internal/dump"
	"svc/internal/logs"
	"svc/internal/mapped"
	"svc/internal/vfs"
	"svc/segment"
)

// serveCommand runs the server.
type serveCommand struct {
	options `embed:""`
}

// serveName is the command's name.
const serveName = "serve"

// stopTime is how long running requests may continue after a signal. Together with the time for webhooks afterwards it is less than
// the 10 s after which supervisors of containers kill.
const stopTime = 5 * time.Second

// Run serves until a signal.
func (c *serveCommand) Run(p program) error {
	ctx, stop := signal.NotifyContext(context.Background(), c.stopSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return c.serve(ctx, p, nil)
}

// stopSignals returns the signals that stop the server. A terminal that is closed sends SIGHUP. Programs that rotate logs send it, too,
// after they have renamed a file: a server with an audit log ignores it. Under nohup it stays ignored.
func (o *options) stopSignals() []os.Signal {
	stops := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	switch {
	case o.AuditLog != "":
		signal.Ignore(syscall.SIGHUP)
	case !signal.Ignored(syscall.SIGHUP):
		stops = append(stops, syscall.SIGHUP)
	}
	return stops
}

// serve serves until ctx is done. ready, if not nil, is called with the address.
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
	// Before the data directory: if another program listens, none is created.
	listener, err := net.Listen("tcp", o.HTTPAddr)
	if err != nil {
		return listenError("--http-addr", o.HTTPAddr, err)
	}
	defer listener.Close() // again, after the server did
	address := "http://" + listener.Addr().String()
	if secure != nil {
		listener = tls.NewListener(plaintextListener{listener}, secure)
		address = "https://" + listener.Addr().String()
	}
	heard := logs.New(p.err, logs.AtLeast(o.LogLevel.Level), o.LogsMode.mode())
	heard.Gather()
	defer closing(&err, "the log", heard)
	log := heard.Logger()
	memory := keepMemoryLow()
	defer memory.Close()
	tracer, err := o.tracer(listener.Addr().String(), log)
	if err != nil {
		return err
	}
	defer closing(&err, "the traces", tracer)
	b := &base{p: p, log: log, heard: heard, memory: memory, tracer: tracer, limits: o.limits()}
	b.limits.Logger, b.limits.Now, b.limits.Tracer = log, time.Now, tracer
	b.limits.FS = vfs.OS
	b.limits.Embedders = o.pool(p, log)
	defer closing(&err, "the embedders", b.limits.Embedders)
	segment.ReadAheadOf(memoryBytes())
	if o.reads() && !(o.Group.reads() && o.Group.leads(o.DBPath)) {
		return o.follow(ctx, b, listener, address, ready)
	}
	if o.Group.votes() {
		return o.vote(ctx, b, listener, address, ready)
	}
	from, fill, err := o.Imports.plan(ctx, o.DBPath, dump.PlaceIn(o.DBPath), b.limits)
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
	data, err := o.open(b, writer.fs(), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if err := data.lead(o, log); err != nil {
		return err
	}
	published, err := o.publish(writer, data.queue, data.keys, log)
	if err != nil {
		return err
	}
	defer closing(&err, "the publication", published)
	settings := data.serving
	settings.Member, settings.Publisher = writer.member(), published.publisher()
	server := fastapi.New(settings)
	defer writer.hang() // before the stores that readers copy are closed
	writer.serve(o.DBPath, data.queue, data.keys, server)
	awaitGraphs(ctx)
	mapped.ReleaseProgram()
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
		err = errFenced
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

var errFenced = errors.New("another member of the group has become its writer: this one stops, and its data directory is refused from now on")

// graphTime is how long a start waits at most until the data for walks through dictionaries and graphs are in memory.
const graphTime = 250 * time.Millisecond

// awaitGraphs waits for these data. An earlier search would wait for the disk, page by page, and so would all concurrent ones.
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

// greet prints the address and the state of svc: for people, or as one line of the JSON log.
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
