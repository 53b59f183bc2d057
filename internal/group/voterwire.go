package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"github.com/zeebo/xxh3"

	"svc/internal/consensus"
)

// Paths of requests between voters, in addition to those of state, file and sum.
const (
	pathJoin   = "/group/join"
	pathLacks  = "/group/lacks"
	pathLapsed = "/group/lapsed"
	pathLatest = "/group/latest"
	pathSpool  = "/group/spool"
)

const (
	raftTime   = 5 * time.Second // for an answer of raft
	maxLacking = 4 << 20         // bytes of a list of files
	// maxPeerConns limits the connections to a member, except those of raft and of clients.
	maxPeerConns = 16
	// statesPause is how long the image that was made for a member stays after its last request. A member that has most files first
	// computes their checksums, and sends no requests meanwhile.
	statesPause = 6 * time.Hour
)

func hash128(b []byte) xxh3.Uint128 { return xxh3.Hash128(b) }

func newBytes(b []byte) io.Reader { return bytes.NewReader(b) }

// hello is how the voter introduces itself.
func (v *Voter) hello() *hello {
	node := v.current()
	leader := ""
	if node != nil {
		_, leader = node.Leader()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	group := v.id.Group
	if v.id.Founds { // the founder must be ready before others can join
		group = ""
	}
	return &hello{Protocol: protocol, Format: v.o.Format, Version: v.o.Version, Group: group, Name: v.id.Name, Member: v.id.Member, Role: RoleVoter, Term: v.id.Term, Data: v.data, Leader: leader, Time: v.o.now().UnixMilli(), Level: v.o.level, Run: v.run}
}

func (v *Voter) current() *consensus.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.node
}

// absent says why this voter does not take part yet.
func (v *Voter) absent() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.id.Group == "" || v.id.Founds {
		return "is in no group yet"
	}
	return "has not opened the log of its group yet"
}

// admit returns the reply to a member that connects.
func (v *Voter) admit(h *hello) *reply {
	me := v.hello()
	v.learn(h)
	own := *me
	if own.Group == "" {
		own.Group = h.Group // this voter is in no group yet: it accepts the group of any member
	}
	if r := own.compatible(h); r != nil {
		return r
	}
	switch {
	case h.Role != RoleVoter && (h.Role != RoleReader || h.Purpose == forVotes):
		return me.refuse(refusedRole, "it is a voter of the group, and follows no %s. Start all members with --group-role voter or reader", h.Role)
	case !memberForm(h.Member):
		return me.refuse(refusedGroup, "a member has no id")
	case h.Role == RoleReader && h.Level < v.written():
		return me.refuse(refusedFormat, "svc %s does not read the log that its voters write with svc %s. Upgrade readers before voters", h.Version, me.Version)
	case h.Purpose == forVotes && (me.Group == "" || v.current() == nil):
		r := me.refuse(refusedRole, "it %s", v.absent())
		r.early = true
		return r
	case h.Purpose == forAPI && !v.leads():
		return me.refuse(refusedRole, "it does not lead the group")
	case h.Purpose != forGroup && h.Purpose != forAPI && h.Purpose != forVotes:
		return me.refuse(refusedFormat, "svc %s does not know connections for %q", me.Version, h.Purpose)
	}
	return &reply{hello: *me}
}

func (v *Voter) leads() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reign != nil
}

// dialer returns a client of one address.
func (v *Voter) dialer(addr string) *client {
	return newClient([]string{addr}, v.own, v.key, v.hello, v.learn)
}

// serve answers other members on a listener.
func (v *Voter) serve(l net.Listener) error {
	d := newDoor(l, v.own, v.key, v.admit, func() {}, v.o.Logger)
	v.door = d
	if err := v.o.FS.RemoveAll(v.path(path.Join(workDir, "state"))); err != nil {
		return err
	}
	mux := http.NewServeMux()
	for pattern, h := range v.routes() {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			v.asked.answer(rw, r, func(g *guest) error {
				if g.hello.Role == RoleReader && !slices.Contains(readerPaths, r.URL.Path) {
					return refused(http.StatusForbidden, "this request is for voters")
				}
				return h(rw, r)
			})
		})
	}
	v.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: helloTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			g, _ := c.(*guest)
			return context.WithValue(ctx, guestKey{}, g)
		},
	}
	v.peers = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return v.dialer(addr).dial(ctx, addr, forGroup)
		},
		MaxIdleConnsPerHost: 4, MaxConnsPerHost: maxPeerConns, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}
	d.open()
	v.running.Go(func() { _ = v.http.Serve(d.group) }) // it ends with Close
	return nil
}

