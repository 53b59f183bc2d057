package group

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/commit"
	"svc/internal/index"
	"svc/internal/vfs"
)

// pending is a change that this leader has proposed.
type pending struct {
	turn chan struct{} // its turn has come
	done chan error    // it was made
	gone chan struct{} // closed when no caller waits for its turn any more
}

// errLost is the error of changes of a leader that leads no longer.
var errLost = apierr.New("no_writer", "This server does not lead its group any more. Send the request again: nobody knows whether it was accepted.")

// Do proposes a change to the group and, once it is committed, makes it in the order of the log. After an error this voter no longer
// leads, and the group may still have accepted the change.
func (v *Voter) Do(c commit.Change, apply func() error) error {
	v.mu.Lock()
	r := v.reign
	v.mu.Unlock()
	if r == nil {
		return errLost
	}
	p, err := v.propose(r, &c)
	if err != nil {
		return fmt.Errorf("cannot propose a change of %s: %w", c.Name, err)
	}
	own := &pending{turn: make(chan struct{}), done: make(chan error, 1), gone: make(chan struct{})}
	v.mu.Lock()
	if v.reign != r {
		v.mu.Unlock()
		return errLost
	}
	v.pending[p.nonce] = own
	v.mu.Unlock()
	defer func() {
		close(own.gone)
		v.mu.Lock()
		delete(v.pending, p.nonce)
		v.mu.Unlock()
	}()
	index, err := v.node.Propose(r.term, p.encode(), r.over) // Lead may not have noticed yet that this voter has lost the lead
	if err != nil {
		r.end(err)
		return fmt.Errorf("%w (%v)", errLost, err)
	}
	for key := range p.keys() {
		v.spool.has(key, index) // it stays for the entry, which may be far behind the one that it was put there for
	}
	select {
	case <-own.turn:
	case <-r.over:
		return errLost
	}
	if err = apply(); err != nil {
		// The group has the change, and the stores take it for failed: what they would make of that must not follow it in the log.
		r.end(fmt.Errorf("a change that the group has accepted cannot be made: %w", err))
	} else {
		v.reach(index)
		v.manifestIs(&c)
	}
	own.done <- err
	return err
}

// propose returns the form of a change that is sent to the group, and puts its files in the spool. Sending them to the others starts
// at the same time.
func (v *Voter) propose(r *reign, c *commit.Change) (*proposal, error) {
	p, err := v.formed(c)
	if err != nil {
		return nil, err
	}
	p.level = v.level()
	index := v.node.Last() + 1
	added, err := v.spoolFiles(p, c.Data, index)
	if err != nil || !added {
		return p, err
	}
	v.push(r, p, index)
	return p, v.spool.sync(maps.Keys(p.keys()))
}

// formed returns the form of a change that is sent to the group. Its files are durable then, or the form contains them.
func (v *Voter) formed(c *commit.Change) (*proposal, error) {
	p := &proposal{inline: map[int][]byte{}}
	rand.Read(p.nonce[:])
	names, err := v.fresher(c)
	if err != nil {
		return nil, err
	}
	kept, left := v.unsynced.proposed(names)
	files := make([]File, len(names))
	for i, name := range names {
		room := left
		if kept[name] {
			room = maxInlineFile // it is not part of left
		}
		content, size, ok, err := v.small(c, i, name, room)
		if err != nil {
			return nil, err
		}
		if ok {
			if !kept[name] {
				left -= len(content)
			}
			p.inline[i], files[i] = content, fileOf(name, content)
			continue
		}
		sum, err := SumOf(v.o.FS, v.path(name))
		if err != nil {
			return nil, err
		}
		files[i] = File{name, size, sum}
	}
	change := *c
	if len(c.Data) > maxData {
		f := fileOf("", c.Data)
		p.data, change.Data = &f, nil
	}
	p.entry = &Entry{At: time.Now().UnixNano(), Change: change, Files: files}
	return p, nil
}

// small returns the size of a file of a change and, if it may travel in the log, its content: ok. left bounds that.
func (v *Voter) small(c *commit.Change, i int, name string, left int) (content []byte, size int64, ok bool, err error) {
	most := int64(min(left, maxInlineFile))
	if i < min(len(c.Contents), len(c.Files)) && c.Files[i] == name && c.Contents[i] != nil {
		content = c.Contents[i]
		return content, int64(len(content)), int64(len(content)) <= most, nil
	}
	info, err := v.o.FS.Stat(v.path(name))
	if err != nil {
		return nil, 0, false, err
	}
	if size = info.Size(); size > most {
		return nil, size, false, nil
	}
	content, err = vfs.ReadFile(v.o.FS, v.path(name))
	return content, size, true, err
}

// spoolFiles puts the files of a proposal in the spool, and data if they are one of them. They stay for the entry with an index: before
// that is known, for the entry after the last.
func (v *Voter) spoolFiles(p *proposal, data []byte, index uint64) (added bool, err error) {
	for i, f := range p.entry.Files {
		if _, ok := p.inline[i]; ok {
			continue
		}
		if err := v.spool.link(v.path(f.Name), fileKey(f.Size, f.Sum), f.Size, index); err != nil {
			return false, err
		}
		added = true
	}
	if p.data != nil {
		if err := v.spool.put(fileKey(p.data.Size, p.data.Sum), data, index); err != nil {
			return false, err
		}
		added = true
	}
	return added, nil
}

// fresher returns the files of a change that the change before it of the same file did not name.
func (v *Voter) fresher(c *commit.Change) ([]string, error) {
	if c.Kind != commit.Manifest {
		return c.Files, nil
	}
	v.mu.Lock()
	known, ok := v.named[c.Name]
	v.mu.Unlock()
	if !ok {
		b, err := vfs.ReadFile(v.o.FS, v.path(c.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			files, err := index.FilesOf(c.Name, b)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				known = append(known, path.Join(path.Dir(c.Name), f))
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(c.Files), func(name string) bool { return slices.Contains(known, name) }), nil
}

// manifestIs notes which files a manifest names now.
func (v *Voter) manifestIs(c *commit.Change) {
	if c.Kind != commit.Manifest {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.named[c.Name] = slices.Clone(c.Files)
}

// source returns a standby.Source of the files of an entry.
func (v *Voter) source(p *proposal) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		for i, f := range p.entry.Files {
			if f.Name != name {
				continue
			}
			if content, ok := p.inline[i]; ok {
				return io.NopCloser(newBytes(content)), nil
			}
			return v.spool.open(fileKey(f.Size, f.Sum))
		}
		return nil, fmt.Errorf("the change does not name %s", name)
	}
}
