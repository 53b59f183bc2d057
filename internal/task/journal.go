package task

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/bytedance/sonic"
	"github.com/cespare/xxhash/v2"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// entry records a batch that is about to run, or was abandoned, and the batches that run at the same time. The next start repeats
// exactly those batches that have not ended in the queue file, because they may have changed indexes.
type entry struct {
	UID       uint32    `json:"uid"`
	StartedAt time.Time `json:"startedAt"`
	Tasks     []uint32  `json:"tasks"`
	Plan      plan      `json:"plan"`
	// Crashes is how often the program ended, or lost the lead, while the batch ran before, Stopped that it gave the batch up in order.
	Crashes int  `json:"crashes,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
	// Apart are the tasks that run one by one, including those of the batch: roaring bitmaps of their uids, by how often the process
	// ended while they ran together.
	Apart map[int][]byte `json:"apart,omitempty"`
	// By is the process that runs the batch. Ran has the processes counted in Crashes, and ApartRan those of Apart. They are set if a
	// process that still lives may have lost the batch to another one: see Queue.RunIn.
	By       string           `json:"by,omitempty"`
	Ran      []string         `json:"ran,omitempty"`
	ApartRan map[int][]string `json:"apartRan,omitempty"`
	// Skipped is how many uids before this one belong to no batch that was stored when this one was chosen: their batches were split
	// or ran beside it.
	Skipped uint32 `json:"skipped,omitempty"`
	// Beside are the entries of the other batches that run or have to run again. Their own Beside is empty.
	Beside []*entry `json:"beside,omitempty"`
}

// all returns the entry and those of Beside, by uid, each without Beside.
func (e *entry) all() []*entry {
	if e == nil {
		return nil
	}
	own := *e
	own.Beside = nil
	all := append([]*entry{&own}, e.Beside...)
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

// maxCrashes is how often a task may be running when the process ends unexpectedly: the task may be the cause.
const maxCrashes = 2

// maxSharedCrashes is the same where other instances run the task, too: one that gives it up has other documents than they.
const maxSharedCrashes = 20

// maxLosses is the same for the ends of the program and the losses of its lead together, because a task may cause either.
const maxLosses = 2 * maxSharedCrashes

// crashes is how often the program ended while the batch ran, as the next run of the program counts it.
func (e *entry) crashes() int {
	if e.Stopped {
		return e.Crashes
	}
	return e.Crashes + 1
}

// ran returns the processes of crashes, where they are known.
func (e *entry) ran() []string {
	if e.Stopped || e.By == "" {
		return e.Ran
	}
	return append(slices.Clone(e.Ran), e.By)
}

// journal is the file "running": a list of entries, the last of which is valid. Each is u32 length, u64 xxhash of the JSON, JSON. It
// costs one sync per batch; a commit of the queue file costs two. A torn entry belongs to a batch that had not started.
type journal struct {
	fs   vfs.FS
	name string

	mu   sync.Mutex // guards all below
	file vfs.File
	size int
	live []*entry // what the next start is to repeat, if the queue does not know its end
}

const journalLimit = 1 << 20 // bytes; then the file is rewritten

// openJournal returns the journal of a directory and its last complete entry, or nil. The file is opened for writing on first use.
func openJournal(fsys vfs.FS, dir string) (*journal, *entry, error) {
	j := &journal{fs: fsys, name: path.Join(dir, "running")}
	last, err := j.read()
	if err != nil {
		return nil, nil, err
	}
	return j, last, nil
}

// read returns the last whole entry, or nil.
func (j *journal) read() (*entry, error) {
	f, err := j.fs.Open(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", j.name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", j.name, err)
	}
	return lastEntry(b), nil
}

// lastEntry returns the last entry of the file with a correct checksum, or nil. Reading ends at the first torn entry, because nothing
// after it was synced.
func lastEntry(b []byte) *entry {
	var last []byte
	for len(b) >= 12 {
		length := binary.LittleEndian.Uint32(b)
		sum := binary.LittleEndian.Uint64(b[4:])
		if uint64(length) > uint64(len(b)-12) {
			break
		}
		body := b[12 : 12+length]
		if xxhash.Sum64(body) != sum {
			break
		}
		last, b = body, b[12+length:]
	}
	var e entry
	if last == nil || sonic.Unmarshal(last, &e) != nil {
		return nil
	}
	return &e
}

// await adds the batches of earlier processes to every entry, until they are written themselves or dropped.
func (j *journal) await(entries []*entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		waiting := *e
		waiting.Crashes, waiting.Ran, waiting.Stopped, waiting.Apart, waiting.ApartRan = e.crashes(), e.ran(), true, nil, nil
		j.live = append(j.live, &waiting)
	}
}

// forget leaves a batch out of the next entries. In the file it stays until then.
func (j *journal) forget(uid uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live = j.others(uid)
}

// others returns all entries except that of one batch. The lock is held.
func (j *journal) others(uid uint32) []*entry {
	return slices.DeleteFunc(slices.Clone(j.live), func(e *entry) bool { return e.UID == uid })
}

// write makes the entry of a batch durable. Until it is, the entry before it counts.
func (j *journal) write(e *entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	others := j.others(e.UID)
	whole := *e
	whole.Beside = others
	if err := j.put(&whole); err != nil {
		return err
	}
	own := *e
	own.Apart, own.ApartRan = nil, nil // those of the newest entry count
	j.live = append(others, &own)
	return nil
}

// put appends an entry as a durable change. mu is held.
func (j *journal) put(e *entry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode batch %d: %w", e.UID, err)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 12+len(body)), uint32(len(body)))
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(body))
	b = append(b, body...)
	return commit.Do(j.fs, func() (commit.Change, error) {
		return commit.Change{Kind: commit.Begin, Name: j.name, Data: b}, nil
	}, func() error { return j.add(b) })
}

// follow appends an entry of the writer's journal unchanged.
func (j *journal) follow(b []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.add(b)
}

// add adds an entry to the file.
func (j *journal) add(b []byte) error {
	if j.file == nil || j.size > journalLimit {
		return j.restart(b)
	}
	if err := j.append(b); err != nil {
		// The content of the file is now unknown. The next entry rewrites it.
		j.shut()
		return fmt.Errorf("cannot write %s: %w", j.name, err)
	}
	return nil
}

// append writes and syncs bytes at the end of the open file. mu is held.
func (j *journal) append(b []byte) error {
	if _, err := j.file.Write(b); err != nil {
		return err
	}
	j.size += len(b)
	return j.file.Sync()
}

// restart puts a file with one entry in the place of the old one.
func (j *journal) restart(b []byte) error {
	j.shut()
	f, err := j.fs.Create(j.name + ".new")
	if err == nil {
		j.file, j.size = f, 0
		err = j.append(b)
	}
	if err == nil && !vfs.ReplacesOpen {
		// The file cannot be renamed while it is open, nor reopened for appending. So each entry gets a file of its own.
		j.file, err = nil, f.Close()
	}
	if err == nil {
		_, err = vfs.Move(j.fs, j.name+".new", j.name)
	}
	if err != nil {
		j.shut()
		return fmt.Errorf("cannot create %s: %w", j.name, err)
	}
	return nil
}

func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shut()
}

// shut is close with the lock held.
func (j *journal) shut() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}
