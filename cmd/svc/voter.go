package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"slices"
	"sync"
	"time"

	"svc/fastapi"
	"svc/internal/apierr"
	"svc/internal/group"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// vote runs a voter until ctx is done: it follows the log of the group, and accepts writes while it leads.
func (o *options) vote(ctx context.Context, b *base, listener net.Listener, address string, ready func(net.Addr)) (err error) {
	lock, err := o.lockMember()
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	l, err := net.Listen("tcp", o.Group.Addr)
	if err != nil {
		return listenError("--group-addr", o.Group.Addr, err)
	}
	log := b.log
	voter, err := group.OpenVoter(group.VoterOptions{
		FS: vfs.OS, Dir: o.DBPath, Name: o.Group.Name, Addr: o.Group.Addr, Join: o.Group.Join, MasterKey: o.MasterKey, TLS: o.Group.certificates(),
		Format: formatVersion, Version: svcVersion, Logger: log, Init: func() error { return o.initVoter(b) },
	}, l)
	if err != nil {
		return err
	}
	defer closing(&err, "the group", voter)
	forwarder := fastapi.NewForwarder(voter.DialAPI)
	defer closing(&err, "the connections to the leader", forwarder)
	server := fastapi.NewStandby(voter, forwarder, o.MasterKey, o.Costs.connections(), b.heard)
	mapped.ReleaseProgram()
	if ready != nil {
		ready(listener.Addr())
	}
	log.Info("svc is a voter of a group", "address", address, "data", o.DBPath, "group", o.Group.Name)
	b.p.tell(log, "READY=1\nSTATUS=voting on "+address)
	return b.attend(ctx, server, func(ctx context.Context) error { return o.take(ctx, b, voter, server) }, func() { o.drain(voter) }, listener, voter.API())
}

// drain hands the lead to another voter, and then continues to answer for some time. At /health, load balancers see that they should
// use other servers.
func (o *options) drain(voter *group.Voter) {
	ctx, cancel := context.WithTimeout(context.Background(), max(o.Group.Drain, stopTime))
	defer cancel()
	start := time.Now()
	voter.Drain(ctx)
	time.Sleep(o.Group.Drain - time.Since(start))
}

// initVoter creates an empty data directory for the server, or checks the existing one.
func (o *options) initVoter(b *base) error {
	name := path.Join(o.DBPath, versionFile)
	if _, err := vfs.OS.Stat(name); err == nil {
		if _, err := checkDataDir(vfs.OS, o.DBPath); err != nil {
			return err
		}
		if err := checkStores(vfs.OS, o.DBPath); err != nil {
			return err
		}
	} else if _, err := vfs.OS.Stat(path.Join(o.DBPath, importingFile)); err == nil {
		return fmt.Errorf("an import into %s was interrupted, and its data are incomplete. Start without --group-role voter and with the same import option to restart the import, or remove the directory", o.DBPath)
	}
	if _, err := vfs.Replace(vfs.OS, name, versionContent()); err != nil {
		return fmt.Errorf("cannot create the data directory: %w", err)
	}
	d, err := o.open(b, vfs.OS, false)
	if err != nil {
		return err
	}
	return errors.Join(d.Close(), noteStores(vfs.OS, o.DBPath))
}

