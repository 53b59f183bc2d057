package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/fastapi"
	"svc/internal/apierr"
	changes "svc/internal/commit"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// following is the work of a reader: it follows the writer, until it becomes the writer itself.
type following struct {
	o      *options
	base   *base
	reader *group.Reader
	server *fastapi.Standby

	writer    *groupWriter // once this reader has become it
	takeovers chan *takeover
	ended     chan struct{} // closed when no takeover is taken any more
}

// takeover is a request for this reader to become the writer.
type takeover struct {
	ctx    context.Context
	force  bool
	member fastapi.Member // this one as the writer
	done   chan error     // has room for one
}

// run makes the data directory follow the writer's, until ctx is done.
func (f *following) run(ctx context.Context) error {
	defer close(f.ended)
	err := f.reader.Join(ctx)
	for err == nil {
		err = f.live(ctx)
		switch {
		case errors.Is(err, group.ErrReplace):
			err = f.reader.Replace()
		case err == nil:
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// live opens the data, and answers requests with them while they follow the writer's. Its error is group.ErrReplace when they are to be
// replaced.
func (f *following) live(ctx context.Context) (err error) {
	if err := checkStores(vfs.OS, f.o.DBPath); err != nil {
		return err
	}
	files := changes.NewLater(vfs.OS)
	d, err := f.o.open(f.base, files, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close(), f.writer.Close()) }()
	settings := d.serving
	if f.o.Group.Addr != "" {
		settings.TakeOver = f.takeOver
	}
	f.server.Show(f.server.NewServer(settings))
	defer hide(f.server)
	follows := f.follow(ctx, d)
	defer follows.stop()
	for {
		select {
		case err := <-follows.failed:
			return err
		case t := <-f.takeovers:
			l, err := f.agree(t)
			if err != nil {
				t.done <- err
				continue
			}
			follows.stop()
			return f.lead(ctx, d, files, l, t)
		}
	}
}

// pursuit is a data directory that follows the writer's, until stop.
type pursuit struct {
	failed chan error
	stop   func()
}

// follow begins to follow the writer.
func (f *following) follow(ctx context.Context, d *data) *pursuit {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	p := &pursuit{failed: make(chan error, 1), stop: sync.OnceFunc(func() { cancel(); work.Wait() })}
	d.node.Follow()
	work.Go(func() { p.failed <- f.reader.Follow(ctx, d.follower(f.o.DBPath, f.base.log)) })
	work.Go(func() { f.base.mend(ctx, d.catalog, f.reader) })
	work.Go(func() { f.base.reportModels(ctx, d.catalog) })
	return p
}

// takeOver turns this reader into the writer, on request. ctx is that of the request.
func (f *following) takeOver(ctx context.Context, force bool) (fastapi.Member, error) {
	t := &takeover{ctx: ctx, force: force, done: make(chan error, 1)}
	select {
	case f.takeovers <- t:
	case <-f.ended:
		return nil, apierr.New("promotion_refused", "This server stops.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err := <-t.done:
		return t.member, err
	case <-f.ended:
		return nil, apierr.New("promotion_refused", "This server stops.")
	}
}

// agree has the writer end, and returns the listener for other members.
func (f *following) agree(t *takeover) (net.Listener, error) {
	l, err := net.Listen("tcp", f.o.Group.Addr)
	if err != nil {
		return nil, apierr.New("promotion_refused", "This reader cannot listen on the address of `--group-addr`: %v.", err)
	}
	err = f.reader.TakeOver(t.ctx)
	if err == nil {
		return l, nil
	}
	if t.force && !f.reader.FollowsVoters() {
		f.base.log.Warn("this reader becomes the writer without the consent of the former one: writes that it has not received are lost", "reason", err)
		return l, nil
	}
	_ = l.Close() // nothing was accepted
	if group.Unreachable(err) {
		return nil, apierr.New("writer_unreachable", "The writer cannot be asked to hand over: %v. If it is gone, send `{\"force\": true}`. Writes that this reader has not received are lost then.", err)
	}
	return nil, apierr.New("promotion_refused", "This reader cannot become the writer: %v.", err)
}

// lead makes this reader the writer on its open stores, and accepts writes until ctx is done.
func (f *following) lead(ctx context.Context, d *data, files *changes.Later, l net.Listener, t *takeover) error {
	log := f.base.log
	fail := func(err error) error {
		err = fmt.Errorf("this reader was promoted, and cannot write: %w. Start it again", err)
		t.done <- err
		return err
	}
	former := slices.DeleteFunc(slices.Clone(f.o.Group.Join), func(addr string) bool { return addr == f.o.Group.Addr })
	if _, err := f.reader.Become(former); err != nil {
		return errors.Join(fail(err), l.Close())
	}
	w, err := f.o.newWriter(log)
	if err != nil {
		return errors.Join(fail(err), l.Close())
	}
	writer := &groupWriter{w, l}
	f.writer = writer
	d.add("the group", closerFunc(writer.hang)) // before the stores that other members copy
	files.Become(writer.fs())
	for _, lead := range []func() error{d.catalog.Lead, d.keys.Lead, d.queue.Lead, func() error { return d.lead(f.o, log) }} {
		if err := lead(); err != nil {
			return fail(err)
		}
	}
	published, err := f.o.publish(writer, d.queue, d.keys, log)
	if err != nil {
		return fail(err)
	}
	d.add("the publication", published)
	settings := d.serving
	settings.Member, settings.Publisher = writer.member(), published.publisher()
	server := f.server.Lead(settings)
	writer.serve(f.o.DBPath, d.queue, d.keys, server)
	log.Warn("this reader has become the writer of the group", "position", w.Position().String())
	f.base.p.tell(log, "STATUS=writing")
	t.member = writer.member()
	t.done <- nil
	return f.write(ctx, server)
}

// write accepts writes until ctx is done, or another member has become the writer.
func (f *following) write(ctx context.Context, server *fastapi.Server) (err error) {
	for {
		select {
		case t := <-f.takeovers: // it came before
			t.member = f.writer.member()
			t.done <- nil
			continue
		case <-f.writer.fenced():
			err = errFenced
		case <-ctx.Done():
		}
		break
	}
	soon, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if e := server.Shutdown(soon); e != nil { // connections of other members
		f.base.log.Warn("some requests were cut off", "error", e)
	}
	return err
}

// damageWatch knows when a reader copied damaged files last.
type damageWatch struct{ renewed time.Time }

const (
	damagePause = time.Second
	// renewPause is the minimum time between two copies: the writer may be away, or its file may be damaged, too.
	renewPause = 10 * time.Minute
)

// await waits until a file of an index is found damaged, so that it has to be copied. It returns false if ctx is done before.
func (w *damageWatch) await(ctx context.Context, c *index.Catalog) bool {
	tick := time.NewTicker(damagePause)
	defer tick.Stop()
	for {
		quarantined, segments := c.Damages()
		if len(quarantined)+len(segments) > 0 && (w.renewed.IsZero() || time.Since(w.renewed) >= renewPause) {
			w.renewed = time.Now()
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// follower returns the standby.Directory that applies the changes of the writer to the data.
func (d *data) follower(dir string, log *slog.Logger) *standby.Directory {
	name := func(file string) string { return strings.TrimPrefix(file, path.Clean(dir)+"/") }
	return standby.Open(standby.Options{FS: vfs.OS, Dir: dir, Logger: log,
		Stores: map[changes.Kind]standby.Store{
			changes.Catalog: d.catalog, changes.Manifest: d.catalog, changes.Tasks: d.queue, changes.Begin: d.queue, changes.Keys: d.keys,
		},
		Sealed: map[string]func() error{
			name(d.place.Features): d.features.Reload, name(d.place.Webhooks): d.hooks.Reload, name(d.place.Rules): d.rules.Reload,
			name(d.place.Chats): d.chats.Reload, name(d.place.Network): d.node.Reload,
		},
	})
}
