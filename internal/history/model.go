package history

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// state is the state of an object. It is immutable: steps return new states.
type state struct {
	tasks []stored // in the order in which they were accepted
	shown int      // how many of the tasks the newest value that was seen stands for
	there bool     // of a key
}

// stored is a task that was accepted.
type stored struct {
	Task
	named    bool // its uid is known
	canceled bool // a cancelation of it was accepted
}

var model = porcupine.Model{
	Init:  func() any { return &state{} },
	Step:  func(s, o, _ any) (bool, any) { return s.(*state).step(o.(*Op)) },
	Equal: func(a, b any) bool { return a.(*state).equal(b.(*state)) },
}

func (s *state) equal(o *state) bool {
	return s.shown == o.shown && s.there == o.there && slices.Equal(s.tasks, o.tasks)
}

// step reports whether an operation may have its answer in this state, and returns the state behind it.
func (s *state) step(o *Op) (bool, any) {
	next := &state{slices.Clone(s.tasks), s.shown, s.there}
	ok := true
	switch o.Kind {
	case Write:
		ok = o.place == 0 || o.place == len(next.tasks)+1
		if !o.Unknown {
			ok = ok && next.last() < o.Task
		}
		next.tasks = append(next.tasks, stored{Task: Task{UID: o.Task, Value: o.Value}, named: !o.Unknown})
	case Status:
		i := next.find(o.Task)
		ok = i >= 0 && next.see(i, o.State)
	case List:
		ok = next.list(o.Tasks)
	case Cancel:
		i := next.find(o.Task)
		if i >= 0 {
			next.tasks[i].canceled = true
		}
		ok = i >= 0 || o.Unknown
	case Read:
		ok = next.follows(o.After) && next.read(o.Value)
	case Make:
		ok, next.there = o.Unknown || !s.there, true
	case Drop:
		next.there = false
	case Use:
		ok = s.there == (o.Value == 1)
	}
	return ok, next
}

// last returns the highest uid that is known.
func (s *state) last() int64 {
	for _, t := range slices.Backward(s.tasks) {
		if t.named {
			return t.UID
		}
	}
	return -1
}

func (s *state) find(uid int64) int {
	return slices.IndexFunc(s.tasks, func(t stored) bool { return t.named && t.UID == uid })
}

// see records the state of a task. A finished task stays finished. The tasks of an index finish in order, except cancelled ones.
func (s *state) see(i int, is State) bool {
	t := &s.tasks[i]
	switch {
	case t.State == is:
		return is != Open || !s.succeededFrom(i)
	case t.State != Open:
		return false
	case is == Succeeded:
		s.shown = max(s.shown, i+1)
	case s.shown == i+1 || is == Canceled && !t.canceled: // its value was read, or it was not cancelled
		return false
	}
	t.State = is
	return true
}

// succeededFrom reports whether a task from one on has succeeded.
func (s *state) succeededFrom(i int) bool {
	return slices.ContainsFunc(s.tasks[i:], func(t stored) bool { return t.State == Succeeded })
}

// list compares the tasks with a list, which includes tasks whose writers got no response.
func (s *state) list(all []Task) bool {
	if len(all) != len(s.tasks) {
		return false
	}
	for i, x := range all {
		t := &s.tasks[i]
		if t.Value != x.Value || t.named && t.UID != x.UID || i > 0 && x.UID <= all[i-1].UID {
			return false
		}
		t.UID, t.named = x.UID, true
	}
	for i, x := range slices.Backward(all) {
		if !s.see(i, x.State) {
			return false
		}
	}
	return true
}

// read reports whether a value may be read: it is that of a task, from the newest seen one on, that was not cancelled.
func (s *state) read(value int) bool {
	if value == 0 {
		return s.shown == 0
	}
	i := slices.IndexFunc(s.tasks, func(t stored) bool { return t.Value == value })
	if i < 0 || s.tasks[i].State == Canceled || s.tasks[i].State == Failed {
		return false
	}
	// What was seen before is not newer. A later task that succeeded would be visible.
	if i+1 < s.shown {
		return false
	}
	s.shown = i + 1
	return true
}

// follows reports whether the operation whose position a read names was done.
func (s *state) follows(o *Op) bool {
	if o == nil {
		return true
	}
	i := s.find(o.Task)
	return i >= 0 && (o.Kind != Status || o.State == Open || s.tasks[i].State == o.State)
}
