package group

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
)

// ErrCut is the error of a log that does not continue from a position: the caller has to take an image.
var ErrCut = errors.New("the log of the writer no longer has the next entry")

// The writer is away, or refuses: errors of requests.
var (
	errGone    = errors.New("the writer no longer has the file")           // as after ErrCut
	errDamaged = errors.New("files of this reader are damaged")            // as above
	errSum     = errors.New("a file differs from what the writer reports") // as above, after another try
)

// awayError is the error of a writer that could not be reached. It may answer later.
type awayError struct {
	err    error
	status int // of the answer; 0: there was none
}

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// readTime is how long the other side may send nothing, in the middle of an answer or before it.
const readTime = maxWait + 5*time.Second

// client asks the writer.
type client struct {
	own   *credentials
	key   secret
	hello func() *hello
	heard func(*hello) // called with the hello of the other side of a connection

	http *http.Client

	mu     sync.Mutex
	addr   []string // where the writer may be; the first one is tried
	tried  string   // the last one that was tried for the group
	failed string   // the last one that did not answer as the writer
	told   string   // the leader for which next last returned true
	toldAt time.Time
}

// newClient makes a client of the members at some addresses. Every connection begins with the hello that me
// returns; heard gets the answer.
func newClient(addresses []string, own *credentials, key secret, me func() *hello, heard func(*hello)) *client {
	c := &client{own: own, key: key, hello: me, heard: heard, addr: addresses}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx, c.address(), forGroup) },
		MaxIdleConns:        fetchers + 2,
		MaxIdleConnsPerHost: fetchers + 2,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}}
	return c
}

func (c *client) address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addr[0]
}

// toldPause is how long a leader that members name is not retried at once after it could not be reached.
const toldPause = time.Second

// next switches to another address after the last one did not answer as the writer: to that of the leader which it named, or to the
// next in the list. told is true for a leader's address, which is worth trying at once.
func (c *client) next() (told bool) {
	c.mu.Lock()
	switch leader, now := c.addr[0], time.Now(); {
	case c.tried == "" || c.tried == leader:
		c.failed = leader
		c.addr = append(c.addr[1:len(c.addr):len(c.addr)], leader)
	case leader != c.told || now.Sub(c.toldAt) >= toldPause:
		told = true
		c.told, c.toldAt = leader, now
	}
	c.mu.Unlock()
	c.http.CloseIdleConnections()
	return told
}

// maxAddresses is how many addresses learned from other members a client keeps.
const maxAddresses = 16

// learn makes the address of a leader, which a voter names, the first to try. It ignores an address that has just failed, because the
// voter may not know that yet.
func (c *client) learn(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := slices.Contains(c.addr, addr)
	if addr == "" || addr == c.failed || addr == c.addr[0] || !known && len(c.addr) >= maxAddresses {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(c.addr), func(a string) bool { return a == addr })
	c.addr = append([]string{addr}, rest...)
}

// dial makes a connection to an address.
func (c *client) dial(ctx context.Context, addr string, why purpose) (net.Conn, error) {
	if why == forGroup {
		c.mu.Lock()
		c.tried = addr
		c.mu.Unlock()
	}
	d := net.Dialer{Timeout: dialTime}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &awayError{err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	me := c.hello()
	me.Purpose = why
	conn, them, err := introduce(ctx, raw, c.own, addr, c.key, me)
	if err == nil {
		if r := me.compatible(them); r != nil && me.Group != "" {
			err = &RefusedError{r.Refused, r.Because}
		} else if them.Term < me.Term {
			err = &RefusedError{refusedTerm, fmt.Sprintf("it is the writer of term %d, which the writer of term %d has replaced. Change --group-join", them.Term, me.Term)}
		}
	}
	// A voter asks each of the others by its address. Readers look for the leader.
	follows := me.Role == RoleReader
	if err != nil {
		_ = raw.Close() // nothing is lost with it
		if refused := new(RefusedError); errors.As(err, &refused) {
			if follows && refused.Code == refusedRole && them != nil {
				c.learn(them.Leader)
			}
			return nil, &RefusedError{refused.Code, fmt.Sprintf("the member of the group at %s refuses: %s", addr, refused.Message)}
		}
		return nil, &awayError{err: err}
	}
	c.heard(them)
	if follows {
		c.learn(them.Leader)
	}
	if why != forGroup {
		return conn, nil
	}
	return &bounded{conn}, nil
}

// bounded is a connection that sets a deadline for each read and write.
type bounded struct{ net.Conn }

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return 0, err
	}
	return b.Conn.Read(p)
}

