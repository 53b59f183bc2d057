// Package history is for tests. It records the requests of clients to a group of servers, and the responses. Porcupine then decides
// whether the responses are linearizable: whether a single server that runs one request after the other could have given them.
//
// The objects of a history are independent, and each is checked separately. An object is a register or an API key. A register is
// written by tasks of one index: a document, or a setting.
package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what a client asks for.
type Kind uint8

// The kinds of operations. All except the last three are operations on registers.
const (
	Write  Kind = iota // a task that gives the register a value
	Status             // how a task stands
	List               // all tasks of the register
	Cancel             // a task that cancels a task
	Read               // the value of the register
	Make               // the key is made
	Drop               // the key is deleted, or is not there
	Use                // whether the key exists
)

var kindNames = [...]string{"write", "status", "list", "cancel", "read", "make", "drop", "use"}

// State is the status of a task. Tasks that are queued or run are Open.
type State uint8

// The states of tasks.
const (
	Open State = iota
	Succeeded
	Canceled
	Failed
)

var stateNames = [...]string{"open", "succeeded", "canceled", "failed"}

// Task is a task of a register.
type Task struct {
	UID   int64
	Value int
	State State
}

// Op is an operation with its answer.
type Op struct {
	Object string
	Client int
	Kind   Kind
	Value  int    // written or read; 0: the register has no value. For Use: 1 if the key exists
	Task   int64  // that a write made; of a status or a cancelation
	State  State  // of a status
	Tasks  []Task // of a list, by uid
	// After is set for a read that names a position, which the answer to this operation contained. The value may be older than that
	// of other earlier reads, but not older than that position.
	After *Op

	Call, Return int64 // as of Recorder.Now
	// Unknown says that there was no answer, or an inconclusive one.
	Unknown bool

	place int // of a write in the last list, from 1; 0: it is not there
}

// String describes the request and the answer, with times.
func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3f to %9.3f ms, client %d: %s", float64(o.Call)/1e6, float64(o.Return)/1e6, o.Client, kindNames[o.Kind])
	switch o.Kind {
	case Write:
		fmt.Fprintf(&b, " %d by task %d", o.Value, o.Task)
	case Status:
		fmt.Fprintf(&b, " of task %d: %s", o.Task, stateNames[o.State])
	case Cancel:
		fmt.Fprintf(&b, " task %d", o.Task)
	case List:
		for _, t := range o.Tasks {
			fmt.Fprintf(&b, " %d=%d,%s", t.UID, t.Value, stateNames[t.State])
		}
	case Read, Use:
		fmt.Fprintf(&b, ": %d", o.Value)
	}
	if o.After != nil {
		fmt.Fprintf(&b, ", after (%v)", o.After)
	}
	if o.Unknown {
		b.WriteString(", without an answer")
	}
	return b.String()
}

// Recorder records the operations of clients.
type Recorder struct {
	start time.Time

	mu  sync.Mutex
	ops []*Op
}

// NewRecorder returns a recorder of a new history.
func NewRecorder() *Recorder { return &Recorder{start: time.Now()} }

// Now returns the time in the history.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Add adds an operation that has ended now. Reads without an answer say nothing, and are left out.
func (r *Recorder) Add(o *Op) {
	o.Return = r.Now()
	if o.Unknown && o.Kind != Write && o.Kind != Cancel && o.Kind != Make && o.Kind != Drop {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
}

// Take returns the operations so far, by object, and forgets them.
func (r *Recorder) Take() map[string][]*Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]*Op{}
	for _, o := range r.ops {
		all[o.Object] = append(all[o.Object], o)
	}
	r.ops = nil
	return all
}

// Result is what Check found.
type Result int

// The results of checks.
const (
	Linearizable Result = iota
	Violated
	Undecided // within the time
)

// Check decides whether the operations of one object are linearizable.
func Check(ops []*Op, limit time.Duration) Result {
	ops = placed(ops)
	all := make([]porcupine.Operation, len(ops))
	for i, o := range ops {
		all[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return}
		if o.Unknown { // it may be done at any time, or never
			all[i].Return = math.MaxInt64
		}
		if o.After != nil { // a position is as old as the answer that contained it
			all[i].Call = min(all[i].Call, o.After.Call)
		}
	}
	switch porcupine.CheckOperationsTimeout(model, all, limit) {
	case porcupine.Ok:
		return Linearizable
	case porcupine.Illegal:
		return Violated
	}
	return Undecided
}

// placed returns operations whose writes have the outcome from the last list of tasks; otherwise there would be too many orders to
// try. A write in the list was done before it, at its place, and one that is not in it was not done. Nothing else happens during the
// last list request.
func placed(ops []*Op) []*Op {
	var last *Op
	for _, o := range ops {
		if o.Kind == List && (last == nil || o.Call > last.Call) {
			last = o
		}
	}
	if last == nil {
		return ops
	}
	all := make([]*Op, len(ops))
	for i, o := range ops {
		if all[i] = o; o.Kind != Write {
			continue
		}
		w := *o
		all[i] = &w
		n := slices.IndexFunc(last.Tasks, func(t Task) bool { return t.Value == o.Value })
		switch {
		case n < 0 && o.Unknown:
			w.Call = max(w.Call, last.Return)
		case n >= 0 && o.Unknown:
			w.Task, w.Unknown, w.Return, w.place = last.Tasks[n].UID, false, last.Return, n+1
		case n >= 0:
			w.place = n + 1
		}
	}
	return all
}

// Print lists operations in the order of their calls.
func Print(ops []*Op) string {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}