// routes are the requests that other members make.
func (v *Voter) routes() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"POST " + pathJoin: v.join, "POST " + pathLacks: v.lacks, "PUT " + pathSpool: v.receive, "GET " + pathLatest: v.latest, "POST " + pathLapsed: v.lapse,
		"GET " + pathState: v.state, "GET " + pathFile: v.file, "GET " + pathSum: v.sum, "GET " + pathLog: v.log,
	}
}

// API returns the listener with the connections of clients whose requests other members forward.
func (v *Voter) API() net.Listener { return v.door.api }

// DialAPI connects to the API of the leader, to forward a request of a client.
func (v *Voter) DialAPI(ctx context.Context) (net.Conn, error) {
	node := v.current()
	if node == nil {
		return nil, &awayError{err: fmt.Errorf("this server %s", v.absent())}
	}
	id, addr := node.Leader()
	if addr == "" {
		return nil, &awayError{err: errors.New("the group has no leader now")}
	}
	if id == v.hello().Member && !v.leads() {
		return nil, &awayError{err: errors.New("this server is about to lead the group")}
	}
	return v.dialer(addr).dial(ctx, addr, forAPI)
}

// send sends a request to another member.
func (v *Voter) send(ctx context.Context, method, addr, target string, q url.Values, body io.Reader, size int64, answer func(io.Reader) error) error {
	u := "http://" + addr + target
	if q != nil {
		u += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return err
	}
	if body != nil {
		req.ContentLength = size
	}
	resp, err := v.peers.Do(req)
	if err != nil {
		return &awayError{err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return &awayError{err: fmt.Errorf("%s answers %d: %s", addr, resp.StatusCode, strings.TrimSpace(string(text)))}
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return answer(resp.Body)
}

// check returns an error if files of entries are missing here or not durable. A file may exist although its sync has failed or is
// still to come.
func (v *Voter) check(entries []consensus.Entry) error {
	keys, err := v.keysOf(entries)
	if err != nil {
		return err
	}
	applied := v.noted()
	maps.DeleteFunc(keys, func(_ string, index uint64) bool { return index <= applied })
	for key, index := range keys {
		if !v.spool.has(key, index) {
			return fmt.Errorf("entry %d names a file that is not here", index)
		}
	}
	return v.spool.sync(maps.Keys(keys))
}

// lacks answers which files are not here of those that are named, with the last entries that name them. An applied entry needs none.
func (v *Voter) lacks(rw http.ResponseWriter, r *http.Request) error {
	var ask map[string]uint64
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxLacking)).Decode(&ask); err != nil {
		return refused(http.StatusBadRequest, "this is no list of files")
	}
	if v.current() == nil {
		return refused(http.StatusServiceUnavailable, "this member %s", v.absent())
	}
	lacks, applied := []string{}, v.noted()
	for key, index := range ask {
		if index > applied && !v.spool.has(key, index) {
			lacks = append(lacks, key)
		}
	}
	return json.NewEncoder(rw).Encode(lacks)
}

// receive takes a file of an entry that the leader will send, into the spool.
func (v *Voter) receive(rw http.ResponseWriter, r *http.Request) error {
	index, err := strconv.ParseUint(r.FormValue("index"), 10, 64)
	if err != nil {
		return refused(http.StatusBadRequest, "index is no number")
	}
	if v.current() == nil {
		return refused(http.StatusServiceUnavailable, "this member %s", v.absent())
	}
	return v.spool.receive(r.FormValue("key"), index, &deadlined{r.Body, http.NewResponseController(rw)})
}

// deadlined is a body each of whose reads has a deadline.
type deadlined struct {
	io.Reader
	c *http.ResponseController
}