func (b *bounded) Write(p []byte) (int, error) {
	if err := b.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

// do sends a request. The body of the answer is the caller's to close; a read of it that waits for longer than readTime fails.
func (c *client) do(ctx context.Context, method, path string, q url.Values) (*http.Response, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	idle := time.AfterFunc(readTime, cancel)
	req, err := http.NewRequestWithContext(ctx, method, "http://group"+path+"?"+q.Encode(), nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	resp, err := c.http.Do(req)
	if err == nil {
		resp.Body = &watched{resp.Body, idle}
		switch resp.StatusCode {
		case http.StatusOK:
			return resp, func() { _ = resp.Body.Close(); idle.Stop(); cancel() }, nil
		case http.StatusGone:
			err = ErrCut
		case http.StatusNotFound:
			err = errGone
		default:
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
			err = &awayError{fmt.Errorf("the writer answers %d: %s", resp.StatusCode, strings.TrimSpace(string(text))), resp.StatusCode}
		}
		_ = resp.Body.Close() // nothing is lost with it
	} else if refused := new(RefusedError); !errors.As(err, &refused) {
		err = &awayError{err: err}
	}
	idle.Stop()
	cancel()
	return nil, nil, err
}

// watched delays the time-out of a request while its answer arrives.
type watched struct {
	io.ReadCloser
	idle *time.Timer
}

// Read delays the time-out, so that only a body that makes no progress times out.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.idle.Reset(readTime)
	}
	return n, err
}

// read sends a request and returns its answer of at most limit bytes.
func (c *client) read(ctx context.Context, method, path string, q url.Values, limit int64) ([]byte, error) {
	resp, end, err := c.do(ctx, method, path, q)
	if err != nil {
		return nil, err
	}
	defer end()
	if resp.ContentLength < 0 || resp.ContentLength > limit {
		return nil, fmt.Errorf("the writer sends %d bytes for %s, and at most %d are allowed", resp.ContentLength, path, limit)
	}
	b := make([]byte, 0, min(resp.ContentLength, 1<<20)+1)
	for {
		n, err := resp.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			if int64(len(b)) != resp.ContentLength {
				return nil, &awayError{err: io.ErrUnexpectedEOF}
			}
			return b, nil
		case err != nil:
			return nil, &awayError{err: err}
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// log asks for entries behind a position, and waits for them.
func (c *client) log(ctx context.Context, after Position, wait time.Duration) (*Batch, error) {
	b, err := c.read(ctx, http.MethodGet, pathLog, url.Values{"after": {after.String()}, "wait": {strconv.FormatInt(wait.Milliseconds(), 10)}}, maxEntry+batchBytes)
	if err != nil {
		return nil, err
	}
	t, err := DecodeBatch(b)
	if err == nil && (!t.Run.SameLog(after) || t.Run.Index != after.Index+1) {
		err = errBatch
	}
	if errors.Is(err, errBatch) {
		err = &awayError{err: err} // it is sent again
	}
	return t, err
}

// state asks for an image. It is never before the position that a reader has.
func (c *client) state(ctx context.Context, _ Position) (*Image, error) {
	b, err := c.read(ctx, http.MethodGet, pathState, nil, maxState)
	if err != nil {
		return nil, err
	}
	s, err := DecodeImage(b)
	if errors.Is(err, errImage) {
		err = &awayError{err: err} // it is sent again
	}
	return s, err
}

// sum asks for the size and the checksum of a file.
func (c *client) sum(ctx context.Context, name string) (size int64, sum xxh3.Uint128, err error) {
	b, err := c.read(ctx, http.MethodGet, pathSum, url.Values{"name": {name}}, maxMessage)
	if err != nil {
		return 0, sum, err
	}
	var a sumAnswer
	if err := json.Unmarshal(b, &a); err != nil || len(a.Sum) != 16 {
		return 0, sum, &awayError{err: errors.Join(errors.New("the writer sends no checksum"), err)}
	}
	return a.Size, xxh3.Uint128{Hi: binary.BigEndian.Uint64(a.Sum), Lo: binary.BigEndian.Uint64(a.Sum[8:])}, nil
}

// file requests the bytes of a file from an offset on. key identifies its content, by which voters find the files of entries; "":
// unknown. size is the size of the whole file.
func (c *client) file(ctx context.Context, name, key string, from int64) (body io.Reader, size int64, end func(), err error) {
	q := url.Values{"name": {name}, "from": {strconv.FormatInt(from, 10)}}
	if key != "" {
		q.Set("key", key)
	}
	resp, end, err := c.do(ctx, http.MethodGet, pathFile, q)
	if err != nil {
		return nil, 0, nil, err
	}
	size, err = strconv.ParseInt(resp.Header.Get(sizeHeader), 10, 64)
	if err != nil || size < from {
		end()
		return nil, 0, nil, &awayError{err: errors.New("the writer does not report the size of a file")}
	}
	return resp.Body, size, end, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }
