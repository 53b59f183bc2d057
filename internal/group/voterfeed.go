package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"svc/internal/consensus"
	"svc/internal/logstore"
	"svc/internal/vfs"
)

// VoterFeed lets the leader's process follow the log of the group while it leads. It has only entries that the group has accepted and
// that the leader's directory has. They are like those of a writer's log, with three differences: they have no nonces of proposals, a
// manifest names only files that the previous one does not name, and entries that change nothing are empty.
//
// Files that entries name stay until Need releases them, those of an image until Release: both at most feedHoldTime after the last
// read. Image and Release belong to one goroutine, and Next to one.
type VoterFeed struct {
	v    *Voter
	r    *reign
	id   string // of the files of images
	sums *sums

	mu      sync.Mutex
	need    uint64               // entries up to it have been published; 0: unknown
	moved   time.Time            // when something was read last
	pinned  bool                 // there are files of an image
	read    time.Time            // when files were read last, if pinned
	named   map[string]namedFile // files of later entries
	removed []string             // payloads that were removed; Next drops those that entries up to its position have
	told    int                  // of removed: those that the entry toldIn has
	toldIn  uint64
}

// namedFile is a file of an entry.
type namedFile struct {
	File
	index  uint64 // of the last entry that names it
	inline bool   // the entry has the content
}

const (
	// feedHoldTime is for how long files stay for a feed that reads nothing.
	feedHoldTime = time.Hour
	// maxRemoved limits the names of payloads that wait for an entry. They are far fewer bytes than maxEntry. While a bucket cannot
	// be reached, no entries are read. Copies of the directory keep payloads whose names were dropped until the next image.
	maxRemoved = 1 << 16
)

// Feed opens a feed for the current reign. Close it before the stores of the directory.
func (v *Voter) Feed() (*VoterFeed, error) {
	f := &VoterFeed{v: v, id: newID(), sums: newSums(v.o.FS, v.o.Dir), named: map[string]namedFile{}, moved: time.Now()}
	f.sums.load()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reign == nil {
		return nil, errLost
	}
	f.r = v.reign
	v.feed = f
	return f, nil
}

// Reign returns the term of elections in which the voter leads: later leaders have larger ones.
func (f *VoterFeed) Reign() uint64 { return f.r.term }

// Directory returns the identity of the group's data.
func (f *VoterFeed) Directory() string {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	return f.v.id.Group
}

// Image takes an image of the directory between two changes; see Feed.Image.
func (f *VoterFeed) Image(ctx context.Context, _ Stores) (*Image, error) {
	if err := f.leads(ctx); err != nil {
		return nil, err
	}
	f.Release()
	st, err := f.v.take(f.id, f.sums)
	if err != nil {
		return nil, err
	}
	f.pin(true)
	known := newSums(f.v.o.FS, f.v.o.Dir) // without deleted files
	for i := range st.Files {
		x := &st.Files[i]
		if x.At == x.Name {
			x.At = path.Join(pinnedDir(f.id), x.Name)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info, err := f.v.o.FS.Stat(f.v.path(x.At))
		if err != nil {
			return nil, fmt.Errorf("cannot take the state: %w", err)
		}
		if !x.Known {
			sum, err := SumOf(f.v.o.FS, f.v.path(x.At))
			if err != nil {
				return nil, fmt.Errorf("cannot take the state: %w", err)
			}
			x.Size, x.Sum, x.Known = info.Size(), sum, true
		}
		if x.At != path.Join(stateDir(f.id), path.Base(x.Name)) { // copies of bbolt's files are others each time
			known.note(x.Name, x.Size, info.ModTime(), x.Sum)
		}
		f.Read()
	}
	f.sums = known
	return st, nil
}

// pin notes whether there are files of an image.
func (f *VoterFeed) pin(pinned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pinned, f.read = pinned, time.Now()
}

// Release releases the files of the image.
func (f *VoterFeed) Release() {
	f.pin(false)
	f.v.removeState(f.id)
}

// expire releases the files of the image if nothing was read for feedHoldTime.
func (f *VoterFeed) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock() // no other image is taken meanwhile
	if f.pinned && now.Sub(f.read) >= feedHoldTime {
		f.pinned = false
		f.v.removeState(f.id)
	}
}

// Need keeps the files of entries after a position; see Feed.Need.
func (f *VoterFeed) Need(after Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.need, f.moved = after.Index, time.Now()
	for name, x := range f.named {
		if x.index <= after.Index {
			delete(f.named, name)
		}
	}
}

// Read notes that files are being read: they stay for longer.
func (f *VoterFeed) Read() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = time.Now()
	f.read = f.moved
}

// holds returns the index of the entry after which the spool keeps the files of entries.
func (f *VoterFeed) holds(now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.moved) >= feedHoldTime {
		return math.MaxUint64
	}
	return f.need
}

// leads waits until ctx is done if the voter no longer leads, because then the feed will be closed.
func (f *VoterFeed) leads(ctx context.Context) error {
	select {
	case <-f.r.over:
		<-ctx.Done()
		return context.Cause(ctx)
	default:
		return ctx.Err()
	}
}

