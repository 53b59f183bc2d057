package history

import (
	"strings"
	"testing"
	"time"
)

// at gives operations their times: each begins and ends right after the previous one.
func at(ops ...*Op) []*Op {
	for i, o := range ops {
		o.Call, o.Return = int64(2*i), int64(2*i+1)
	}
	return ops
}

func write(value int, task int64) *Op { return &Op{Kind: Write, Value: value, Task: task} }
func lost(value int) *Op              { return &Op{Kind: Write, Value: value, Unknown: true} }
func read(value int) *Op              { return &Op{Kind: Read, Value: value} }
func cancel(task int64) *Op           { return &Op{Kind: Cancel, Task: task} }
func list(tasks ...Task) *Op          { return &Op{Kind: List, Tasks: tasks} }
func status(task int64, s State) *Op  { return &Op{Kind: Status, Task: task, State: s} }
func readAfter(o *Op, v int) *Op      { return &Op{Kind: Read, After: o, Value: v} }
func use(there int) *Op               { return &Op{Kind: Use, Value: there} }

// TestHistories checks histories of one client, and some with concurrent operations.
func TestHistories(t *testing.T) {
	first, second, ended := write(1, 3), write(2, 5), status(3, Succeeded)
	for _, x := range []struct {
		name string
		ops  []*Op
		want Result
	}{
		{"nothing", nil, Linearizable},
		{"no value yet", at(read(0), write(1, 3), read(0), status(3, Open), read(1), read(1), status(3, Succeeded)), Linearizable},
		{"a value never written", at(write(1, 3), read(2)), Violated},
		{"an older value", at(write(1, 3), write(2, 4), read(2), read(1)), Violated},
		{"no value any more", at(write(1, 3), read(1), read(0)), Violated},
		{"no value after success", at(write(1, 3), status(3, Succeeded), read(0)), Violated},
		{"uids that fall", at(write(1, 4), write(2, 3)), Violated},
		{"a uid twice", at(write(1, 4), write(2, 4)), Violated},
		{"a task that is lost", at(write(1, 3), list()), Violated},
		{"a task that exists twice", at(write(1, 3), list(Task{3, 1, Open}, Task{4, 1, Open})), Violated},
		{"a task that begins again", at(write(1, 3), status(3, Succeeded), status(3, Open)), Violated},
		{"a task done before an earlier one", at(write(1, 3), write(2, 4), status(4, Succeeded), status(3, Open)), Violated},
		{"a task canceled without a request", at(write(1, 3), status(3, Canceled)), Violated},
		{"a canceled task", at(write(1, 3), write(2, 4), cancel(3), status(3, Canceled), read(2), read(2)), Linearizable},
		{"the value of a canceled task", at(write(1, 3), cancel(3), status(3, Canceled), read(1)), Violated},
		{"a task that is canceled after its value was read", at(write(1, 3), cancel(3), read(1), status(3, Canceled)), Violated},
		{"an unanswered write", at(lost(1), read(0), write(2, 7), read(1), list(Task{3, 1, Succeeded}, Task{7, 2, Open}), read(2)), Linearizable},
		{"an unanswered write without effect", at(lost(1), write(2, 7), list(Task{7, 2, Open}), read(2)), Linearizable},
		{"an unanswered write, lost later", at(lost(1), read(1), write(2, 7), list(Task{7, 2, Open})), Violated},
		{"a position of a write", at(first, second, read(2), readAfter(first, 0)), Linearizable},
		{"a position of success", at(first, second, ended, read(2), readAfter(ended, 1)), Linearizable},
		{"a read older than its position", at(first, ended, readAfter(ended, 0)), Violated},
		{"a key", at(use(0), &Op{Kind: Make}, use(1), &Op{Kind: Drop}, use(0)), Linearizable},
		{"a key that comes back", at(&Op{Kind: Make}, use(1), &Op{Kind: Drop}, use(1)), Violated},
		{"a key that is lost", at(&Op{Kind: Make}, use(0)), Violated},
		{"an unanswered deletion", at(&Op{Kind: Make}, &Op{Kind: Drop, Unknown: true}, use(1), use(0)), Linearizable},
		{"a deletion that is undone", at(&Op{Kind: Make}, &Op{Kind: Drop, Unknown: true}, use(0), use(1)), Violated},
		{"reads at the same time", []*Op{
			{Kind: Write, Value: 1, Task: 1, Call: 0, Return: 10}, {Kind: Read, Value: 1, Call: 1, Return: 9}, {Kind: Read, Call: 2, Return: 8},
		}, Linearizable},
		{"an older value during another write", []*Op{
			{Kind: Write, Value: 1, Task: 1, Call: 0, Return: 10}, {Kind: Read, Value: 1, Call: 1, Return: 2}, {Kind: Read, Call: 3, Return: 4},
		}, Violated},
	} {
		if got := Check(x.ops, time.Minute); got != x.want {
			t.Errorf("%s: %v, want %v:\n%s", x.name, got, x.want, Print(x.ops))
		}
	}
}

// TestRecorder checks that operations are recorded by object, and that unanswered reads are not recorded.
func TestRecorder(t *testing.T) {
	r := NewRecorder()
	for _, o := range []*Op{{Object: "a", Unknown: true}, {Object: "a", Kind: Read, Unknown: true}, {Object: "b", Kind: Read}} {
		o.Call = r.Now()
		r.Add(o)
	}
	all := r.Take()
	if len(all["a"]) != 1 || len(all["b"]) != 1 || len(r.Take()) > 0 {
		t.Errorf("%v", all)
	}
	if text := Print(all["a"]); !strings.Contains(text, "write 0 by task 0, without an answer") {
		t.Error(text)
	}
}
