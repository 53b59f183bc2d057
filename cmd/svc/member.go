package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"svc/fastapi"
	"svc/internal/index"
	"svc/internal/vfs"
)

// What readers and voters have in common.

// lockMember creates the data directory of a member, and takes its lock.
func (o *options) lockMember() (io.Closer, error) {
	if o.MasterKey == "" && o.Publish.Follow == "" {
		return nil, errNoMasterKey
	}
	if err := vfs.MakeDir(vfs.OS, o.DBPath); err != nil {
		return nil, fmt.Errorf("cannot create the data directory: %w", err)
	}
	return lockDataDir(vfs.OS, o.DBPath)
}

var errNoMasterKey = errors.New("a group needs a master key, so that its members recognise each other. Give all members the same --master-key")

// attend runs a server on listeners and the work of a member until ctx is done or one of them ends with an error. When ctx is done,
// both continue until leave returns.
func (b *base) attend(ctx context.Context, server *fastapi.Standby, work func(context.Context) error, leave func(), listeners ...net.Listener) (err error) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	waiting := len(listeners) + 1
	failed := make(chan error, waiting)
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	go func() { failed <- work(running) }()
	select {
	case err = <-failed:
		waiting--
	case <-ctx.Done():
	}
	b.p.tell(b.log, "STOPPING=1")
	if err == nil {
		leave()
	}
	deadline, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if e := server.Shutdown(deadline); e != nil {
		b.log.Warn("some requests were cut off", "error", e)
	}
	end() // requests use stores of work
	for _, l := range listeners {
		_ = l.Close() // a server that runs has closed it already
	}
	for ; waiting > 0; waiting-- {
		if e := <-failed; err == nil && !errors.Is(e, net.ErrClosed) {
			err = e
		}
	}
	return err
}

// hide has a server answer no longer from the data that are about to be closed.
func hide(server *fastapi.Standby) {
	soon, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	server.Hide(soon)
}

const modelPause = 5 * time.Second

// reportModels logs, until ctx is done, which local models the searches of a member need but do not have. The writer embeds all
// documents, so nothing else on a reader would load them.
func (b *base) reportModels(ctx context.Context, c *index.Catalog) {
	tick := time.NewTicker(modelPause)
	defer tick.Stop()
	var reported []index.MissingModel
	for {
		missing := c.MissingModels()
		switch {
		case slices.Equal(missing, reported):
		case len(missing) == 0:
			b.log.Info("this server has all models of embedders")
		default:
			x := missing[0]
			b.log.Warn("this server lacks models of embedders: searches that need them fail. Copy their directories from the models directory of the writer",
				"embedders", len(missing), "index", x.IndexUID, "embedder", x.Embedder, "directory", x.Directory)
		}
		reported = missing
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// mend makes a member copy damaged files of indexes again, until ctx is done.
func (b *base) mend(ctx context.Context, c *index.Catalog, m interface{ Renew() }) {
	for b.damage.await(ctx, c) {
		b.log.Warn("files of this server are damaged: it copies them again")
		m.Renew()
	}
}
