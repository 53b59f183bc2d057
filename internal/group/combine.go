package group

import (
	"slices"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
)

// Entries that are published together may be combined, so that files which one of them names and a later one replaces need not be sent:
//
//   - A manifest becomes the last one of the same name among the entries.
//   - A payload that one entry names and a later one removes is removed by the first one, too.
//
// Who makes the changes of all of them has the same directory as without. In between, an index may have changes that the queue does not
// tell of yet, and a task may lack its payload. So a directory stays there only on its way.

// Combine combines entries. The result refers to them.
func Combine(entries []*Entry) []*Entry {
	last, removed := map[string]int{}, map[string]int{}
	for i, e := range entries {
		if e.Change.Kind == commit.Manifest {
			last[e.Change.Name] = i
		}
		for _, name := range e.Removed {
			removed[name] = i
		}
	}
	combined := make([]*Entry, len(entries))
	for i, e := range entries {
		c := *e
		if n, ok := last[e.Change.Name]; ok && e.Change.Kind == commit.Manifest {
			c.Change, c.Files = entries[n].Change, entries[n].Files
		}
		gone := func(f File) bool { return removed[f.Name] > i && isPayload(f.Name) }
		if slices.ContainsFunc(c.Files, gone) {
			c.Files, c.Removed = nil, slices.Clone(e.Removed)
			for _, f := range e.Files {
				if gone(f) {
					c.Removed = append(c.Removed, f.Name)
				} else {
					c.Files = append(c.Files, f)
				}
			}
			c.Change.Files = namesOf(c.Files)
		}
		combined[i] = &c
	}
	return combined
}

func namesOf(files []File) (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// Unsettled returns, for each entry, the number of the entry after which a directory is again one that has been there; that is its own
// number, unless it was combined with that later one.
func Unsettled(entries [][]byte) ([]int, error) {
	type manifest struct {
		name string
		sum  xxh3.Uint128
	}
	until := make([]int, len(entries))
	manifests, removed := map[manifest]int{}, map[string]int{}
	for i, b := range slices.Backward(entries) {
		until[i] = i
		e, err := DecodeEntry(b)
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
