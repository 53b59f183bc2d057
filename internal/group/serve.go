package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/logstore"
	"svc/internal/vfs"
)

// Bounds of what members ask of each other.
const (
	maxWait     = 10 * time.Second // a request for entries that are not there yet
	batchBytes  = 1 << 20          // of entries in an answer, if there is more than one
	copyBytes   = 256 << 10        // of a file, at a time
	maxState    = 1 << 30
	maxMessage  = 64 << 10 // bytes of a message of other kinds
	maxName     = 200      // longest accepted file name; ours are shorter
	writeTime   = 30 * time.Second
	releaseTime = time.Second // between two looks at who is away
	maxStates   = 4           // that are taken at once
	maxSums     = 2           // that are computed at once for readers
)

// Paths of requests.
const (
	pathLog    = "/group/log"
	pathState  = "/group/state"
	pathFile   = "/group/file"
	pathSum    = "/group/sum"
	pathYield  = "/group/yield"
	sizeHeader = "Svc-Size"
)

// serving is what a writer does for others.
type serving struct {
	w      *Writer
	stores Stores
	door   *door
	http   *http.Server
	states chan struct{}
	summed chan struct{}
	done   chan struct{}
	close  func()
	wait   sync.WaitGroup
	asked  requests
}

// Serve answers other members on a listener until Close. It returns at once. The returned listener has the connections of API clients
// whose requests members forward.
func (w *Writer) Serve(l net.Listener, stores Stores) (api net.Listener) {
	d := newDoor(l, w.own, w.key, w.admit, w.tellFenced, w.o.Logger)
	s := &serving{w: w, stores: stores, door: d, states: make(chan struct{}, maxStates), summed: make(chan struct{}, maxSums), done: make(chan struct{}), asked: requests{log: w.o.Logger}}
	mux := http.NewServeMux()
	for pattern, h := range s.routes() {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) { s.answer(rw, r, h) })
	}
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: helloTime, ReadTimeout: writeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			g, _ := c.(*guest)
			return context.WithValue(ctx, guestKey{}, g)
		},
	}
	s.close = sync.OnceFunc(func() {
		s.asked.refuse()
		close(s.done)
		_ = s.http.Close() // its connections carry nothing that is not asked for again
		_ = d.Close()      // as above
		s.wait.Wait()
		s.asked.finish()
	})
	w.serving = s
	d.open()
	s.wait.Go(func() { _ = s.http.Serve(d.group) }) // it ends with close
	s.wait.Go(s.watch)
	s.wait.Go(s.tellFormer)
	return d.api
}

// routes are the requests that members make.
func (s *serving) routes() map[string]func(http.ResponseWriter, *http.Request, *member) error {
	return map[string]func(http.ResponseWriter, *http.Request, *member) error{
		"GET " + pathLog: s.log, "GET " + pathState: s.state, "GET " + pathFile: s.file, "GET " + pathSum: s.sum, "POST " + pathYield: s.yield,
	}
}

// guestKey is the place of the *guest among the values of a request.
type guestKey struct{}

// watch releases the files that are held for readers that have left.
func (s *serving) watch() {
	tick := time.NewTicker(releaseTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.w.forgetAway()
			s.w.release()
		case <-s.done:
			return
		}
	}
}

// forgetAway forgets readers that have been away for a long time, and removes the copies that were made for them.
func (w *Writer) forgetAway() {
	w.mu.Lock()
	var gone []string
	now := time.Now()
	for id, m := range w.members {
		if now.Sub(m.seen) > w.o.HoldTime {
			gone = append(gone, id)
			delete(w.members, id)
		}
	}
	w.mu.Unlock()
	for _, id := range gone {
		w.removeState(id)
	}
}

// hello is how the writer introduces itself.
func (w *Writer) hello() hello {
	w.mu.Lock()
	defer w.mu.Unlock()
	role := w.id.Role
	if w.id.Fenced {
		role = ""
	}
	return hello{Protocol: protocol, Format: w.o.Format, Version: w.o.Version, Group: w.id.Group, Name: w.id.Name, Member: w.id.Member, Role: role, Term: w.id.Term}
}

// admit returns the reply to a member that connects.
func (w *Writer) admit(h *hello) *reply {
	me := w.hello()
	if r := me.compatible(h); r != nil {
		return r
	}
	if h.Group != "" && h.Term > me.Term {
		if err := w.fence(h.Term); err != nil {
			w.o.Logger.Error("cannot record that another member is the writer of the group", "error", err)
		}
		me = w.hello()
	}
	switch {
	case me.Role != RoleWriter && (h.Role != RoleReader || h.Member != w.successor()): // a member that missed the answer asks again
		return me.refuse(refusedTerm, "it is no longer the writer of the group: another member is, in term %d. Change --group-join", me.Term)
	case !memberForm(h.Member):
		return me.refuse(refusedGroup, "a member has no id")
	case h.Purpose != forGroup && h.Purpose != forAPI:
		return me.refuse(refusedFormat, "svc %s does not know connections for %q", me.Version, h.Purpose)
	}
	return &reply{hello: me}
}

