package group

import (
	"path"
	"slices"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
)

// Entries that are published together may be combined, so that files which one of them names and a later one replaces need not be
// sent:
//
//   - A manifest becomes the last one of the same name among the entries.
//   - A payload that one entry names and a later one removes is removed by the first one, too.
//
// A reader that applies all of them gets the same directory as without combining. Between them, an index may have changes that the
// queue does not have yet, and a task may lack its payload: the writer never had such a state. Other positions are consistent.

// Combine combines entries. filesOf is index.FilesOf. The result refers to the entries.
func Combine(entries []*Entry, filesOf func(name string, manifest []byte) ([]string, error)) ([]*Entry, error) {
	combined := make([]*Entry, len(entries))
	manifests, removed := map[string]*lastManifest{}, map[string]bool{}
	for i, e := range slices.Backward(entries) {
		c := *e
		for _, name := range e.Removed {
			removed[name] = true
		}
		if e.Change.Kind == commit.Manifest {
			m := manifests[e.Change.Name]
			if m == nil {
				names, err := filesOf(e.Change.Name, e.Change.Data)
				if err != nil {
					return nil, err
				}
				m = &lastManifest{data: e.Change.Data, names: names}
				manifests[e.Change.Name] = m
			}
			m.add(e.Files)
			c.Change.Data, c.Files = m.data, slices.Clone(m.files)
		}
		if gone := func(f File) bool { return removed[f.Name] }; slices.ContainsFunc(c.Files, gone) {
			c.Removed = slices.Clone(e.Removed)
			for _, f := range c.Files {
				if gone(f) {
					c.Removed = append(c.Removed, f.Name)
				}
			}
			c.Files = slices.DeleteFunc(slices.Clone(c.Files), gone)
		}
		c.Change.Files = namesOf(c.Files)
		combined[i] = &c
	}
	return combined, nil
}

// lastManifest is the last manifest with a name. Of its files, it has those that entries up to it name.
type lastManifest struct {
	data  []byte
	names []string // of all of its files, in their directory
	files []File
}

// add adds files of an entry before those so far. Manifests may name all of their files, or those that the one before does not name.
func (m *lastManifest) add(files []File) {
	for _, f := range files {
		known := func(x File) bool { return x.Name == f.Name }
		if slices.Contains(m.names, path.Base(f.Name)) && !slices.ContainsFunc(m.files, known) {
			m.files = append(m.files, f)
		}
	}
}

// ReadEntry is DecodeEntry, also for the empty entries that the log of voters has: they change nothing, and their Kind is 0.
func ReadEntry(b []byte) (*Entry, error) {
	if len(b) == 0 {
		return new(Entry), nil
	}
	return DecodeEntry(b)
}

func namesOf(files []File) (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// Unsettled returns, for each entry, the number of the entry after which the position is consistent again; that is its own number, unless
// it was combined with that later one. Before, the directory has a state that the writer never had.
func Unsettled(entries [][]byte) ([]int, error) {
	type manifest struct {
		name string
		sum  xxh3.Uint128
	}
	until := make([]int, len(entries))
	manifests, removed := map[manifest]int{}, map[string]int{}
	for i, b := range slices.Backward(entries) {
		until[i] = i
		e, err := ReadEntry(b)
		if err != nil {
			return nil, err
		}
		if e.Change.Kind == commit.Manifest {
			key := manifest{e.Change.Name, hash128(e.Change.Data)}
			if n, ok := manifests[key]; ok {
				until[i] = n
			} else {
				manifests[key] = i
			}
		}
		for _, name := range e.Removed {
			if n, ok := removed[name]; ok {
				until[i] = max(until[i], n)
			} else {
				removed[name] = i
			}
		}
	}
	return until, nil
}
