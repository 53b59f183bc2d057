package fastapi

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conns knows the open connections, and which of them have a request that is
// being answered. A connection on which a client has not sent anything yet
// looks busy to fasthttp, and would hold up the end until the client gave up.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// conn is one of them.
type conn struct {
	net.Conn
	in   *conns
	busy atomic.Bool // a request is being answered
}

// listener hands out connections that conns knows.
type listener struct {
	net.Listener
	in  *conns
	log *slog.Logger
}

// acceptPause is how long no connection is taken when the process or the machine has no room for one.
const acceptPause = 100 * time.Millisecond

// Accept waits until there is room, where fasthttp would end the server.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	for told := false; noRoom(err); nc, err = l.Listener.Accept() {
		if !told {
			l.log.Warn("connections have to wait: close some, or raise the limit of open files", "error", err)
			told = true
		}
		time.Sleep(acceptPause)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, in: l.in}
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if l.in.open == nil {
		l.in.open = map[*conn]struct{}{}
	}
	l.in.open[c] = struct{}{}
	return c, nil
}

// noRoom reports whether err, of accepting a connection, goes away when others are closed.
func noRoom(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// A client may take this long to receive so many bytes. Who takes longer keeps an answer in memory and is cut off.
const (
	writeTimeout = time.Minute
	writeBytes   = 256 << 10
)

// Write writes in pieces, so that slow clients get large answers and those that stopped reading do not stay.
func (c *conn) Write(b []byte) (written int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(b[written:min(written+writeBytes, len(b))])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

func (c *conn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// hangUp ends the wait for a request on all connections, again and again until done: a
// connection may come in, or end its request, at any time.
func (cs *conns) hangUp(done <-chan struct{}) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		cs.mu.Lock()
		for c := range cs.open {
			if !c.busy.Load() {
				c.SetReadDeadline(time.Now()) // an error means that it is closed already
			}
		}
		cs.mu.Unlock()
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}