// take takes part in the group until ctx is done.
func (o *options) take(ctx context.Context, b *base, voter *group.Voter, server *fastapi.Standby) error {
	err := voter.Enter(ctx)
	for err == nil && ctx.Err() == nil {
		err = o.stand(ctx, b, voter, server)
		if errors.Is(err, group.ErrReplace) {
			err = voter.Replace()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stand opens the data of a voter and answers requests with them, both while they follow those of the group and while it leads. It
// closes them when the lead is lost, and when they have to be replaced: then the error is group.ErrReplace.
func (o *options) stand(ctx context.Context, b *base, voter *group.Voter, server *fastapi.Standby) (err error) {
	if voter.Empty() {
		return voter.Follow(ctx, nil)
	}
	if err := checkStores(vfs.OS, o.DBPath); err != nil {
		return err
	}
	d, err := o.open(b, voter.FS(), true)
	if err != nil {
		return err
	}
	watched, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	hiding := hide
	shut := sync.OnceValue(func() error {
		end()
		hiding(server)
		watch.Wait()
		voter.Serves(nil)
		err := d.Close()
		if lostLead(err) {
			// Writes of closing do not reach the group. The stores are closed anyway, and reopened.
			b.log.Warn("the data were closed after the lead was lost", "error", err)
			return nil
		}
		return err
	})
	defer func() { err = errors.Join(err, shut()) }()
	d.node.Follow()
	d.queue.RunIn(voter.Run(), voter.Living)
	voter.Serves(groupStores{o.DBPath, d.queue, d.keys})
	server.Show(server.NewServer(d.serving))
	watch.Go(func() { b.mend(watched, d.catalog, voter) })
	watch.Go(func() { b.reportModels(watched, d.catalog) })
	if err := voter.Follow(ctx, d.follower(o.DBPath, b.log)); !errors.Is(err, group.ErrLead) {
		return err
	}
	leading, cease := context.WithCancel(context.WithoutCancel(ctx))
	defer cease()
	led := make(chan error, 1)
	go func() { led <- voter.Lead(leading) }() // what the stores change when they begin to lead is part of the log
	published, err := d.reign(o, voter, b.log)
	if err != nil {
		if lostLead(err) {
			b.log.Warn("this server lost the lead of the group before it could lead", "error", err)
		} else {
			b.log.Error("this server was elected to lead the group, and cannot", "error", err)
		}
		voter.Depose(err)
		return <-led
	}
	settings := d.serving
	settings.Publisher = published.publisher()
	server.Show(server.NewWriter(settings))
	select {
	case err := <-led:
		return err
	case <-voter.Resigning():
		if err, over := settle(server, led, voter.Drains()); over {
			return err
		}
		hiding = hideSoon
	case <-ctx.Done():
	}
	// The stores are closed while their last changes still reach the group: batches that run are given up in order.
	_ = shut() // as above
	voter.Resign()
	cease()
	return <-led
}

// Limits for a leader that hands over, after settle: lastBodies for request bodies that have not arrived, lastSearches for running
// searches. All writes wait meanwhile. Only searches with a longer limit than the default use all of lastSearches.
const (
	lastBodies   = 100 * time.Millisecond
	lastSearches = 2 * time.Second
)

// settleTime is how long running requests may continue after a server was told to stop. Within stopTime it also has to hand the lead
// over, wait lastSearches and close: see drain.
const settleTime = stopTime / 2

// settle waits, for up to stopTime, for the running requests before this server hands the lead over. If the server is told to stop,
// earlier or meanwhile, stops is closed, and settle waits for up to settleTime from then on. over says that the server has already
// lost the lead; err is then the error of Lead.
func settle(server interface{ Settle(context.Context) }, led <-chan error, stops <-chan struct{}) (err error, over bool) {
	soon, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	settled := make(chan struct{})
	go func() {
		server.Settle(soon)
		close(settled)
	}()
	for {
		select {
		case <-settled:
			return nil, false
		case err := <-led:
			cancel()
			<-settled
			return err, true
		case <-stops:
			stops = nil
			defer time.AfterFunc(settleTime, cancel).Stop()
		}
	}
}

// hideSoon hides the server after settle, with the limits above.
func hideSoon(server *fastapi.Standby) {
	soon, cancel := context.WithTimeout(context.Background(), lastSearches)
	defer cancel()
	bodies, stop := context.WithTimeout(soon, lastBodies)
	defer stop()
	server.HideSoon(soon, bodies)
}

// lostLead reports whether an error, and each one that it joins, says that this server does not lead its group any more.
func lostLead(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *apierr.Error:
		return e.Code == "no_writer"
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !lostLead(err) })
	}
	return lostLead(errors.Unwrap(err))
}

// reign has stores that follow lead, and begins to publish the data if that is wanted.
func (d *data) reign(o *options, v *group.Voter, log *slog.Logger) (*publication, error) {
	for _, lead := range []func() error{d.catalog.Lead, d.keys.Lead, d.queue.Lead, func() error { return d.lead(o, log) }} {
		if err := lead(); err != nil {
			return nil, err
		}
	}
	published, err := o.publishReign(v, d.queue, d.keys, log)
	if err != nil {
		return nil, err
	}
	d.add("the publication", published)
	return published, nil
}
