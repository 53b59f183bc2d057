package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"svc/internal/commit"
)

// filesOfTest returns the names of the files in a manifest of these tests.
func filesOfTest(_ string, b []byte) ([]string, error) { return strings.Fields(string(b))[1:], nil }

// partial removes from each manifest the files that the previous manifest of the index names, as voters do.
func partial(entries []*Entry) []*Entry {
	before, some := map[string][]string{}, make([]*Entry, len(entries))
	for i, e := range entries {
		c := *e
		if e.Change.Kind == commit.Manifest {
			c.Files = slices.DeleteFunc(slices.Clone(e.Files), func(f File) bool { return slices.Contains(before[e.Change.Name], f.Name) })
			before[e.Change.Name] = namesOf(e.Files)
			c.Change.Files = namesOf(c.Files)
		}
		some[i] = &c
	}
	return some
}

// directoryOf returns the directory after entries: manifests with their files, payloads, and the content of other files.
func directoryOf(entries []*Entry) map[string]string {
	d := map[string]string{}
	for _, e := range entries {
		if e.Change.Kind == commit.Manifest {
			names, _ := filesOfTest("", e.Change.Data)
			maps.DeleteFunc(d, func(name, _ string) bool {
				return below(path.Dir(e.Change.Name), name) && !slices.Contains(names, path.Base(name))
			})
		}
		d[e.Change.Name] = string(e.Change.Data)
		for _, f := range e.Files {
			d[f.Name] = fmt.Sprint(f.Size)
		}
		for _, name := range e.Removed {
			delete(d, name)
		}
	}
	return d
}

// TestCombinedEntriesMakeTheSame combines random entries. At each settled position, as Unsettled reports it, the directory must be the
// same as without combining. Files that no combined entry names must be left out.
func TestCombinedEntriesMakeTheSame(t *testing.T) {
	saved, between := 0, 0
	for range 300 {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		var entries []*Entry
		payload, waiting := 0, []string{}
		for i := range 1 + r.IntN(30) {
			e := &Entry{At: int64(i)}
			switch r.IntN(3) {
			case 0:
				e.Change = commit.Change{Kind: commit.Manifest, Name: fmt.Sprintf("indexes/%d/MANIFEST", r.IntN(2)), Data: fmt.Appendf(nil, "m%d", i)}
				for n := range r.IntN(3) {
					base := fmt.Sprintf("%d.seg", i-n+9)
					e.Files = append(e.Files, File{Name: e.Change.Name[:10] + base, Size: int64(i - n + 9)})
					e.Change.Data = fmt.Append(e.Change.Data, " ", base)
				}
			case 1:
				e.Change = commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: fmt.Appendf(nil, "t%d", i)}
				if r.IntN(2) == 0 {
					name := fmt.Sprintf("tasks/payloads/p%d", payload)
					payload++
					waiting = append(waiting, name)
					e.Files = append(e.Files, File{Name: name, Size: int64(payload)})
				}
			default:
				e.Change = commit.Change{Kind: commit.Sealed, Name: "x.json", Data: fmt.Appendf(nil, "x%d", i)}
			}
			if len(waiting) > 0 && r.IntN(2) == 0 {
				n := r.IntN(len(waiting))
				if e.Files == nil || e.Files[len(e.Files)-1].Name != waiting[n] {
					e.Removed = append(e.Removed, waiting[n])
					waiting = slices.Delete(waiting, n, n+1)
				}
			}
			e.Change.Files = namesOf(e.Files)
			entries = append(entries, e)
		}
		if r.IntN(2) == 0 { // as voters name files
			entries = partial(entries)
		}
		combined, err := Combine(entries, filesOfTest)
		if err != nil {
			t.Fatal(err)
		}
		raw := make([][]byte, len(combined))
		files := map[File]bool{}
		for i, e := range combined {
			raw[i] = e.Encode()
			for _, f := range e.Files {
				files[f] = true
			}
		}
		until, err := Unsettled(raw)
		if err != nil {
			t.Fatal(err)
		}
		end := 0
		for i, n := range until {
			if end = max(end, n); end > i {
				between++
				continue
			}
			got, want := directoryOf(combined[:i+1]), directoryOf(entries[:i+1])
			if !maps.Equal(got, want) {
				t.Fatalf("after entry %d of %d the directory is %v, want %v", i, len(entries), got, want)
			}
		}
		for _, e := range entries {
			for _, f := range e.Files {
				if !files[f] {
					saved++
				}
			}
		}
		if end >= len(entries) {
			t.Fatal("the last entry is not settled")
		}
	}
	if saved == 0 || between == 0 {
		t.Errorf("%d files were saved, and %d entries were unsettled; want some of both", saved, between)
	}
}

// TestUncombinedEntriesAreSettled checks that each entry that was not combined is a consistent position.
func TestUncombinedEntriesAreSettled(t *testing.T) {
	var raw [][]byte
	for i := range 4 {
		e := Entry{Change: commit.Change{Kind: commit.Manifest, Name: "indexes/1/MANIFEST", Data: fmt.Appendf(nil, "%d", i)}, Removed: []string{fmt.Sprintf("tasks/payloads/%d", i)}}
		raw = append(raw, e.Encode())
	}
	if got, err := Unsettled(raw); err != nil || !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Unsettled([][]byte{{entryVersion + 1}}); err == nil {
		t.Error("an entry of a later version is read")
	}
}
