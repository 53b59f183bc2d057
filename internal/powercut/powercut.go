// Package powercut records what a program does to its files, and constructs what a power cut at any moment may leave of them. It is
// for tests of svc as a whole. The recorder follows the real program through ptrace(2), including the files of bbolt, so it does not
// depend on what the program reports.
//
// A Disk replays the events and knows what is durable: the synced content of a file, and the names of a directory at its last sync. A
// power cut keeps a random part of the rest, as a file system may: some writes and renames but not others, blocks with old bytes,
// lengths without content. A test starts the program on the result, and compares what it shows with what was acknowledged before the
// cut (Mark).
//
// Several programs may be recorded in one log. Its order is consistent: what a program did before it sent a message comes before what
// another one did after it received it. A prefix of the log is the state of their disks when the power of all is cut.
package powercut

import (
	"slices"
	"sync"
)

// Kind is what an event did.
type Kind uint8

// The kinds of events.
const (
	Create   Kind = iota // Name was made: a new, empty file
	Mkdir                // Name was made: a new, empty directory
	Write                // Data at Offset of a file
	Truncate             // a file got the length Offset
	Sync                 // the bytes of a file, or the names in a directory, that were there when it began are durable
	Rename               // Name became To
	Link                 // To became another name of Name
	Unlink               // Name was removed
	Mark                 // the test noted something: Data
)

// Event is one thing that happened, after it happened.
type Event struct {
	Kind   Kind
	Tree   int // which of the directories recorded in one log; not set for Mark
	Node   int // the file or directory, by a number of its own
	Dir    int // the directory of Name; ToDir that of To
	ToDir  int
	Name   string // inside Dir
	To     string
	Offset int64
	Data   []byte
	Since  int // of Sync: how many events there were when it began
}

// Options say what to record of a program.
type Options struct {
	Root string // a directory that exists
	// Adopted is called when the log has the initial content of Root, before the program runs; nil: no call.
	Adopted func()
	Log     *Log // where events are added
	Tree    int  // a number for Root in the log
	// Ends reports, after an event, whether it is to be the last one: the program is killed there. nil: it never is.
	Ends func() bool
}

// Log is a sequence of events. Its methods are safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	events []Event
}

func (l *Log) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *Log) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// Mark notes data between the events.
func (l *Log) Mark(data string) { l.add(Event{Kind: Mark, Data: []byte(data)}) }

// Events returns what has been recorded.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}