// successor returns the id of the member that this one handed over to, or "".
func (w *Writer) successor() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id.Successor
}

// memberForm reports whether a text has the form of newID: it is a part of paths.
func memberForm(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

// statusError is an error with the status that it is answered with.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

func refused(status int, message string, args ...any) error {
	return &statusError{status, fmt.Errorf(message, args...)}
}

// answer answers a request of a member.
func (s *serving) answer(rw http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request, *member) error) {
	s.asked.answer(rw, r, func(g *guest) error { return h(rw, r, s.w.see(g)) })
}

// maxMembers bounds the members that the writer knows. Those that were not seen for the longest time are forgotten first.
const maxMembers = 1000

// see records that a member is present.
func (w *Writer) see(g *guest) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.members[g.hello.Member]
	if m == nil {
		if len(w.members) >= maxMembers {
			var oldest *member
			for _, x := range w.members {
				if oldest == nil || x.seen.Before(oldest.seen) {
					oldest = x
				}
			}
			delete(w.members, oldest.id)
		}
		m = &member{id: g.hello.Member}
		w.members[g.hello.Member] = m
	}
	m.hello, m.addr, m.seen = *g.hello, g.RemoteAddr().String(), time.Now()
	return m
}

// move notes up to which entry a member has applied the log.
func (w *Writer) move(m *member, to Position, copies bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.pos != to || m.copies != copies {
		m.moved = time.Now()
	}
	m.pos, m.copies = to, copies
	if to == w.pos {
		m.moved = time.Now() // it waits, and does not stand still
	}
}

// log answers with entries behind a position.
func (s *serving) log(rw http.ResponseWriter, r *http.Request, m *member) error {
	after, err := ParsePosition(r.FormValue("after"))
	if err != nil {
		return refused(http.StatusBadRequest, "%w", err)
	}
	wait, _ := strconv.Atoi(r.FormValue("wait"))
	end := time.NewTimer(min(time.Duration(max(wait, 0))*time.Millisecond, maxWait))
	defer end.Stop()
	for waited := false; ; {
		t, appended, err := s.w.entries(after)
		if errors.Is(err, ErrCut) {
			return &statusError{http.StatusGone, err}
		}
		if err != nil {
			return err
		}
		if waited || len(t.Entries) > 0 {
			s.w.mark(m, t)
			b := t.Encode()
			rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
			return send(rw, b)
		}
		s.w.move(m, after, false)
		s.w.removeStateOnce(m)
		s.w.release()
		select {
		case <-appended:
		case <-end.C:
			waited = true
		case <-r.Context().Done():
			return nil
		case <-s.done:
			return refused(http.StatusServiceUnavailable, "the writer stops")
		}
	}
}

// entries returns the log entries after a position, up to batchBytes or a single entry, and a channel that the next entry closes.
func (w *Writer) entries(after Position) (*Batch, <-chan struct{}, error) {
	w.mu.Lock()
	pos, appended, broken := w.pos, w.appended, w.broken
	w.mu.Unlock()
	switch {
	case broken != nil:
		return nil, nil, refused(http.StatusServiceUnavailable, "the writer has no log: %w", broken)
	case !after.SameLog(pos) || after.Index > pos.Index:
		return nil, nil, fmt.Errorf("%w: position %v, and it is at %v", ErrCut, after, pos)
	}
	t := &Batch{Run: Position{pos.Term, pos.Run, after.Index + 1}, End: pos.Index, Now: time.Now().UnixNano()}
	if after.Index == pos.Index {
		return t, appended, nil
	}
	size := 0
	err := w.log.Read(after.Index+1, func(index uint64, entry []byte) bool {
		if index > pos.Index {
			return false
		}
		size += len(entry)
		if len(t.Entries) > 0 && size > batchBytes {
			return false
		}
		t.Entries = append(t.Entries, entry)
		return true
	})
	if errors.Is(err, logstore.ErrNotStored) {
		return nil, nil, fmt.Errorf("%w: it no longer has the entries after position %v", ErrCut, after)
	}
	if err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !pos.SameLog(w.pos) {
		return nil, nil, fmt.Errorf("%w: the writer has started a new log", ErrCut)
	}
	return t, appended, nil
}

// mark notes when the first entry of a batch was appended that a member is sent.
func (w *Writer) mark(m *member, t *Batch) {
	at := int64(0)
	if len(t.Entries) > 0 {
		if e, err := DecodeEntry(t.Entries[0]); err == nil {
			at = e.At
		}
	}
	after := t.Run
	after.Index--
	w.move(m, after, false)
	w.mu.Lock()
	m.entryAt = at
	w.mu.Unlock()
	w.release()
}

