package analytics

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/vfs"
)

const (
	writeEvery = time.Second

	// retainAfter is how many writes have to pass in one hour before old hours are removed: a clock that jumps ahead and is set right
	// within that time removes nothing. The journal counts them in steps of markEvery, across restarts.
	retainAfter = 600
	markEvery   = 20
)

// Options of a Recorder.
type Options struct {
	FS        vfs.FS
	Dir       string        // of the journal and the hours; it is created if it is missing
	Retention time.Duration // hours that ended longer ago are removed
	Now       func() time.Time
	Log       *slog.Logger
}

// Recorder counts searches. Its methods may be called at once.
type Recorder struct {
	fs        vfs.FS
	dir       string
	retention time.Duration
	now       func() time.Time
	log       *slog.Logger

	live     table
	requests requests
	previous atomic.Pointer[map[uint64]string] // keys of the hour before by their hashes; nil: none

	folded   atomic.Uint64 // searches that were counted without their query, since the start
	events   atomic.Uint64 // that were counted, since the start
	unknown  atomic.Uint64 // events of requests that are not known, since the start
	failures atomic.Uint64 // writes that failed, since the start

	mu      sync.Mutex // held for the files, and what follows
	hour    hour       // that live is of
	ended   *ended     // the hour before, until its file is written; nil: none
	journal journal
	writes  int             // in this hour, without those since the last mark of earlier processes
	failing bool            // the last write failed, and the log says so
	damaged map[string]bool // files that the log calls damaged

	stop chan struct{} // closed by Close
	done sync.WaitGroup
}

// ended is an hour whose file is not written yet.
type ended struct {
	hour    hour
	entries []*entry
}

// Numbers is how much a Recorder has counted.
type Numbers struct {
	Queries, Filters               int    // distinct ones in this hour
	Folded                         uint64 // searches that were counted without their query, since the start
	Events, Unknown, WriteFailures uint64 // since the start
}

// Open reads the counts of the current hour and starts to write once a second. The caller closes the Recorder.
func Open(o Options) (*Recorder, error) {
	r, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("cannot open the analytics: %w", err)
	}
	r.write()
	r.done.Go(r.keep)
	return r, nil
}

// open is Open without the goroutine.
func open(o Options) (*Recorder, error) {
	r := &Recorder{fs: o.FS, dir: o.Dir, retention: o.Retention, now: o.Now, log: o.Log, damaged: map[string]bool{}, stop: make(chan struct{})}
	r.live.init(maphash.MakeSeed())
	if err := vfs.MakeDir(r.fs, r.dir); err != nil {
		return nil, err
	}
	names, err := r.fs.List(r.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, vfs.TempSuffix) { // a crash left it
			if err := r.fs.Remove(r.path(name)); err != nil {
				return nil, err
			}
		}
	}
	return r, r.resume()
}

// resume reads the journal. The hour that it is of may have ended since: the first write finds that.
func (r *Recorder) resume() error {
	b, err := vfs.ReadFile(r.fs, r.path(journalName))
	if errors.Is(err, fs.ErrNotExist) {
		r.hour = hourOf(r.now())
		r.begin()
		return nil
	}
	if err != nil {
		return err
	}
	r.journal.exists = true
	found, damage := parseJournal(b)
	if damage != nil {
		r.warn(journalName, damage)
	}
	if found == nil {
		r.hour = hourOf(r.now())
		r.begin()
		return nil
	}
	r.hour = found.hour
	r.writes = min(found.marks*markEvery, retainAfter-1) // the next one removes old hours, which may have failed before
	if damage != nil {
		// A crash between the file of an hour and the next journal leaves both. The file may have what the journal has lost.
		for _, e := range r.filed() {
			n := found.counts[e.key]
			n.raise(&e.Counts)
			found.counts[e.key] = n
		}
	}
	for key, n := range found.counts {
		r.live.put(key, n)
	}
	r.journal.rewrite = true
	return nil
}

