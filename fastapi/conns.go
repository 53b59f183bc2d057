package fastapi

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/budget"
	"svc/internal/monotonic"
	"svc/internal/socket"
)

// conns knows the open connections, and which of them have a request in progress. fasthttp treats a connection without any request
// yet as busy, and would wait for it at shutdown until the client gives up.
type conns struct {
	most int   // 0: any number
	few  int32 // requests, besides one, that leave half of the processors free

	mu        sync.Mutex
	open      map[*conn]struct{}
	closing   int           // of open: connections cut off to make room
	next      []slow        // candidates for cutting off, if the client has not made progress since
	looked    time.Time     // when they were found
	answering atomic.Int32  // requests
	closed    chan struct{} // signals that a connection has closed; buffered for one
	warned    atomic.Int64  // when lack of room was last logged, by monotonic.Nanos
	relieved  atomic.Int64  // when slow clients were last cut off, by monotonic.Nanos
	stopping  atomic.Bool   // connections are hung up
}

func newConns(most int) *conns {
	return &conns{most: most, few: int32(runtime.GOMAXPROCS(0)-1) / 2, closed: make(chan struct{}, 1)}
}

// conn is one of them.
type conn struct {
	net.Conn
	in      *conns
	busy    atomic.Bool                    // a request is being answered
	served  atomic.Bool                    // one was
	account atomic.Pointer[budget.Account] // account of the current request; nil: none

	turn sync.Mutex  // held while the connection becomes busy, or is hung up
	hung bool        // the connection ends before the next request; guarded by turn
	uses *live       // stores used by the request; nil: none. Guarded by turn
	late atomic.Bool // do not wait for the rest of the request's body

	// Progress of the client: since when it sends or receives, how much, and whether the server is waiting for it.
	writing atomic.Bool
	since   atomic.Int64 // by monotonic.Nanos
	moved   atomic.Int64
	blocked atomic.Bool
	cut     atomic.Bool // cut off because the client was slow when memory was short
	makes   bool        // it was cut off to make room: it is in closing; guarded by in.mu

	// of the goroutine that serves it
	gaveWay time.Time // when it let others run last
	prompt  bool      // the last read did not block
	lingers bool      // Close first drops what the client still sends

	body int    // length of the body of the next answer: see holdBack
	held *start // waiting first part of an answer; nil: none
}

// listener hands out connections that conns knows.
type listener struct {
	net.Listener
	in  *conns
	log *slog.Logger
}

// acceptPause is how long no connection is accepted when the process or the machine has no room for one.
const acceptPause = 100 * time.Millisecond

// Accept waits until there is room. Without this, fasthttp would stop the server.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	for warned := false; noRoom(err); nc, err = l.Listener.Accept() {
		if !warned {
			l.log.Warn("connections wait for file descriptors: close some, or raise the limit of open files", "error", err)
			warned = true
		}
		time.Sleep(acceptPause)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: socket.Wrap(nc, l.in.quiet), in: l.in}
	for !l.in.take(c) {
		l.warn()
		select {
		case <-l.in.closed:
		case <-time.After(acceptPause / 4):
		}
	}
	return c, nil
}

// warnPause is the least time between two equal log lines about connections.
const warnPause = time.Minute

// warn logs that there is no room for more connections.
func (l listener) warn() {
	now, last := monotonic.Nanos(time.Now()), l.in.warned.Load()
	if now-last >= int64(warnPause) && l.in.warned.CompareAndSwap(last, now) {
		l.log.Warn("connection limit reached: closing idle and slow connections", "limit", l.in.most)
	}
}

