package group

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/vfs"
)

// A payload that travels in the log is durable with its entry, so no member syncs the file: a write of a client then costs each member the
// sync of the log, and none of its own. These rules make up for that:
//
//   - The name is durable before the queue file names the payload, so a file that is missing after a power failure is not needed.
//   - Before entries leave the log, and before the voter stops, the files are synced: see Voter.save.
//   - Before a voter opens its stores, it compares the files with the entries of its log, writes those again that differ, and syncs all.
//   - A copy of another member's directory takes no such file from the directory that it replaces.

const (
	// maxSyncs bounds the files that are synced at once.
	maxSyncs = 16
	// maxUnsynced is how many payloads may wait for a sync. It limits the work at an end, or at a cut of the log. Beyond it, the
	// queue of a leader syncs each payload, and a follower syncs all of them before the next change.
	maxUnsynced = 1 << 12
)

// unsynced are the payloads that may not be durable.
type unsynced struct {
	settling sync.Mutex // one sync of a file at a time: the system tells of a failed write once, and a second sync would succeed

	mu      sync.Mutex
	names   map[string]*keptFile // by their names below the data directory
	waiting int64                // bytes of those that wait for their entry: all fit into one
}

// keptFile is a payload whose content the log has, or gets.
type keptFile struct {
	File
	waits  bool // for its entry
	failed bool // a sync has: the next one would say nothing
}

// Keep implements commit.Keeper.
func (v *Voter) Keep(name string, content []byte) bool {
	if !isPayload(name) || len(content) > maxInlineFile {
		return false
	}
	f := fileOf(name, content)
	u := &v.unsynced
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.names) >= maxUnsynced || u.waiting+f.Size > maxInline {
		return false
	}
	u.put(&keptFile{File: f, waits: true})
	u.waiting += f.Size
	return true
}

// put notes a payload. mu is held.
func (u *unsynced) put(k *keptFile) {
	if u.names == nil {
		u.names = map[string]*keptFile{}
	}
	u.names[k.Name] = k
}

// add notes a payload that is in the directory, and in an entry of the log.
func (u *unsynced) add(f *File) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(&keptFile{File: *f})
}

// many reports whether the payloads are to be synced.
func (u *unsynced) many() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.names) >= maxUnsynced
}

// proposed returns which files of a change wait for its entry, and how many bytes of others that has room for.
func (u *unsynced) proposed(names []string) (kept map[string]bool, left int) {
	kept, left = map[string]bool{}, maxInline
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		if k := u.names[name]; k != nil && k.waits {
			k.waits = false
			u.waiting -= k.Size
			kept[name] = true
			left -= int(k.Size)
		}
	}
	return kept, left
}

// crowned begins a reign: no payload of the one before gets an entry.
func (u *unsynced) crowned() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range u.names {
		k.waits = false
	}
	u.waiting = 0
}

// remove removes a payload.
func (u *unsynced) remove(fsys vfs.FS, file, name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := fsys.Remove(file)
	if k := u.names[name]; k != nil && err == nil {
		if k.waits {
			u.waiting -= k.Size
		}
		delete(u.names, name)
	}
	return err
}

// payloads returns the contents of payloads that travel in the log, by index of the file, or nil.
func (p *proposal) payloads() [][]byte {
	if p.entry.Change.Kind != commit.Tasks || len(p.inline) == 0 {
		return nil
	}
	contents := make([][]byte, len(p.entry.Files))
	for i, content := range p.inline {
		if isPayload(p.entry.Files[i].Name) {
			contents[i] = content
		}
	}
	return contents
}

// settlePayloads makes all payloads durable that may not be.
func (v *Voter) settlePayloads() error {
	u := &v.unsynced
	u.settling.Lock()
	defer u.settling.Unlock()
	u.mu.Lock()
	all := make([]*keptFile, 0, len(u.names))
	for _, k := range u.names {
		all = append(all, k)
	}
	u.mu.Unlock()
	var syncs errgroup.Group
	syncs.SetLimit(maxSyncs)
	for _, k := range all {
		syncs.Go(func() error { return u.settle(v.o.FS, v.path(k.Name), k) })
	}
	return syncs.Wait()
}

// settle makes a payload durable. If it cannot be synced, settle rewrites it: a later successful sync would prove nothing. A system
// may also forget a failed write before any sync, so settle compares the content.
func (u *unsynced) settle(fsys vfs.FS, file string, k *keptFile) error {
	u.mu.Lock() // to append to a removed file would make it again
	var f vfs.File
	_, err := fsys.Stat(file)
	if err == nil && !k.failed && u.names[k.Name] == k {
		f, err = fsys.Append(file)
	}
	u.mu.Unlock()
	if f != nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names[k.Name] != k { // removed, or created again
		return nil
	}
	content, e := vfs.ReadFile(fsys, file)
	switch {
	case errors.Is(e, fs.ErrNotExist):
		if k.waits { // the queue is renaming it, after a failed sync of its directory
			return nil
		}
		// It was in a directory that a copy of another voter's has replaced.
	case e != nil:
		return errors.Join(err, e)
	case fileOf(k.Name, content).Sum != k.Sum:
		return errors.Join(err, fmt.Errorf("%s does not have the content that the log has: %w", file, errSum))
	case f == nil || err != nil:
		k.failed = true
		if _, e := vfs.Replace(fsys, file, content); e != nil {
			return errors.Join(err, e)
		}
	}
	delete(u.names, k.Name)
	if k.waits { // it is durable, and need not travel
		u.waiting -= k.Size
	}
	return nil
}

// mender makes payloads whole that a power failure has damaged, by the entries of a log.
type mender struct {
	v     *Voter
	names map[string]bool // payloads in the directory
}

// newMender returns one for the payloads in the directory.
func (v *Voter) newMender() (*mender, error) {
	m := &mender{v: v, names: map[string]bool{}}
	names, err := v.o.FS.List(v.path(payloadDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		if name = path.Join(payloadDir, name); isPayload(name) {
			m.names[name] = true
		}
	}
	return m, nil
}

// entry completes the payloads of an entry. Complete ones may still need a sync.
func (m *mender) entry(e consensus.Entry) error {
	if len(m.names) == 0 {
		return nil
	}
	p, err := decodeProposal(e.Data, m.v.o.level)
	if err != nil { // who applies the entry reports it
		return nil
	}
	for i, content := range p.payloads() {
		f := &p.entry.Files[i]
		if content == nil || !m.names[f.Name] {
			continue
		}
		was, err := vfs.ReadFile(m.v.o.FS, m.v.path(f.Name))
		if err != nil {
			return err
		}
		if string(was) == string(content) {
			m.v.unsynced.add(f)
		} else if _, err := vfs.Replace(m.v.o.FS, m.v.path(f.Name), content); err != nil {
			return err
		}
	}
	return nil
}