func (d *deadlined) Read(p []byte) (int, error) {
	if err := d.c.SetReadDeadline(time.Now().Add(shipTime)); err != nil {
		return 0, err
	}
	return d.Reader.Read(p)
}

// guestOf returns the member that asks.
func guestOf(r *http.Request) (string, error) {
	g, _ := r.Context().Value(guestKey{}).(*guest)
	if g == nil {
		return "", refused(http.StatusForbidden, "no member")
	}
	return g.hello.Member, nil
}

// state answers with an image of the directory.
func (v *Voter) state(rw http.ResponseWriter, r *http.Request) error {
	id, err := guestOf(r)
	if err != nil {
		return err
	}
	if g, _ := r.Context().Value(guestKey{}).(*guest); g.hello.Role == RoleReader {
		if !v.leads() {
			return refused(http.StatusServiceUnavailable, "this member does not lead the group")
		}
		v.see(g, func(x *reading) { x.state = true })
	}
	v.fetches(id, true)
	st, err := v.take(id, v.sums)
	v.fetches(id, true)
	if err != nil {
		return err
	}
	b := st.Encode()
	rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	return send(rw, b)
}

// place returns where to find a file of an image that a member fetches.
func (v *Voter) place(r *http.Request) (name, at string, err error) {
	id, err := guestOf(r)
	if err != nil {
		return "", "", err
	}
	v.fetches(id, false)
	name = r.FormValue("name")
	key := r.FormValue("key")
	if key != "" {
		if _, _, ok := parseKey(key); !ok {
			return "", "", refused(http.StatusBadRequest, "%.100q names no file", key)
		}
		if at := path.Join(spoolDir, key); v.exists(at) {
			return name, at, nil
		}
	}
	made, err := asksFor(name, id)
	if err != nil || made {
		return name, name, err
	}
	at = path.Join(pinnedDir(id), name)
	if key != "" && !v.exists(at) {
		at = name // the member checks that it is this file still
	}
	return name, at, nil
}

func (v *Voter) exists(name string) bool {
	_, err := v.o.FS.Stat(v.path(name))
	return err == nil
}

// file answers with the bytes of a file of an image, from an offset on.
func (v *Voter) file(rw http.ResponseWriter, r *http.Request) error {
	name, at, err := v.place(r)
	if err != nil {
		return err
	}
	from, err := strconv.ParseInt(r.FormValue("from"), 10, 64)
	if err != nil || from < 0 {
		return refused(http.StatusBadRequest, "from is no offset")
	}
	f, err := v.o.FS.Open(v.path(at))
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
	c, b := http.NewResponseController(rw), make([]byte, min(copyBytes, info.Size()-from))
	for pos := from; pos < info.Size(); {
		n, err := f.ReadAt(b[:min(int64(len(b)), info.Size()-pos)], pos)
		if n == 0 {
			v.o.Logger.Warn("a file is not sent to the end", "file", name, "error", err)
			return nil // the connection ends behind an answer that is shorter than its head says
		}
		if c.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
			return nil // the member is away
		}
		if _, err := rw.Write(b[:n]); err != nil {
			return nil // as above
		}
		if g, _ := r.Context().Value(guestKey{}).(*guest); g != nil {
			v.fetches(g.hello.Member, false)
		}
		pos += int64(n)
	}
	return nil
}

// sum answers with the size and the checksum of a file of an image.
func (v *Voter) sum(rw http.ResponseWriter, r *http.Request) error {
	_, at, err := v.place(r)
	if err != nil {
		return err
	}
	f, err := v.sums.of(at)
	if err != nil {
		return err
	}
	sum := f.Sum.Bytes()
	b, err := json.Marshal(sumAnswer{f.Size, sum[:]})
	if err != nil {
		return err
	}
	rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	return send(rw, b)
}

// votes is the raft.StreamLayer of a voter.
type votes struct {
	*room
	v *Voter
}

// Dial connects to another voter.
func (l *votes) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.v.dialer(string(addr)).dial(ctx, string(addr), forVotes)
}

// Addr returns the address by which the others know this voter.
func (l *votes) Addr() net.Addr { return voterAddr(l.v.o.Addr) }

type voterAddr string

func (a voterAddr) Network() string { return "tcp" }
func (a voterAddr) String() string  { return string(a) }