// count returns how many connections are open.
func (cs *conns) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// noRoom reports whether err, of accepting a connection, is temporary until others are closed.
func noRoom(err error) bool {
	for _, errno := range noRoomErrors {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// A client has writeTimeout to receive writeBytes. A slower client is cut off, because its answer takes up memory.
const (
	writeTimeout = time.Minute
	writeBytes   = 256 << 10
)

// Write writes in pieces, so that slow clients get large answers and those that stopped reading are cut off.
func (c *conn) Write(b []byte) (written int, err error) {
	if c.holdBack(b) {
		return len(b), nil
	}
	c.begin(true)
	defer c.blocked.Store(false)
	for {
		if c.cut.Load() {
			return written, errCut
		}
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
		n, err := c.send(b[written:min(written+writeBytes, len(b))])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}

// errCut is the error of a connection whose client was too slow.
var errCut = errors.New("the client was slow, and other requests needed the memory that its request held")

// begin notes that the server waits for the client.
func (c *conn) begin(writing bool) {
	if c.writing.Load() != writing || c.since.Load() == 0 {
		c.writing.Store(writing)
		c.moved.Store(0)
		c.since.Store(monotonic.Nanos(time.Now()))
	}
	c.blocked.Store(true)
}

const (
	// bout is how long a connection is served at a stretch while others wait.
	bout = time.Millisecond
	// atOnce is the time within which a read counts as not having blocked.
	atOnce = 10 * time.Microsecond
)

// giveWay yields the processor between an answer and the next request. A client that sends its next request at once would keep this
// goroutine running: the runtime lets it go on for 10 ms while other connections wait. A few such clients would make the others wait
// a hundred times as long as their requests take. If a read had to wait, others ran anyway, and yielding would only wake an idle
// processor.
func (c *conn) giveWay() {
	if !c.prompt || !c.writing.Load() {
		return
	}
	if now := time.Now(); now.Sub(c.gaveWay) > bout {
		c.gaveWay = now
		runtime.Gosched()
	}
}

// Read records the client's progress, by which relieve finds the slowest ones. It fails once the connection is cut off.
func (c *conn) Read(b []byte) (int, error) {
	c.giveWay()
	c.begin(false)
	defer c.blocked.Store(false)
	if c.cut.Load() {
		return 0, errCut
	}
	began := time.Now()
	n, err := c.Conn.Read(b)
	c.prompt = time.Since(began) < atOnce
	c.moved.Add(int64(n))
	return n, err
}

const (
	// slowGrace is how long a client may take before it counts as slow.
	slowGrace = 250 * time.Millisecond
	// reliefPause is the least time between two rounds of cutting off slow clients. The clients that replace them may be no faster,
	// and receiving their requests costs time.
	reliefPause = 250 * time.Millisecond
)

// slow is a connection whose client the server is waiting for.
type slow struct {
	*conn
	rank  int     // lowest is closed first: 0: no request so far; 1: between requests; 2: in a request
	rate  float64 // bytes a second
	took  time.Duration
	began int64 // conn.since
}

// waiting returns the connections whose clients have taken more than the grace, the slowest first. The lock is held.
func (cs *conns) waiting(now time.Time) []slow {
	var all []slow
	for c := range cs.open {
		began := c.since.Load()
		took := time.Duration(monotonic.Nanos(now) - began)
		if c.blocked.Load() && !c.cut.Load() && took > slowGrace {
			rank := 0
			switch {
			case c.busy.Load() || c.account.Load() != nil:
				rank = 2
			case c.served.Load():
				rank = 1
			}
			all = append(all, slow{c, rank, float64(c.moved.Load()) / took.Seconds(), took, began})
		}
	}
	slices.SortFunc(all, func(a, b slow) int { return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(b.took, a.took)) })
	return all
}

// relieve cuts off the slowest clients whose requests hold memory, until that amounts to the given number of bytes.
func (cs *conns) relieve(bytes int64) {
	now, last := time.Now(), cs.relieved.Load()
	if monotonic.Nanos(now)-last < int64(reliefPause) || !cs.relieved.CompareAndSwap(last, monotonic.Nanos(now)) {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, s := range cs.waiting(now) {
		if bytes <= 0 {
			return
		}
		if held := s.account.Load().Held(); held > 0 {
			s.cutOff(now)
			bytes -= held
		}
	}
}

// take adds a connection if there is room. If most of the room is used, the connection that has waited longest for its client is cut
// off, first those without a request. take does not wait for that, because some room is reserved.
func (cs *conns) take(c *conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.most > 0 {
		if len(cs.open)-cs.closing >= cs.most-cs.most/roomShare {
			cs.makeRoom(time.Now())
		}
		if len(cs.open) >= cs.most {
			return false
		}
	}
	if cs.open == nil {
		cs.open = map[*conn]struct{}{}
	}
	cs.open[c] = struct{}{}
	return true
}

const (
	// roomShare: 1/roomShare of the connections is reserved for those that are closing.
	roomShare = 16
	// lookPause is the least time between two scans of all connections for candidates.
	lookPause = 10 * time.Millisecond
)

// makeRoom cuts off one connection that waits for its client, if there is one. The lock is held.
func (cs *conns) makeRoom(now time.Time) {
	for {
		if len(cs.next) == 0 {
			if now.Sub(cs.looked) < lookPause {
				return
			}
			all := cs.waiting(now)
			slices.SortStableFunc(all, func(a, b slow) int { return cmp.Compare(a.rank, b.rank) })
			cs.next, cs.looked = all[:min(len(all), cs.most/roomShare+1)], now
			if len(cs.next) == 0 {
				return
			}
		}
		s := cs.next[0]
		cs.next = cs.next[1:]
		if _, open := cs.open[s.conn]; !open || s.cut.Load() || !s.blocked.Load() || s.since.Load() != s.began {
			continue
		}
		s.makes = true
		cs.closing++
		s.cutOff(now)
		return
	}
}

// cutOff makes reads and writes on the connection fail.
func (c *conn) cutOff(now time.Time) {
	c.cut.Store(true)
	c.Conn.SetDeadline(now) // an error means that it is closed already
}

func (c *conn) Close() error {
	if c.lingers {
		c.lingers = false
		c.dropRest()
	}
	err := c.Conn.Close()
	c.in.remove(c)
	return err
}

// remove counts a connection out.
func (cs *conns) remove(c *conn) {
	cs.mu.Lock()
	delete(cs.open, c)
	if c.makes {
		c.makes = false
		cs.closing--
	}
	cs.mu.Unlock()
	select {
	case cs.closed <- struct{}{}: // whom Accept waits for
	default:
	}
}

// hangUp ends the wait for the next request on the connection.
func (c *conn) hangUp() {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !c.busy.Load() {
		c.hung = true
		c.SetReadDeadline(time.Now()) // an error means that it is closed already
	}
}

// enter records that a request is being served. If its connection was being hung up, its body is still read.
func (c *conn) enter() {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.busy.Store(true)
	c.in.answering.Add(1)
	c.served.Store(true)
	if c.hung && !c.cut.Load() {
		c.SetReadDeadline(time.Now().Add(readTimeout)) // an error means that it is closed already
	}
	c.hung = false
	c.late.Store(false)
}

// leave notes that it has been.
func (c *conn) leave() {
	c.in.answering.Add(-1)
	c.busy.Store(false)
}

// quiet reports whether at most half of the processors serve requests, including that of the caller.
func (cs *conns) quiet() bool { return cs.answering.Load() <= cs.few }

// use notes whose stores the request uses; nil: none any more.
func (c *conn) use(l *live) {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.uses = l
}

// endBody ends the wait for the body of a request that uses certain stores.
func (c *conn) endBody(l *live) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.uses == l {
		c.late.Store(true)
		c.SetReadDeadline(time.Now()) // an error means that it is closed already
	}
}

// endBodies does so on all connections, repeatedly until done, because a request may have just extended its deadline.
func (cs *conns) endBodies(l *live, done <-chan struct{}) {
	cs.repeat(done, func(c *conn) { c.endBody(l) })
}

// hangUp ends the wait for requests on all connections, repeatedly until done, because connections may be accepted, or end their
// requests, at any time.
func (cs *conns) hangUp(done <-chan struct{}) {
	cs.stopping.Store(true)
	cs.repeat(done, (*conn).hangUp)
}

// repeat calls f with all connections, repeatedly until done.
func (cs *conns) repeat(done <-chan struct{}, f func(*conn)) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		cs.mu.Lock()
		for c := range cs.open {
			f(c)
		}
		cs.mu.Unlock()
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}