// send writes an answer in pieces, each with a deadline of its own.
func send(rw http.ResponseWriter, b []byte) error {
	c := http.NewResponseController(rw)
	for len(b) > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return nil // the member is away
		}
		n := min(len(b), copyBytes)
		if _, err := rw.Write(b[:n]); err != nil {
			return nil // as above
		}
		b = b[n:]
	}
	return nil
}

// state answers with an image of the data directory.
func (s *serving) state(rw http.ResponseWriter, r *http.Request, m *member) error {
	select {
	case s.states <- struct{}{}:
		defer func() { <-s.states }()
	default:
		return refused(http.StatusServiceUnavailable, "%d readers are already copying the state", maxStates)
	}
	st, err := s.w.take(m, s.stores)
	if err != nil {
		return err
	}
	b := st.Encode()
	if len(b) > maxState {
		return fmt.Errorf("the state has %d bytes, and at most %d are allowed", len(b), maxState)
	}
	rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	return send(rw, b)
}

// place returns where a file is that a member may fetch.
func (s *serving) place(name string, m *member) (string, error) {
	if _, err := asksFor(name, m.id); err != nil {
		return "", err
	}
	return path.Join(s.w.o.Dir, name), nil
}

// file answers with the bytes of a file from an offset on.
func (s *serving) file(rw http.ResponseWriter, r *http.Request, m *member) error {
	name := r.FormValue("name")
	at, err := s.place(name, m)
	if err != nil {
		return err
	}
	from, err := strconv.ParseInt(r.FormValue("from"), 10, 64)
	if err != nil || from < 0 {
		return refused(http.StatusBadRequest, "from is not an offset")
	}
	f, err := s.w.o.FS.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir() || from > info.Size():
		return refused(http.StatusNotFound, "%s has no byte %d", name, from)
	}
	rw.Header().Set(sizeHeader, strconv.FormatInt(info.Size(), 10))
	rw.Header().Set("Content-Length", strconv.FormatInt(info.Size()-from, 10))
	sum, whole, err := s.copy(rw, f, from, info.Size())
	if err != nil {
		s.w.o.Logger.Warn("a file was not sent completely", "file", name, "error", err)
	}
	if whole && from == 0 {
		s.w.sums.note(name, info.Size(), info.ModTime(), sum)
	}
	return nil // the connection ends behind an answer that is shorter than its head says
}

// copy sends the bytes of a file. whole is false when the member is away, or the file is shorter than it was.
func (s *serving) copy(rw http.ResponseWriter, f vfs.File, from, size int64) (sum xxh3.Uint128, whole bool, err error) {
	c, h, b := http.NewResponseController(rw), xxh3.New(), make([]byte, min(copyBytes, size-from))
	for at := from; at < size; {
		n, err := f.ReadAt(b[:min(int64(len(b)), size-at)], at)
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			return sum, false, err
		}
		if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return sum, false, nil
		}
		if _, err := rw.Write(b[:n]); err != nil {
			return sum, false, nil
		}
		if from == 0 {
			_, _ = h.Write(b[:n])
		}
		at += int64(n)
	}
	return h.Sum128(), true, nil
}

// sum answers with the size and the checksum of a file.
func (s *serving) sum(rw http.ResponseWriter, r *http.Request, m *member) error {
	name := r.FormValue("name")
	if _, err := s.place(name, m); err != nil {
		return err
	}
	f, known, err := s.w.sums.recall(name)
	if err == nil && !known {
		select {
		case s.summed <- struct{}{}:
		case <-r.Context().Done():
			return nil
		case <-s.done:
			return refused(http.StatusServiceUnavailable, "the writer stops")
		}
		f, err = s.w.sums.compute(name)
		<-s.summed
	}
	if err != nil {
		return err
	}
	sum := f.Sum.Bytes()
	b, err := json.Marshal(sumAnswer{f.Size, sum[:]})
	if err != nil {
		return err
	}
	return send(rw, b)
}

// sumAnswer is the answer to a request for the checksum of a file.
type sumAnswer struct {
	Size int64  `json:"size"`
	Sum  []byte `json:"sum"` // XXH3-128, big-endian
}

// removeStateOnce removes the copies that were made for a member which copies no longer.
func (w *Writer) removeStateOnce(m *member) {
	w.mu.Lock()
	has := m.stateMade
	m.stateMade = false
	w.mu.Unlock()
	if has {
		w.removeState(m.id)
	}
}

func (w *Writer) removeState(id string) {
	if err := w.o.FS.RemoveAll(path.Join(w.o.Dir, workDir, "state", id)); err != nil {
		w.o.Logger.Warn("cannot remove copies for a reader; the next start removes them", "error", err)
	}
}
