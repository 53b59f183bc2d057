package standby

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	linear "svc/internal/history"
	"svc/internal/task"
)

// clerk asks the members of a schedule for one document of an index and for its tasks, and records the answers. The clock is the
// number of questions.
type clerk struct {
	*schedule
	now    int64
	left   int // writes left
	value  int // value of the last write
	ops    []*linear.Op
	known  []acknowledged
	open   *linear.Op // the running write or cancelation; nil: none
	opened *request
}

// acknowledged is an operation, and the length of the log when it was answered.
type acknowledged struct {
	*linear.Op
	position int
}

// registerUID is the index with the document.
const registerUID = "r"

// tick returns the next time.
func (c *clerk) tick() int64 {
	c.now++
	return c.now
}

// end records a finished operation.
func (c *clerk) end(o *linear.Op) {
	o.Return = c.tick()
	c.ops = append(c.ops, o)
}

// note processes the answer of the running operation.
func (c *clerk) note() {
	if c.open == nil || c.asks == c.opened {
		return
	}
	o := c.open
	c.open = nil
	if o.Unknown = c.opened.lost; !o.Unknown && o.Kind == linear.Write {
		o.Task = int64(len(c.tasks) - 1)
	}
	c.end(o)
	if !o.Unknown && o.Kind == linear.Write {
		c.known = append(c.known, acknowledged{o, len(c.changes)})
	}
}

// write enqueues a task at the leader that sets the document, or that cancels such a task.
func (c *clerk) write() {
	l := c.leader
	if len(c.known) > 0 && c.r.IntN(5) == 0 {
		uid := uint32(c.known[c.r.IntN(len(c.known))].Task)
		c.canceled[uid] = true
		c.opened = &request{svc: l.svc, task: task.New{Content: task.CancelTasks{Query: "?", Tasks: []uint32{uid}}}}
		c.open = &linear.Op{Kind: linear.Cancel, Task: int64(uid)}
	} else {
		p, err := l.queue.NewPayload()
		if err != nil {
			c.t.Fatal(err)
		}
		c.value++
		v, text := c.value, fmt.Sprint(c.value)
		fmt.Fprintf(p, "{\"id\":\"1\",\"v\":%d}\n", v)
		c.opened = &request{svc: l.svc, task: task.New{IndexUID: registerUID, Content: task.AddDocuments{MayCreate: true, Documents: 1}, Payload: p, CustomMetadata: &text},
			does: naive{registerUID, func(w world) bool {
				w.create(registerUID)
				w[registerUID]["1"] = v
				return true
			}}}
		c.open = &linear.Op{Kind: linear.Write, Value: v}
	}
	c.left--
	c.open.Call = c.tick()
	c.ask(c.opened)
}

// stateOf converts the status of a task to that of a history.
func stateOf(s task.Status) linear.State {
	return map[task.Status]linear.State{task.Succeeded: linear.Succeeded, task.Failed: linear.Failed, task.Canceled: linear.Canceled}[s]
}

// read asks a member that has all changes, or those up to the position of an answer.
func (c *clerk) read() {
	p := c.all[c.r.IntN(len(c.all))]
	o := &linear.Op{Call: c.tick(), Client: 1}
	latest := p.at == len(c.changes) // a former leader counts as a follower
	n := c.r.IntN(4)
	switch {
	case !latest || n == 0:
		i := slices.IndexFunc(c.known, func(a acknowledged) bool { return a.position <= p.at && c.r.IntN(2) == 0 })
		if i < 0 {
			return
		}
		o.After = c.known[i].Op
		fallthrough
	case n == 1:
		o.Kind, o.Value = linear.Read, p.documents(c.t)[registerUID]["1"]
	case n == 2 && len(c.known) > 0:
		o.Kind, o.Task = linear.Status, c.known[c.r.IntN(len(c.known))].Task
		o.State = stateOf(p.statuses(c.t)[uint32(o.Task)])
	default:
		c.list(p, o)
	}
	c.end(o)
}

// list asks for all tasks of the document.
func (c *clerk) list(p *peer, o *linear.Op) {
	o.Kind = linear.List
	l, err := p.queue.Tasks(task.Filter{IndexUIDs: []string{registerUID}, Reverse: true, Limit: 1000})
	if err != nil {
		c.t.Fatal(err)
	}
	for x, err := range l.Results {
		if err != nil {
			c.t.Fatal(err)
		}
		value := 0
		if _, err := fmt.Sscan(*x.CustomMetadata, &value); err != nil {
			c.t.Fatal(err)
		}
		o.Tasks = append(o.Tasks, linear.Task{UID: int64(x.UID), Value: value, State: stateOf(x.Status)})
	}
}

// TestHistoriesOfAnIdealLog records answers of members that are killed and lead in turn: the history must be linearizable.
func TestHistoriesOfAnIdealLog(t *testing.T) {
	inMemory(t)
	first := *idealSeed
	if first == 0 {
		first = rand.Uint64()
	}
	unknown, decided := 0, 0
	for i := range max(*idealSeeds/4, 1) {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := &clerk{schedule: newSchedule(t, seed), left: 10}
			c.requests = 0
			for deadline := time.Now().Add(time.Minute); !t.Failed(); {
				c.settle()
				c.answered()
				c.note()
				if len(c.ops) < 60 && c.r.IntN(3) == 0 {
					c.read()
				}
				if c.left > 0 && c.r.IntN(4) == 0 && c.ready && c.closes == nil && c.asks == nil && c.doubt == nil {
					c.write()
					continue
				}
				calm := c.left == 0 && c.asks == nil
				if c.step(calm) || !calm {
					continue
				}
				if c.ready && c.closes == nil && c.doubt == nil && c.unfinished() == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("tasks do not end")
				}
				time.Sleep(time.Millisecond)
			}
			for _, p := range c.all {
				o := &linear.Op{Call: c.tick()}
				c.list(p, o)
				c.end(o)
			}
			for _, o := range c.ops {
				if o.Unknown {
					unknown++
				}
			}
			switch linear.Check(c.ops, 2*time.Second) {
			case linear.Linearizable:
				decided++
			case linear.Violated:
				t.Errorf("the history is not linearizable:\n%s", linear.Print(c.ops))
			}
			c.requests = 0
			c.run()
			c.schedule.close()
		})
	}
	t.Logf("seeds from %d: %d histories are linearizable; %d operations had no answer", first, decided, unknown)
	if decided == 0 {
		t.Error("no history was decided")
	}
}