// begin starts r.hour. If there is a file for it, the clock was set back: begin starts with the counts of the file, which the next
// write replaces. r.mu is held, or r is not shared yet.
func (r *Recorder) begin() {
	r.writes = 0
	r.journal.rewrite = true
	for _, e := range r.filed() {
		r.live.put(e.key, e.Counts)
	}
}

// filed returns the content of the file of r.hour, or nil if it is missing or damaged. r.mu is held, or r is not shared yet.
func (r *Recorder) filed() []*entry {
	entries, err := r.readHour(r.hour)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.warn(r.hour.name(), err)
	}
	return entries
}

// keep writes once a second until Close.
func (r *Recorder) keep() {
	ticks := time.NewTicker(writeEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			r.write()
		case <-r.stop:
			return
		}
	}
}

// Close writes the counts since the last write.
func (r *Recorder) Close() error {
	close(r.stop)
	r.done.Wait()
	if err := r.write(); err != nil {
		// They are lost, but nothing that was promised: the process need not fail for them.
		r.log.Error("the counts of the last searches could not be written before the stop", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal.close()
}

// write makes the counts durable, and files the previous hour if it has ended. The first of several errors is logged. The counts stay
// in memory, and the next write retries.
func (r *Recorder) write() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.advance(hourOf(r.now()))
	switch {
	case err != nil:
		r.failures.Add(1)
		if !r.failing {
			r.log.Error("cannot write analytics; they stay in memory until writing works again", "error", err)
		}
	case r.failing:
		r.log.Info("analytics can be written again")
	}
	r.failing = err != nil
	return err
}

// advance continues with the hour now. r.mu is held.
func (r *Recorder) advance(now hour) error {
	if now != r.hour && r.ended == nil {
		entries := r.live.take()
		if len(entries) > 0 {
			r.ended = &ended{r.hour, entries}
		}
		previous := make(map[uint64]string, len(entries))
		for _, e := range entries {
			previous[e.hash] = e.key
		}
		r.previous.Store(&previous)
		r.hour = now
		r.begin()
	}
	if r.ended != nil {
		if err := r.writeHour(r.ended.hour, mostUsed(r.ended.entries)); err != nil {
			return err
		}
		r.ended = nil
	}
	r.makeRoom()
	if err := r.writeJournal(); err != nil {
		return err
	}
	if r.writes++; r.writes == retainAfter {
		return r.retain(now)
	}
	return nil
}

// marks is how many marks the journal should have. r.mu is held.
func (r *Recorder) marks() int { return min(r.writes, retainAfter) / markEvery }

// retain removes the hours that ended before the retention. r.mu is held.
func (r *Recorder) retain(now hour) error {
	hours, err := r.hours()
	if err != nil {
		return err
	}
	removed := false
	for _, h := range hours {
		if h >= r.oldest(now) {
			break
		}
		if err := r.fs.Remove(r.path(h.name())); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return r.fs.SyncDir(r.dir)
}

// oldest is the first hour that is within the retention.
func (r *Recorder) oldest(now hour) hour { return now - hour(r.retention/time.Hour) }

// Numbers returns how much was counted.
func (r *Recorder) Numbers() Numbers {
	return Numbers{
		Queries: int(r.live.distinct[queryKind].Load()), Filters: int(r.live.distinct[filterKind].Load()),
		Folded: r.folded.Load(), Events: r.events.Load(), Unknown: r.unknown.Load(), WriteFailures: r.failures.Load(),
	}
}

func (r *Recorder) path(name string) string { return r.dir + "/" + name }

// warn logs once that a file is damaged. r.mu is held, or r is not shared yet.
func (r *Recorder) warn(name string, err error) {
	if !r.damaged[name] {
		r.damaged[name] = true
		r.log.Warn("reports omit the content of a damaged analytics file", "file", r.path(name), "error", err)
	}
}
