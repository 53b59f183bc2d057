package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"svc/internal/vfs"
)

// cluster is a group in virtual time: disks are in memory, and messages take no time by default.
type cluster struct {
	t    *testing.T
	all  []*fellow
	bare bool // raft alone, without the additions of this package

	mu    sync.Mutex
	beats map[raft.ServerAddress]func(raft.RPC) // the heartbeat handlers of members
	speed int                                   // bytes per second to each member; 0: no limit
	file  int                                   // size of the file of each entry
}

// slow has messages to members take their time from now on.
func (c *cluster) slow(speed, file int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speed, c.file = speed, file
}

// takes returns how long entries of so many bytes, and a file, take to arrive.
func (c *cluster) takes(bytes int) (entries, file time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.speed == 0 {
		return 0, 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(c.speed), time.Duration(c.file) * time.Second / time.Duration(c.speed)
}

// fellow is a member. Its data directory is the list of entries that it has applied.
type fellow struct {
	c       *cluster
	id      string
	disk    *disk
	carrier *carrier
	node    *Node
	stop    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	files   map[string]bool // files on its disk that entries name
	data    []string        // changes, in order
	applied uint64
	noted   uint64 // last applied index that the log has stored
	saved   uint64 // value of noted when the log was last cut
	shipped int
	gone    bool // has no files for others any more
	lapsed  bool // the leader has detected that it lost entries
}

// disk can stall and fail.
type disk struct {
	vfs.FS
	mu      sync.Mutex
	failing bool          // for the log
	full    bool          // no room for any file
	stall   chan struct{} // nil: not stalled
	latency time.Duration // time of an append
}

var errDisk = errors.New("the disk fails")

func (d *disk) write(f func() error) error {
	d.mu.Lock()
	failing := d.failing
	d.mu.Unlock()
	if failing {
		return errDisk
	}
	return f()
}

// wait waits until the stall ends. Call it without locks: virtual time stands still while a goroutine waits for one.
func (d *disk) wait() {
	d.mu.Lock()
	stall, latency := d.stall, d.latency
	d.mu.Unlock()
	if stall != nil {
		<-stall
	}
	time.Sleep(latency)
}

// slow has appends take some milliseconds.
func (d *disk) slow(milliseconds int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latency = time.Duration(milliseconds) * time.Millisecond
}

func (d *disk) set(failing bool, stall chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing, d.stall = failing, stall
}

// fill makes the disk full, or makes room again.
func (d *disk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	d.mu.Lock()
	full := d.full
	d.mu.Unlock()
	switch {
	case err != nil:
		return f, err
	case full:
		return nil, errors.Join(errDisk, f.Close())
	case !strings.Contains(name, "/"+logDir+"/"):
		return f, nil
	}
	return &diskFile{f, d}, nil
}

type diskFile struct {
	vfs.File
	d *disk
}

func (f *diskFile) Write(p []byte) (n int, err error) {
	err = f.d.write(func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *diskFile) Sync() error { return f.d.write(f.File.Sync) }

// messageTime limits the time of a message.
const messageTime = 5 * time.Second

// carrier is a transport that tests can cut. Like the real one, it sends entries within messageTime or not at all.
type carrier struct {
	*raft.InmemTransport
	c    *cluster
	mu   sync.Mutex
	cut  map[raft.ServerAddress]bool
	lose func(to raft.ServerAddress, answer bool) bool // reports whether a message with entries or a commit index is lost; nil: none is
	late chan struct{}                                 // answers to entries and heartbeats arrive when it is closed; nil: at once
}

// reach has messages arrive at a member, or not.
func (c *carrier) reach(m *fellow, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[raft.ServerAddress(m.id)] = !yes
}

// wait waits while answers are late.
func (c *carrier) wait() {
	c.mu.Lock()
	late := c.late
	c.mu.Unlock()
	if late != nil {
		<-late
	}
}

// delay has answers wait until the returned function is called.
func (c *carrier) delay() (arrive func()) {
	late := make(chan struct{})
	set := func(late chan struct{}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.late = late
	}
	set(late)
	return func() {
		set(nil)
		close(late)
	}
}

func (c *carrier) to(addr raft.ServerAddress) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut[addr] {
		return errors.New("cut")
	}
	return nil
}

// loses returns an error if a message, or its answer, is lost.
func (c *carrier) loses(to raft.ServerAddress, answer bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lose != nil && c.lose(to, answer) {
		return errors.New("lost")
	}
	return nil
}

func (c *carrier) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := c.to(addr); err != nil {
		return err
	}
	if args.PrevLogEntry == 0 && len(args.Entries) == 0 && args.LeaderCommitIndex == 0 {
		if err := c.c.beat(addr, args, resp); err != nil {
			return err
		}
		c.wait()
		return c.to(addr)
	}
	if err := c.loses(addr, false); err != nil {
		return err
	}
	bytes := 0
	for _, l := range args.Entries {
		bytes += len(l.Data)
	}
	d, _ := c.c.takes(bytes)
	time.Sleep(min(d, messageTime))
	if d > messageTime {
		return errors.New("the message is not sent in time")
	}
	if err := c.InmemTransport.AppendEntries(id, addr, args, resp); err != nil {
		return err
	}
	c.wait()
	if err := c.loses(addr, true); err != nil {
		return err
	}
	return c.to(addr) // the answer
}

// SetHeartbeatHandler implements raft.Transport. As in the real transport, heartbeats do not wait for other messages.
func (c *carrier) SetHeartbeatHandler(take func(raft.RPC)) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.beats[c.LocalAddr()] = take
}

// beat delivers a heartbeat to a member.
func (c *cluster) beat(to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	c.mu.Lock()
	take := c.beats[to]
	c.mu.Unlock()
	if take == nil {
		return errors.New("it does not run")
	}
	answer := make(chan raft.RPCResponse, 1)
	take(raft.RPC{Command: args, RespChan: answer})
	select {
	case a := <-answer:
		*resp = *a.Response.(*raft.AppendEntriesResponse)
		return a.Error
	case <-time.After(messageTime):
		return errors.New("no answer")
	}
}

func (c *carrier) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := c.to(addr); err != nil {
		return err
	}
	if err := c.InmemTransport.RequestVote(id, addr, args, resp); err != nil {
		return err
	}
	return c.to(addr)
}

func (c *carrier) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := c.to(addr); err != nil {
		return err
	}
	if err := c.InmemTransport.RequestPreVote(id, addr, args, resp); err != nil {
		return err
	}
	return c.to(addr)
}

func (c *carrier) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if err := c.to(addr); err != nil {
		return err
	}
	return c.InmemTransport.InstallSnapshot(id, addr, args, resp, data)
}

const testDir = "data/ballot"

// run runs f with a group of n voters in virtual time.
func run(t *testing.T, n int, bare bool, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, bare: bare, beats: map[raft.ServerAddress]func(raft.RPC){}}
		defer func() {
			for _, m := range c.all {
				m.close()
			}
		}()
		for i := range n {
			c.add(i == 0)
		}
		for _, m := range c.all[1:] {
			l := c.leader()
			c.must(l.node.Add(Member{m.id, m.id, false}))
			c.until("a member has joined", func() bool {
				index, _, known := l.node.Matched(m.id)
				return known && index > 0
			})
			c.must(l.node.Add(Member{m.id, m.id, true}))
		}
		f(c)
	})
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// add adds a member and starts it.
func (c *cluster) add(first bool) *fellow {
	m := &fellow{c: c, id: fmt.Sprintf("m%d", len(c.all)), disk: &disk{FS: vfs.NewMem()}, files: map[string]bool{}}
	c.all = append(c.all, m)
	c.must(m.disk.MkdirAll(path.Dir(testDir)))
	if first {
		c.must(Found(m.disk, testDir, m.id, m.id))
		m.applied = 1
	}
	m.open()
	return m
}

// open starts a member.
func (m *fellow) open() {
	_, trans := raft.NewInmemTransportWithTimeout(raft.ServerAddress(m.id), time.Second)
	m.carrier = &carrier{InmemTransport: trans, c: m.c, cut: map[raft.ServerAddress]bool{}}
	for _, o := range m.c.all {
		if o != m && o.carrier != nil {
			o.carrier.Connect(raft.ServerAddress(m.id), trans)
			trans.Connect(raft.ServerAddress(o.id), o.carrier.InmemTransport)
		}
	}
	node, err := Open(m.c.t.Context(), Options{
		FS: m.disk, Dir: testDir, ID: m.id, Carrier: m.carrier, Logger: slog.New(slog.NewTextHandler(m.c.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})).With("member", m.id), fileSize: 4096, threshold: 64, trailing: 32,
		Ship: m.ship, Check: m.check, Forget: func(string) {}, Lapsed: m.lapse, Applied: m.has, Restore: m.restore, stall: m.disk.wait, bare: m.c.bare,
		Positions: &Positions{Made: m.has, Noted: m.note, Keep: m.save},
	})
	m.c.must(err)
	m.node, m.stop = node, make(chan struct{})
	m.ended.Go(m.follow)
}

// close stops a member.
func (m *fellow) close() {
	if m.node == nil {
		return
	}
	close(m.stop)
	m.c.mu.Lock()
	delete(m.c.beats, raft.ServerAddress(m.id))
	m.c.mu.Unlock()
	if err := m.node.Close(); err != nil && !errors.Is(err, errDisk) {
		m.c.t.Errorf("%s: %v", m.id, err)
	}
	m.ended.Wait()
	m.node = nil
}

// crash cuts the power of members, which must be isolated already. Their disks keep one of the states that a power cut may leave.
func (c *cluster) crash(r *rand.Rand, members ...*fellow) {
	var left []*fellow
	for _, m := range members {
		m.mu.Lock()
		was := &fellow{data: slices.Clone(m.data), applied: m.applied, noted: m.noted}
		m.mu.Unlock()
		was.disk = &disk{FS: m.disk.FS.(*vfs.MemFS).CrashClone(r)}
		m.mu.Lock()
		was.saved = m.saved
		m.mu.Unlock()
		left = append(left, was)
	}
	time.Sleep(2 * time.Second) // their last actions have no effect, and raft drops proposals when it closes
	for i, m := range members {
		m.close()
		was := left[i]
		m.disk, m.data, m.applied, m.noted, m.saved = was.disk, was.data, was.applied, was.noted, was.saved
		found, err := Noted(m.disk, testDir, m.id, func(Entry) error { return nil })
		c.must(err)
		if max(found, m.saved) < m.noted {
			c.t.Errorf("%s had stored applied index %d, after a crash it has %d", m.id, m.noted, max(found, m.saved))
		}
	}
}

func (m *fellow) note(index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noted = max(m.noted, index)
}

func (m *fellow) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = m.noted
	return nil
}

func (m *fellow) has() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applied
}

// follow applies committed entries.
func (m *fellow) follow() {
	for {
		s, changed := m.node.State()
		for from := m.has() + 1; from <= s.Committed; from = m.has() + 1 {
			if m.node.Entries(from, s.Committed, m.apply) != nil {
				break // the node is being opened
			}
		}
		select {
		case <-changed:
		case <-m.stop:
			return
		}
	}
}

func (m *fellow) apply(e Entry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Index != m.applied+1 {
		return false
	}
	if e.Data != nil {
		if !m.files[string(e.Data)] {
			m.c.t.Errorf("%s applies entry %d without its file", m.id, e.Index)
		}
		m.data = append(m.data, string(e.Data))
	}
	m.applied = e.Index
	return true
}

func (c *cluster) of(id string) *fellow {
	i := slices.IndexFunc(c.all, func(m *fellow) bool { return m.id == id })
	return c.all[i]
}

// ship sends the files of entries to another member. The content of each file is unique.
func (m *fellow) ship(id, _ string, entries []Entry) error {
	m.mu.Lock()
	gone, applied := m.gone, m.applied
	m.mu.Unlock()
	to := m.c.of(id)
	if _, d := m.c.takes(0); d > 0 {
		for _, e := range entries {
			to.mu.Lock()
			had := to.files[string(e.Data)]
			to.mu.Unlock()
			if !had {
				time.Sleep(d)
			}
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, e := range entries {
		if !to.files[string(e.Data)] && e.Index > to.applied {
			if gone && e.Index <= applied { // files of later entries stay
				return ErrGone
			}
			to.files[string(e.Data)] = true
			to.shipped++
		}
	}
	return nil
}

func (m *fellow) check(entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if !m.files[string(e.Data)] && e.Index > m.applied {
			return errors.New("a file is missing")
		}
	}
	return nil
}

// restore copies the data of a member that has enough.
func (m *fellow) restore(index uint64) error {
	for _, o := range m.c.all {
		if o == m {
			continue
		}
		o.mu.Lock()
		applied, data := o.applied, slices.Clone(o.data)
		o.mu.Unlock()
		if applied < index {
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.applied, m.data, m.saved = applied, data, applied
		for _, d := range data {
			m.files[d] = true
		}
		return nil
	}
	return errors.New("no member has the data")
}

// lapse records that a member lost entries that it had.
func (m *fellow) lapse(id, _ string, _, _ uint64) {
	to := m.c.of(id)
	to.mu.Lock()
	defer to.mu.Unlock()
	to.lapsed = true
}

// keep has a member have the files of entries.
func (m *fellow) keep(data ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range data {
		m.files[d] = true
	}
}

// proposeNow proposes an entry in the last term in which a node led.
func proposeNow(n *Node, data string) error {
	s, _ := n.State()
	_, err := n.Propose(s.Term, []byte(data), nil)
	return err
}

// propose proposes an entry to a member.
func (m *fellow) propose(data string) error {
	m.keep(data)
	done := make(chan error, 1)
	node := m.node
	go func() {
		done <- proposeNow(node, data)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * time.Minute):
		m.c.t.Errorf("the fate of entry %q of %s is unknown: %s", data, m.id, m.c)
		return errors.New("no answer")
	}
}

// String describes the state of the members.
func (c *cluster) String() string {
	var b strings.Builder
	for _, m := range c.all {
		if m.node == nil {
			fmt.Fprintf(&b, "%s is closed; ", m.id)
			continue
		}
		s, _ := m.node.State()
		_, leader := m.node.Leader()
		m.mu.Lock()
		fmt.Fprintf(&b, "%s: %+v, leader %s, applied %d, log %d to %d, gone %v, config %+v at %d, kept %+v, suspicion %v; ", m.id, s, leader, m.applied, m.node.log.First(), m.node.log.Next(), m.gone, m.node.config, m.node.configA, m.node.notes.last(), m.node.guard.stands())
		m.mu.Unlock()
	}
	return b.String()
}

// until waits for up to half an hour of virtual time: a sick member is out for minutes.
func (c *cluster) until(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never: %s: %s", what, c)
		}
	}
}

// leads returns the leader, which must not be one of but, or nil.
func (c *cluster) leads(but ...*fellow) *fellow {
	for _, m := range c.all {
		if m.node == nil || slices.Contains(but, m) {
			continue
		}
		if s, _ := m.node.State(); s.Leads {
			return m
		}
	}
	return nil
}

// leader waits until a member leads that is not one of but.
func (c *cluster) leader(but ...*fellow) (m *fellow) {
	c.t.Helper()
	c.until("a member leads", func() bool {
		m = c.leads(but...)
		return m != nil
	})
	return m
}

// cut isolates a member, or reconnects it.
func (c *cluster) cut(m *fellow, cut bool) {
	for _, o := range c.all {
		if o == m {
			continue
		}
		m.carrier.reach(o, !cut)
		o.carrier.reach(m, !cut)
	}
}

// agree waits until all members have applied the same entries, and returns them.
func (c *cluster) agree() []string {
	c.t.Helper()
	var last []string
	c.until("all have the same", func() bool {
		committed := uint64(0)
		for _, m := range c.all {
			s, _ := m.node.State()
			committed = max(committed, s.Committed)
		}
		for i, m := range c.all {
			if m.has() < committed {
				return false
			}
			m.mu.Lock()
			data := slices.Clone(m.data)
			m.mu.Unlock()
			if i > 0 && !slices.Equal(data, last) {
				return false
			}
			last = data
		}
		return true
	})
	return last
}
