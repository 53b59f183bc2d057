package group

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// maxGreeting is how many connections may be in the handshake at once. More connections wait before they are accepted.
const maxGreeting = 64

// door accepts the connections of other members. Each goes to the listener of its purpose after both sides have proved that they know
// the master key.
type door struct {
	net.Listener
	own   *credentials
	key   secret
	admit func(*hello) *reply
	// greeted is called after each handshake, including those of refused connections.
	greeted func()
	log     *slog.Logger
	early   atomic.Bool // a connection was refused because it came before this member takes part

	group, api, votes *room
	done              chan struct{}
	close             func()
	running           sync.WaitGroup
}

// room is a listener of connections that have been greeted.
type room struct {
	door  *door
	ready chan net.Conn
	done  chan struct{}
	close func()
}

func newRoom(d *door) *room {
	r := &room{door: d, ready: make(chan net.Conn), done: make(chan struct{})}
	r.close = sync.OnceFunc(func() { close(r.done) })
	return r
}

// guest is a connection of a member.
type guest struct {
	net.Conn
	hello *hello
}

// newDoor makes a listener that does the handshake with each client, and passes each connection to the listener of its
// purpose.
func newDoor(l net.Listener, own *credentials, key secret, admit func(*hello) *reply, greeted func(), log *slog.Logger) *door {
	d := &door{
		Listener: l, own: own, key: key,
		admit: admit, greeted: greeted, log: log, done: make(chan struct{}),
	}
	d.close = sync.OnceFunc(func() { close(d.done) })
	d.group, d.api, d.votes = newRoom(d), newRoom(d), newRoom(d)
	return d
}

// open accepts connections until Close.
func (d *door) open() {
	ctx, cancel := context.WithCancel(context.Background())
	slots := make(chan struct{}, maxGreeting)
	d.running.Go(func() {
		<-d.done
		cancel()
	})
	d.running.Go(func() {
		defer d.close()
		for {
			select {
			case slots <- struct{}{}:
			case <-d.done:
				return
			}
			c, err := d.Accept()
			if err != nil {
				return
			}
			d.running.Go(func() {
				defer func() { <-slots }()
				d.take(ctx, c)
			})
		}
	})
}

// take begins a connection and passes it on.
func (d *door) take(ctx context.Context, raw net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	c, h, err := greet(ctx, raw, d.own.server(), d.key, d.admit)
	d.greeted()
	if err != nil {
		d.tell(raw.RemoteAddr().String(), err)
		drain(raw)
		_ = raw.Close() // nothing is lost with it
		return
	}
	to := d.group
	switch h.Purpose {
	case forAPI:
		to = d.api
	case forVotes:
		to = d.votes
	}
	late := time.NewTimer(helloTime)
	defer late.Stop()
	select {
	case to.ready <- &guest{c, h}:
		return
	case <-late.C:
	case <-to.done:
	case <-d.done:
	}
	_ = c.Close() // nothing is lost with it
}

// tell logs that a connection was refused. Members retry a connection that came too early.
func (d *door) tell(from string, err error) {
	level := slog.LevelWarn
	if early := (earlyError{}); errors.As(err, &early) {
		level = slog.LevelDebug
		if d.early.CompareAndSwap(false, true) {
			level = slog.LevelInfo
		}
	}
	d.log.Log(context.Background(), level, "refused a connection of the group", "from", from, "error", err)
}

const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// drain reads what the other side has sent before it knows that it is refused. A connection that is closed with unread bytes is reset, and
// the other side may lose the reason.
func drain(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(drainTime)) == nil {
		_, _ = io.CopyN(io.Discard, c, drainBytes)
	}
}

// Close stops the listener and waits for the goroutines that it started.
func (d *door) Close() error {
	err := d.Listener.Close()
	d.close()
	d.running.Wait()
	return err
}

// Accept returns the next connection.
func (r *room) Accept() (net.Conn, error) {
	select {
	case c := <-r.ready:
		return c, nil
	case <-r.done:
	case <-r.door.done:
	}
	return nil, net.ErrClosed
}

// Close ends Accept. The door stays open.
func (r *room) Close() error {
	r.close()
	return nil
}

// Addr returns the address of the door.
func (r *room) Addr() net.Addr { return r.door.Addr() }
