package standby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
)

var (
	idealSeeds = flag.Int("ideal-seeds", 20, "how many schedules TestMembersOfAnIdealLog runs")
	idealSeed  = flag.Uint64("ideal-seed", 0, "the first seed of TestMembersOfAnIdealLog; 0: the time")
	idealTrace = flag.Bool("ideal-trace", false, "TestMembersOfAnIdealLog prints what it does")
)

// errNoLead is the error of a change of a leader that has lost the lead. The log may have the change.
var errNoLead = errors.New("another member leads")

// schedule runs three members of a group on an ideal log, which orders their changes within this process. Whenever all goroutines wait, a
// seed decides the next step: the log accepts a change of the leader, loses it, or accepts it and loses the answer; a member applies a
// change; a client asks the leader for something; a member is killed and restarted; another member leads.
type schedule struct {
	history
	r     *rand.Rand
	all   []*peer
	keeps bool   // so members do not sync them
	stack []byte // stacks of all goroutines

	leader *peer // nil: no leader
	ready  bool  // the stores of the leader are open to lead
	leads  chan error
	closes chan error // result of closing the stores for a hand-over; nil: no hand-over

	requests int      // requests that the client has left
	asks     *request // the request without an answer; nil: none
	answer   chan error
	doubt    *request       // a task that had no answer: the next leader shows whether the log has it
	shown    map[int]string // what followers showed, by number of changes
	counts   map[string]int

	mu      sync.Mutex
	waiting []*proposal
}

// peer is a member with open stores, which lead if it is the leader, and follow otherwise.
type peer struct {
	*liveMember
	number int
	deaths int          // number of kills
	at     int          // number of changes that it knows to have applied
	most   int          // number of changes that it may have applied
	left   atomic.Int64 // file operations before its disk fails
	port   *port        // log of its stores
}

// port is the log as the stores of a member see it, from opening to closing.
type port struct {
	s     *schedule
	disk  *vfs.MemFS
	dir   string
	leads bool // under the schedule's mu
}

// proposal is a change of the leader that the log has not accepted yet.
type proposal struct {
	change recorded
	answer chan error // nil: accepted, must be applied
	made   chan error
}

// Keep implements commit.Keeper.
func (p *port) Keep(string, []byte) bool { return p.s.keeps }

// Do waits until the schedule has decided the fate of a change.
func (p *port) Do(c commit.Change, apply func() error) error {
	s := p.s
	x := &proposal{change: recorded{c, map[string][]byte{}}, answer: make(chan error), made: make(chan error, 1)}
	x.change.Data, x.change.Files, x.change.Contents = bytes.Clone(c.Data), slices.Clone(c.Files), nil
	if s.keeps && c.Kind == commit.Tasks {
		for _, b := range c.Contents {
			x.change.Contents = append(x.change.Contents, bytes.Clone(b))
		}
	}
	s.mu.Lock()
	leads := p.leads
	if leads {
		for _, name := range c.Files {
			b, err := vfs.ReadFile(p.disk, path.Join(p.dir, name))
			if err != nil {
				s.t.Errorf("a change (%v) of %s names a file that is not there: %v", c.Kind, c.Name, err)
			}
			x.change.files[name] = b
		}
		s.waiting = append(s.waiting, x)
	}
	s.mu.Unlock()
	if !leads {
		return errNoLead
	}
	if err := <-x.answer; err != nil {
		return err
	}
	err := apply()
	if err != nil { // later changes of the stores, derived from the error, do not reach the log
		s.mu.Lock()
		p.leads = false
		s.mu.Unlock()
	}
	x.made <- err
	return err
}

// waiters are the states of goroutines that continue when another goroutine acts or time passes.
var waiters = []string{"chan receive", "chan send", "select", "sync.", "semacquire", "sleep"}

// settle waits until all other goroutines wait.
func (s *schedule) settle() {
	for end := time.Now().Add(time.Minute); ; {
		for range 8 {
			runtime.Gosched()
		}
		text := s.stack[:runtime.Stack(s.stack, true)]
		busy := false
		for n := 0; len(text) > 0 && !busy; n++ {
			head, rest, _ := bytes.Cut(text, []byte("\n\n"))
			_, state, _ := bytes.Cut(head[:min(len(head), 100)], []byte("["))
			busy = n > 0 && !slices.ContainsFunc(waiters, func(w string) bool { return bytes.HasPrefix(state, []byte(w)) })
			text = rest
		}
		switch {
		case !busy:
			return
		case time.Now().After(end):
			s.t.Fatalf("goroutines do not wait:\n%s", s.stack)
		}
	}
}

// What schedules count.
const (
	leadEnds       = "the lead ends"
	leadHandedOver = "the leader hands over"
	unmade         = "the leader cannot make a change"
	noAnswer       = "the log has a change without an answer"
	memberKilled   = "a member is killed"
	killedInChange = "a member is killed in a change"
	payloadMended  = "a payload is made whole"
)

// note counts an event, and prints it if asked to.
func (s *schedule) note(what string, args ...any) {
	s.counts[what]++
	if *idealTrace {
		s.t.Logf("%3d %s %v", len(s.changes), what, args)
	}
}

// pending returns the waiting proposals sorted by name, because their order of arrival is random.
func (s *schedule) pending() []*proposal {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.waiting, func(a, b *proposal) int { return strings.Compare(a.change.Name, b.change.Name) })
	return s.waiting
}

// take accepts a change into the log. The leader then applies it, or fails to.
func (s *schedule) take(x *proposal, fails bool) {
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(y *proposal) bool { return y == x })
	s.changes = append(s.changes, x.change)
	s.mu.Unlock()
	l := s.leader
	if fails {
		l.left.Store(s.r.Int64N(4))
	}
	l.most = len(s.changes)
	x.answer <- nil
	err := <-x.made
	l.left.Store(math.MaxInt64)
	switch {
	case err == nil:
		l.at++
	case !errors.Is(err, errStopped):
		s.t.Errorf("the leader cannot apply change %d: %v", len(s.changes), err)
	default:
		s.note(unmade, l.number)
		s.depose()
	}
}

// depose ends the lead of a member, which is killed or hears of another leader. The log may have any of its unanswered changes.
func (s *schedule) depose() {
	killed := s.r.IntN(2) == 0
	s.endLead(killed, s.r)
}

// endLead is depose for a leader that may be killed. Without r, the log has none of its unanswered changes.
func (s *schedule) endLead(killed bool, r *rand.Rand) {
	l := s.leader
	disk := l.disk
	if killed {
		disk = l.disk.CrashClone(s.r)
	}
	s.note(leadEnds, l.number, killed)
	s.refuse(r)
	if s.closes != nil {
		s.closed(<-s.closes)
	} else {
		s.closed(l.shut())
	}
	if !s.ready {
		if err := <-s.leads; err != nil && !errors.Is(err, errNoLead) {
			s.t.Errorf("member %d cannot lead: %v", l.number, err)
		}
	}
	s.leader, s.ready, s.closes = nil, false, nil
	s.start(l, disk, killed)
}

// refuse makes the log accept no more changes of the leader. With r, it may have any of the unanswered ones.
func (s *schedule) refuse(r *rand.Rand) {
	pending := s.pending()
	s.mu.Lock()
	s.leader.port.leads, s.waiting = false, nil
	s.mu.Unlock()
	for _, x := range pending {
		if r != nil && r.IntN(2) == 0 {
			s.counts[noAnswer]++
			s.changes = append(s.changes, x.change)
		}
		x.answer <- errNoLead
	}
}

// closed reports an error of closing stores, except the loss of the lead.
func (s *schedule) closed(err error) {
	if err != nil && !errors.Is(err, errNoLead) {
		s.t.Errorf("the stores cannot be closed: %v", err)
	}
}

// shut closes the stores.
func (p *peer) shut() error {
	return errors.Join(p.queue.Close(), p.keys.Close(), p.catalog.Close(), p.Directory.Close())
}

// start opens the stores of a member. A killed member may not know the last change that it applied.
func (s *schedule) start(p *peer, disk *vfs.MemFS, killed bool) {
	if killed {
		// The position is durable before the next change begins, however often the member is killed: Directory.Apply requires it.
		p.at = max(p.at-s.r.IntN(2), p.most-1)
	}
	if killed && s.keeps {
		s.mend(disk, p.member.dir, p.most)
	}
	p.disk, p.port = disk, &port{s: s, disk: disk, dir: p.member.dir}
	if p.svc != nil {
		s.reported(p)
	}
	p.left.Store(math.MaxInt64)
	hooked := vfs.Hook(disk, func(o vfs.Op) error {
		if o.Kind.Changes() && p.left.Add(-1) < 0 {
			return errStopped
		}
		return nil
	})
	p.svc = open(s.t, p.member.dir, commit.On(hooked, p.member.dir, p.port), 1+s.r.IntN(4), true)
	p.attach(s.t, hooked)
	if killed {
		p.deaths++
	}
	p.queue.RunIn(p.process(), func(all []string) (living []string) {
		for _, o := range s.all {
			if slices.Contains(all, o.process()) {
				living = append(living, o.process())
			}
		}
		return living
	})
}