// Next returns entries behind a position; see Feed.Next.
func (f *VoterFeed) Next(ctx context.Context, after Position, wait time.Duration) (*Batch, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for waited := wait == 0; ; {
		if err := f.leads(ctx); err != nil {
			return nil, err
		}
		removed := f.waiting(after) // before the position is read: it has the changes for which they were removed
		t, changed, err := f.v.entries(after)
		if e := f.leads(ctx); e != nil {
			return nil, e
		}
		if err != nil {
			return nil, err
		}
		if waited || len(t.Entries) > 0 {
			return t, f.plain(t, removed)
		}
		select {
		case <-changed:
		case <-end.C:
			waited = true
		case <-f.r.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waiting returns the payloads that were removed and that no entry up to a position has.
func (f *VoterFeed) waiting(after Position) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told > 0 && after.Index >= f.toldIn {
		f.removed = f.removed[f.told:]
	}
	f.told = 0 // report the others again
	return f.removed
}

// plain turns proposals into entries of a writer. If they are the last ones, they get the removals so far.
func (f *VoterFeed) plain(t *Batch, removed []string) error {
	var last *Entry
	at := 0
	for i, b := range t.Entries {
		if len(b) == 0 {
			continue
		}
		p, err := decodeProposal(b, f.v.o.level)
		if err != nil {
			return err
		}
		index := t.Run.Index + uint64(i)
		if p.data != nil {
			if p.entry.Change.Data, err = f.v.dataOf(p.data); err != nil {
				return fmt.Errorf("%w: the data of entry %d: %w", ErrCut, index, err)
			}
		}
		f.mu.Lock()
		for n, x := range p.entry.Files {
			_, inline := p.inline[n]
			f.named[x.Name] = namedFile{x, index, inline}
		}
		f.mu.Unlock()
		last, at = p.entry, i
		t.Entries[i] = last.Encode()
	}
	if last != nil && t.Run.Index+uint64(len(t.Entries))-1 == t.End && len(removed) > 0 {
		last.Removed = removed
		t.Entries[at] = last.Encode()
		f.mu.Lock()
		f.told, f.toldIn = len(removed), t.Run.Index+uint64(at)
		f.mu.Unlock()
	}
	return nil
}

// Open opens a file that an image has, by ImageFile.At, or that an entry after the position of Need names. The error is fs.ErrNotExist if
// it is held no longer.
func (f *VoterFeed) Open(name string) (io.ReadCloser, error) {
	if strings.HasPrefix(name, stateDir(f.id)+"/") {
		return f.v.o.FS.Open(f.v.path(name))
	}
	f.mu.Lock()
	x, ok := f.named[name]
	f.mu.Unlock()
	if !ok || !fetchable(name) {
		return nil, fmt.Errorf("%q is not a file of an entry that is held: %w", name, fs.ErrNotExist)
	}
	if x.inline {
		if in, err := f.openInline(&x); !errors.Is(err, fs.ErrNotExist) {
			return in, err
		}
	} else if in, err := f.v.spool.open(fileKey(x.Size, x.Sum)); !errors.Is(err, fs.ErrNotExist) {
		return in, err
	}
	// The directory may have it still.
	in, err := f.v.o.FS.Open(f.v.path(name))
	if err != nil {
		return nil, err
	}
	sum, err := SumOf(f.v.o.FS, f.v.path(name))
	if info, e := in.Stat(); err != nil || e != nil || info.Size() != x.Size || sum != x.Sum {
		return nil, errors.Join(fmt.Errorf("%s is not the file of entry %d: %w", name, x.index, fs.ErrNotExist), err, e, in.Close())
	}
	return in, nil
}

// openInline opens a file whose content is in an entry. The error is fs.ErrNotExist if the log no longer has the entry.
func (f *VoterFeed) openInline(x *namedFile) (io.ReadCloser, error) {
	var data []byte
	err := f.v.node.Entries(x.index, x.index, func(e consensus.Entry) bool {
		data = e.Data
		return false
	})
	if errors.Is(err, logstore.ErrNotStored) {
		return nil, fmt.Errorf("cannot read entry %d: %w", x.index, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read entry %d: %w", x.index, err)
	}
	p, err := decodeProposal(data, f.v.o.level)
	if err != nil {
		return nil, err
	}
	return f.v.source(p)(x.Name)
}

// KeepSums has the next feed of this member know the checksums of the files of the last image.
func (f *VoterFeed) KeepSums() error { return f.sums.keep() }

// Close ends the feed: nothing is held for it.
func (f *VoterFeed) Close() error {
	f.v.mu.Lock()
	if f.v.feed == f {
		f.v.feed = nil
	}
	f.v.mu.Unlock()
	f.Release()
	return nil
}

// held returns the entry up to which files of the log may be removed. It releases files that have been held for the feed for too
// long.
func (v *Voter) held(now time.Time) uint64 {
	applied := v.noted()
	v.mu.Lock()
	f := v.feed
	v.mu.Unlock()
	if f != nil {
		applied = min(applied, f.holds(now))
		f.expire(now)
	}
	return applied
}

// toldFS is the file system of a voter's stores. It notifies the feed of removed payloads, which no task needs.
type toldFS struct {
	vfs.FS
	v *Voter
}

// Remove also records payloads for the feed, and forgets that they are not synced.
func (t toldFS) Remove(name string) error {
	inside, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(name)), t.v.o.Dir+"/")
	if !ok || !isPayload(inside) {
		return t.FS.Remove(name)
	}
	if err := t.v.unsynced.remove(t.FS, name, inside); err != nil {
		return err
	}
	t.v.mu.Lock()
	f := t.v.feed
	t.v.mu.Unlock()
	if f != nil {
		f.mu.Lock()
		if len(f.removed) < maxRemoved {
			f.removed = append(f.removed, inside)
		}
		f.mu.Unlock()
	}
	return nil
}
