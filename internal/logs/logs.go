// Package logs distributes log records to the console and to at most one listener, each with its own levels for the parts of the
// program and its own format. A part is a package: svc/internal/task has the target svc::task.
package logs

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Log distributes log records. It is safe for concurrent use.
type Log struct {
	state atomic.Pointer[state]

	mu      sync.Mutex // guards changes of state, and what follows up to targets
	console io.Writer
	form    form
	buf     []byte // lines that are not written yet
	gathers bool
	wrote   time.Time   // when a line of a span was written last
	later   *time.Timer // writes buf; nil: no line has waited yet
	waiting bool        // later is set

	targets sync.Map // program counter → origin
}

// state is replaced as a whole.
type state struct {
	console  Filter
	listener *Listener
	lowest   slog.Level // lowest level of any output
}

// New returns a log whose console gets what f passes, as lines for people or as JSON.
func New(console io.Writer, f Filter, mode Mode) *Log {
	l := &Log{console: console, form: newForm(mode, false)}
	l.set(f, nil)
	return l
}

// Logger returns the logger to write with.
func (l *Log) Logger() *slog.Logger { return slog.New(&handler{log: l}) }

const (
	// gatherFor is how long lines are gathered.
	gatherFor = 20 * time.Millisecond
	// gatherBytes is from when on they are written at once.
	gatherBytes = 32 << 10
)

// Gather makes the log write lines of spans below the level of warnings together with those of the next 20 ms, unless none was
// written in the last 20 ms. It writes all other lines at once, after the waiting ones. Each write is a system call that wakes the
// monitor of the runtime, which costs more than a short request. Close ends it.
func (l *Log) Gather() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathers = true
}

// Close writes the lines that waited. Lines that come afterwards do not wait.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathers = false
	return l.write()
}

// wait reports whether a line of a span may wait, and has it written later. l.mu is held.
func (l *Log) wait(now time.Time) bool {
	switch {
	case l.waiting:
		return true
	case now.Sub(l.wrote) >= gatherFor:
		l.wrote = now
		return false
	case l.later == nil:
		l.later = time.AfterFunc(gatherFor, l.writeLater)
	default:
		l.later.Reset(gatherFor)
	}
	l.waiting = true
	return true
}

func (l *Log) writeLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote = time.Now()
	_ = l.write() // there is nowhere left to report an error
}

// write writes the buffer. l.mu is held.
func (l *Log) write() error {
	if l.waiting {
		l.waiting = false
		l.later.Stop()
	}
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.console.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// SetConsole replaces the filter of the console.
func (l *Log) SetConsole(f Filter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(f, l.state.Load().listener)
}

// set replaces the state. l.mu is held, except by New.
func (l *Log) set(console Filter, listener *Listener) {
	s := &state{console: console, listener: listener, lowest: console.lowest()}
	if listener != nil {
		s.lowest = min(s.lowest, listener.filter.lowest())
	}
	l.state.Store(s)
}

// ErrListener says that there is a listener already.
var ErrListener = errors.New("another client already reads the log")

// Listen adds a listener that gets what f passes from now on, until Stop or StopListening. The error is ErrListener if there is one
// already. memory adds the memory in use to mode Profile.
func (l *Log) Listen(f Filter, mode Mode, memory bool) (*Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state.Load()
	if s.listener != nil {
		return nil, ErrListener
	}
	n := &Listener{
		log: l, filter: f, form: newForm(mode, memory),
		lines: make(chan []byte, keptLines), done: make(chan struct{}),
	}
	l.set(s.console, n)
	return n, nil
}

// StopListening ends the listener, if there is one.
func (l *Log) StopListening() {
	if n := l.state.Load().listener; n != nil {
		n.Stop()
	}
}

// keptLines is how many lines a listener may lag behind before it misses some.
const keptLines = 4096

// Listener receives a log. Lines that it does not take in time are dropped, so that logging never waits for it.
type Listener struct {
	log    *Log
	filter Filter

	mu   sync.Mutex // held while a line is made: some forms number what they show
	form form

	lines chan []byte
	once  sync.Once
	done  chan struct{}
}

// Lines gives the lines, each the receiver's own. It is never closed: see Done.
func (n *Listener) Lines() <-chan []byte { return n.lines }

// Done is closed when the listener was stopped.
func (n *Listener) Done() <-chan struct{} { return n.done }

// Stop ends the listener; it may be called more than once.
func (n *Listener) Stop() {
	n.once.Do(func() {
		n.log.mu.Lock()
		defer n.log.mu.Unlock()
		n.log.set(n.log.state.Load().console, nil)
		close(n.done)
	})
}

func (n *Listener) hear(r *record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.lines) == cap(n.lines) { // this is the only sender: there is room, or not
		return
	}
	n.lines <- n.form.append(nil, r)
}

// handler is the slog.Handler of a Log, with the attributes that loggers made from it carry.
type handler struct {
	log   *Log
	group string // names of the open groups, each with a dot after it
	attrs []slog.Attr
}

// Enabled reports whether any output may take a record of this level. Its part is only known in Handle.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.log.state.Load().lowest
}

func (h *handler) Handle(_ context.Context, sr slog.Record) error {
	l := h.log
	s := l.state.Load()
	o := l.originOf(sr.PC)
	console := sr.Level >= s.console.level(o.target)
	listener := s.listener != nil && sr.Level >= s.listener.filter.level(o.target)
	if !console && !listener {
		return nil
	}
	r := &record{time: sr.Time, level: sr.Level, message: sr.Message, origin: o, fields: h.attrs[:len(h.attrs):len(h.attrs)]}
	sr.Attrs(func(a slog.Attr) bool {
		r.add(h.group, a)
		return true
	})
	if listener {
		s.listener.hear(r)
	}
	if !console {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = l.form.append(l.buf, r)
	if l.gathers && r.span.Key != "" && r.level < slog.LevelWarn && len(l.buf) < gatherBytes && l.wait(r.time) {
		return nil
	}
	return l.write()
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	r := record{fields: h.attrs[:len(h.attrs):len(h.attrs)]}
	for _, a := range attrs {
		r.add(h.group, a)
	}
	return &handler{h.log, h.group, r.fields}
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{h.log, h.group + name + ".", h.attrs}
}

// origin is the place in the program that logged.
type origin struct {
	target   string // svc::task
	function string // with its package's path
	file     string
	line     int
}

// originOf looks a program counter up, once.
func (l *Log) originOf(pc uintptr) *origin {
	if o, ok := l.targets.Load(pc); ok {
		return o.(*origin)
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	o := &origin{target: target(frame.Function), function: frame.Function, file: frame.File, line: frame.Line}
	l.targets.Store(pc, o)
	return o
}

// root is the target of the program itself, and the prefix of those of its packages.
const root = "svc"

// target returns the target of a function such as svc/internal/task.(*Queue).run.
func target(function string) string {
	dir, rest := "", function
	if i := strings.LastIndexByte(function, '/'); i >= 0 {
		dir, rest = function[:i+1], function[i+1:]
	}
	name, _, _ := strings.Cut(rest, ".")
	path := dir + name
	for _, own := range [...]string{"svc/internal/", "svc/"} {
		if rest, ok := strings.CutPrefix(path, own); ok {
			return root + "::" + strings.ReplaceAll(rest, "/", "::")
		}
	}
	if path == "main" || path == "" {
		return root
	}
	return strings.ReplaceAll(path, "/", "::")
}