// mend restores payloads from the first n changes of the log, on a disk after a crash.
func (s *schedule) mend(disk *vfs.MemFS, dir string, n int) {
	for _, c := range s.changes[:n] {
		for i, content := range c.Contents {
			name := path.Join(dir, c.Files[i])
			was, err := vfs.ReadFile(disk, name)
			if content == nil || err != nil {
				continue
			}
			if !bytes.Equal(was, content) {
				s.counts[payloadMended]++
			}
			if err := vfs.WriteFile(disk, name, content); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// process returns the name of the process of a member, which changes with each death.
func (p *peer) process() string { return fmt.Sprint(p.number, " ", p.deaths) }

// reported records how tasks ended, as the stores of a member reported it.
func (s *schedule) reported(p *peer) {
	p.outcomes.mu.Lock()
	defer p.outcomes.mu.Unlock()
	maps.Copy(s.outcomes, p.outcomes.of)
}

// deliver lets a member apply its next change. If that fails, the member is killed.
func (s *schedule) deliver(p *peer, fails bool) {
	c := &s.changes[p.at]
	if fails {
		p.left.Store(s.r.Int64N(6))
	}
	p.most = max(p.most, p.at+1)
	err := p.Apply(c.Change, c.open)
	p.left.Store(math.MaxInt64)
	switch {
	case err == nil:
		p.at++
	case !errors.Is(err, errStopped):
		s.t.Fatalf("member %d cannot apply change %d: %v", p.number, p.at, err)
	default:
		s.note(killedInChange, p.number)
		s.restart(p, p.disk.CrashClone(s.r), true)
	}
}

// restart closes the stores of a member and opens them on a disk.
func (s *schedule) restart(p *peer, disk *vfs.MemFS, killed bool) {
	if err := p.shut(); err != nil {
		s.t.Errorf("member %d cannot be closed: %v", p.number, err)
	}
	s.start(p, disk, killed)
}

// compare compares what a follower shows with what others showed after the same number of changes.
func (s *schedule) compare(p *peer) {
	if p.at < p.most {
		return
	}
	got := p.shows(s.t, p.features)
	if want, ok := s.shown[p.at]; ok && got != want {
		s.t.Errorf("after %d changes member %d shows\n%s\nanother member showed\n%s", p.at, p.number, got, want)
	}
	s.shown[p.at] = got
}

// elect makes a random member lead.
func (s *schedule) elect() { s.crown(s.all[s.r.IntN(len(s.all))]) }

// crown makes a member lead, once it has all changes.
func (s *schedule) crown(l *peer) {
	for l.at < len(s.changes) {
		s.deliver(l, false)
	}
	s.note("a member leads", l.number)
	s.leader, s.ready, s.leads = l, false, make(chan error, 1)
	s.mu.Lock()
	l.port.leads = true
	s.mu.Unlock()
	go func(leads chan<- error) {
		for _, lead := range []func() error{l.catalog.Lead, l.keys.Lead, l.queue.Lead} {
			if err := lead(); err != nil {
				leads <- err
				return
			}
		}
		leads <- nil
	}(s.leads)
}

// handOver closes the stores of the leader while the log still accepts their changes.
func (s *schedule) handOver() {
	l := s.leader
	s.note(leadHandedOver, l.number)
	s.closes = make(chan error, 1)
	go func(closes chan<- error) { closes <- l.shut() }(s.closes)
}

// giveUp records the tasks that failed because they were running too often when the lead was lost.
func (s *schedule) giveUp() {
	for _, uid := range s.leader.svc.givenUp(s.t) {
		s.givenUp[uid] = true
	}
}

// ask sends a request of the client to the leader.
func (s *schedule) ask(w *request) {
	l := s.leader
	s.requests--
	if c, ok := w.task.Content.(task.DeleteTasks); ok { // only tasks whose end is known
		s.giveUp()
		there := l.statuses(s.t)
		c.Tasks = slices.DeleteFunc(c.Tasks, func(uid uint32) bool {
			status, ok := there[uid]
			ended := ok && status != task.Enqueued && status != task.Processing
			if ended {
				s.outcomes[uid] = status
			}
			return !ended
		})
		w.task.Content = c
	}
	s.note("a client asks", fmt.Sprintf("%T %s", w.task.Content, w.task.IndexUID), w.other != nil)
	s.asks = w
	go func() {
		if w.other != nil {
			s.answer <- w.other()
			return
		}
		_, err := l.queue.Enqueue(context.Background(), w.task)
		s.answer <- err
	}()
}

// answered processes what has ended since the last step.
func (s *schedule) answered() {
	select {
	case err := <-s.answer:
		w := s.asks
		s.asks = nil
		lost := s.leader == nil || s.closes != nil || w.svc != s.leader.svc
		switch {
		case err != nil && !lost:
			s.t.Errorf("a client gets the error %v", err)
		case w.other != nil:
		case err != nil:
			s.note("a client has no answer", err)
			s.doubt, w.lost = w, true
		default:
			s.tasks, s.stored = append(s.tasks, w.does), append(s.stored, len(s.changes))
		}
	default:
	}
	if s.leader == nil {
		return
	}
	if !s.ready {
		select {
		case err := <-s.leads:
			if err != nil {
				s.t.Errorf("member %d cannot lead: %v", s.leader.number, err)
			}
			s.ready = true
		default:
		}
	}
	if s.ready && s.doubt != nil {
		if _, ok := s.leader.statuses(s.t)[uint32(len(s.tasks))]; ok {
			s.counts["a task without an answer"]++
			s.tasks, s.stored = append(s.tasks, s.doubt.does), append(s.stored, len(s.changes))
		}
		s.doubt = nil
	}
	if s.closes != nil {
		select {
		case err := <-s.closes:
			s.closed(err)
			s.refuse(s.r)
			l := s.leader
			s.leader, s.ready, s.closes = nil, false, nil
			s.start(l, l.disk, false)
		default:
		}
	}
}

// step takes a random step. With calm, nothing fails. It reports whether it did anything.
func (s *schedule) step(calm bool) bool {
	pending := s.pending()
	behind := slices.DeleteFunc(slices.Clone(s.all), func(p *peer) bool { return p == s.leader || p.at == len(s.changes) })
	n := s.r.IntN(100)
	switch {
	case s.leader == nil && (calm || n < 30):
		s.elect()
	case len(pending) > 0 && (calm || n < 50):
		x, n := pending[s.r.IntN(len(pending))], s.r.IntN(100)
		switch {
		case calm || n < 90:
			s.take(x, false)
		case n < 94:
			s.take(x, true)
		default:
			s.depose()
		}
	case n < 65 && s.requests > 0 && s.ready && s.closes == nil && s.asks == nil && s.doubt == nil:
		s.ask(s.request(s.leader.svc, s.r))
	case len(behind) > 0 && (calm || n < 90):
		p := behind[s.r.IntN(len(behind))]
		s.deliver(p, !calm && s.r.IntN(12) == 0)
		if s.r.IntN(6) == 0 {
			s.compare(p)
		}
	case calm:
		return false
	case n < 94:
		p := s.all[s.r.IntN(len(s.all))]
		if p == s.leader {
			return false
		}
		if s.r.IntN(2) == 0 {
			s.note(memberKilled, p.number)
			s.restart(p, p.disk.CrashClone(s.r), true)
		} else {
			s.note("a member is started again", p.number)
			s.restart(p, p.disk, false)
		}
	case n < 96 && s.leader != nil:
		s.depose()
	case n < 98 && s.ready && s.closes == nil:
		s.handOver()
	default:
		return false
	}
	return true
}

// unfinished returns how many tasks of the leader have not ended.
func (s *schedule) unfinished() int {
	l, err := s.leader.queue.Tasks(task.Filter{Statuses: []task.Status{task.Enqueued, task.Processing}, Limit: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	return int(l.Total)
}

// run continues until the client has no requests left and all tasks have ended. It compares the members with each other and with
// the naive model.
func (s *schedule) run() {
	deadline := time.Now().Add(time.Minute)
	for !s.t.Failed() {
		s.settle()
		s.answered()
		calm := s.requests == 0 && s.asks == nil
		if s.step(calm) || !calm || s.asks != nil {
			continue
		}
		if s.ready && s.closes == nil && s.doubt == nil && s.unfinished() == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d tasks do not end: %s\n%s", s.unfinished(), s.leader.shows(s.t, ""), s.stack[:runtime.Stack(s.stack, true)])
		}
		time.Sleep(time.Millisecond) // a retry is pending
	}
	if s.t.Failed() {
		return
	}
	l := s.leader
	s.end, s.left = l.documents(s.t), l.statuses(s.t)
	s.giveUp()
	s.counts["a task is given up"] += len(s.givenUp)
	files, want := namedFiles(s.t, l.disk, l.member.dir), ""
	for _, p := range s.all {
		if p == l {
			continue
		}
		s.compare(p)
		want = s.shown[p.at]
		if got := namedFiles(s.t, p.disk, p.member.dir); !maps.Equal(got, files) {
			s.t.Errorf("member %d has the files %q, the leader has %q, or their content differs", p.number, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(files)))
		}
	}
	if got := l.shows(s.t, featuresOf(l.member.dir, l.disk)); got != want {
		s.t.Errorf("the leader shows\n%s\na follower shows\n%s", got, want)
	}
	for _, p := range s.all {
		s.reported(p)
	}
	l.Directory.Close()
	s.checkEnd(s.t, len(s.changes), l.svc)
}

// namedFiles returns CATALOG, manifests, and the index files that they name. Leftovers of a lost lead are removed only by the next change.
func namedFiles(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	all := indexFiles(t, fsys, dir)
	catalog := path.Join(dir, "indexes")
	dirs, err := index.DirectoriesOf(fsys, catalog, []byte(all["/indexes/CATALOG"]))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{"/indexes/CATALOG": all["/indexes/CATALOG"]}
	for _, d := range dirs {
		manifest := path.Join("/indexes", d, "MANIFEST")
		files, err := index.FilesOf(manifest, []byte(all[manifest]))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(files, "MANIFEST") {
			name = path.Join("/indexes", d, name)
			named[name] = all[name]
		}
	}
	return named
}

// newSchedule starts three members.
func newSchedule(t *testing.T, seed uint64) *schedule {
	t.Helper()
	s := &schedule{
		history: history{recorder: recorder{t: t}, canceled: map[uint32]bool{}, deleted: map[uint32]bool{}, givenUp: map[uint32]bool{}, outcomes: map[uint32]task.Status{}},
		r:       rand.New(rand.NewPCG(seed, 3)), keeps: seed%2 == 0, stack: make([]byte, 1<<20), requests: 12, answer: make(chan error, 1), shown: map[int]string{}, counts: map[string]int{},
	}
	for i := range 3 {
		p := &peer{liveMember: &liveMember{member: newMember(t)}, number: i}
		s.all = append(s.all, p)
		if i == 0 { // starts from the directory of a server without data
			s.disk, s.dir = p.disk, p.member.dir
			open(t, p.member.dir, commit.On(p.disk, p.member.dir, &s.recorder), -1, false).close(t)
		}
		for p.at < len(s.changes) {
			c := &s.changes[p.at]
			if err := p.Apply(c.Change, c.open); err != nil {
				t.Fatal(err)
			}
			p.at++
		}
		p.most = p.at
		p.Directory.Close()
		s.start(p, p.disk, false)
	}
	return s
}

// close closes the stores of the followers. checkEnd has closed those of the leader.
func (s *schedule) close() {
	for _, p := range s.all {
		if p != s.leader {
			if err := p.shut(); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// TestMembersOfAnIdealLog runs schedules. Whatever happens, all members must end in the same state, which must equal that of the naive
// model and have everything that was acknowledged. A failing seed can be repeated as a subtest. The seed decides everything but the order
// of goroutines between two steps, so that most runs of a seed are equal.
func TestMembersOfAnIdealLog(t *testing.T) {
	first := *idealSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	inMemory(t)
	sum, events := map[string]int{}, []string{leadEnds, memberKilled, noAnswer, leadHandedOver, unmade, payloadMended}
	lacks := func(what string) bool { return sum[what] == 0 && *idealSeeds >= 20 }
	for i := 0; i < *idealSeeds || i < 4**idealSeeds && slices.ContainsFunc(events, lacks); i++ {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSchedule(t, seed)
			s.run()
			s.close()
			for what, n := range s.counts {
				sum[what] += n
			}
			sum["changes"] += len(s.changes)
		})
	}
	t.Logf("seeds from %d: %v", first, sum)
	for _, what := range events {
		if lacks(what) {
			t.Errorf("never: %s", what)
		}
	}
}

// inMemory puts the directories of a test in memory if the system supports it: otherwise the syncs of package boltfile take most of the
// time. Goroutines run one at a time, which reduces the possible orders.
func inMemory(t *testing.T) {
	const dir = "/dev/shm"
	if _, err := os.Stat(dir); err == nil {
		t.Setenv("TMPDIR", dir)
	}
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// untilDone sends s.requests, and returns when all tasks have ended. If there is no leader, the next member in turn becomes it. untilDone
// calls taken after each change that a leader has applied. what describes the progress in failures.
func (s *schedule) untilDone(t *testing.T, what func() string, taken func(leader *peer, x *proposal)) {
	t.Helper()
	crowned, deadline := 0, time.Now().Add(time.Minute)
	for {
		s.settle()
		s.answered()
		pending := s.pending()
		switch {
		case t.Failed() || time.Now().After(deadline):
			t.Fatalf("the tasks do not end: %s", what())
		case s.leader == nil:
			s.crown(s.all[crowned%len(s.all)])
			crowned++
		case s.asks == nil && s.requests > 0 && s.ready:
			s.ask(s.addition(s.leader.svc, "a", s.r))
		case len(pending) > 0:
			x, leader := pending[len(pending)-1], s.leader // the change of the queue before that of the journal
			s.take(x, false)
			taken(leader, x)
		case s.ready && s.requests == 0 && s.asks == nil && s.unfinished() == 0:
			return
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// TestATaskThatEndsItsLeaders has a task crash each leader that runs it: two members must crash, not all of them, and the other
// tasks must succeed.
func TestATaskThatEndsItsLeaders(t *testing.T) {
	inMemory(t)
	for seed := range uint64(4) { // decides the number of tasks in a batch
		s := newSchedule(t, seed)
		guilty, died := uint32(1), []int{}
		s.requests = 3
		s.untilDone(t, func() string { return fmt.Sprintf("seed %d: members %d died", seed, died) }, func(leader *peer, x *proposal) {
			if x.change.Kind == commit.Begin && begins(t, x.change.Data, guilty) {
				died = append(died, leader.number)
				s.endLead(true, nil)
			}
		})
		if !slices.Equal(died, []int{0, 1}) {
			t.Errorf("seed %d: members %d died", seed, died)
		}
		there := s.leader.statuses(t)
		for uid, want := range []task.Status{task.Succeeded, task.Failed, task.Succeeded} {
			if there[uint32(uid)] != want {
				t.Errorf("seed %d: task %d is %v, want %v", seed, uid, there[uint32(uid)], want)
			}
		}
		s.requests = 0
		s.run() // checks that the members are equal
		s.close()
	}
}

// TestALostLeadIsNoCrash makes live leaders lose the lead again and again while a batch runs: its tasks must succeed.
func TestALostLeadIsNoCrash(t *testing.T) {
	inMemory(t)
	for seed := range uint64(4) {
		s := newSchedule(t, seed)
		s.requests = 3
		losses := 0
		s.untilDone(t, func() string { return fmt.Sprintf("seed %d: the lead was lost %d times", seed, losses) }, func(_ *peer, x *proposal) {
			if x.change.Kind == commit.Begin && losses < 6 && s.requests == 0 {
				losses++
				s.endLead(false, nil)
			}
		})
		if failed := s.leader.svc.givenUp(t); losses < 6 || len(failed) > 0 {
			t.Errorf("seed %d: the lead was lost %d times, tasks %d were given up", seed, losses, failed)
		}
		s.run() // checks that the members are equal
		s.close()
	}
}

// begins reports whether a journal entry starts a batch with the given task.
func begins(t *testing.T, entry []byte, uid uint32) bool {
	t.Helper()
	var e struct {
		Tasks   []uint32
		Stopped bool
	}
	if err := json.Unmarshal(entry[12:], &e); err != nil {
		t.Fatal(err)
	}
	return !e.Stopped && slices.Contains(e.Tasks, uid)
}
