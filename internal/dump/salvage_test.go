package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

// salvaged salvages a directory, and returns the dump and what it lacks.
func salvaged(t *testing.T, place Place) (file string, missing []string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "salvaged.dump")
	report, err := Salvage(t.Context(), SalvageOptions{
		FS: vfs.OS, Place: place, File: file, Version: "1.42.1", Now: func() time.Time { return moment },
		Rules:  func() ([][]byte, error) { return nil, nil },
		Tell:   func(m *Missing) { missing = append(missing, m.Error()) },
		Mended: func(damage *apierr.Corruption) { t.Errorf("repaired: %v", damage) },
	})
	must(t, err)
	if report.Places != len(missing) {
		t.Errorf("%+v, but reported %q", report, missing)
	}
	return file, missing
}

// TestSalvageOfASoundDirectory compares a salvaged dump with a dump of the same directory. Only the tasks differ: the dump has its own
// one.
func TestSalvageOfASoundDirectory(t *testing.T) {
	in := filled(t)
	names, want := tarball(t, dumpNow(t, in))
	in.close()
	file, missing := salvaged(t, in.o.Place)
	if len(missing) > 0 {
		t.Errorf("missing: %q", missing)
	}
	found, got := tarball(t, file)
	slices.Sort(names)
	slices.Sort(found)
	// The stub of this test has a network without a file.
	if names = slices.DeleteFunc(names, func(n string) bool { return n == networkName }); !slices.Equal(names, found) {
		t.Errorf("entries %q, want %q", found, names)
	}
	for _, n := range names {
		a, b := strings.Split(want[n], "\n"), strings.Split(got[n], "\n")
		slices.Sort(a)
		slices.Sort(b)
		if n != tasksName && !slices.Equal(a, b) {
			t.Errorf("%s is\n%s\nwant\n%s", n, got[n], want[n])
		}
	}
	imported(t, file)
}

// TestSalvageOfAliases salvages a directory without one of its indexes, and without its catalog. An import of the dump has the other
// aliases.
func TestSalvageOfAliases(t *testing.T) {
	in := filled(t)
	in.close()
	catalog, err := index.SalvageCatalog(vfs.OS, in.o.Place.Indexes)
	must(t, err)
	for _, x := range []struct {
		remove  string
		missing []string // parts of the report
		aliases map[string]string
	}{
		{catalog.Directories["empty"], []string{"all of index empty", "index empty: alias nothing"}, map[string]string{"shelf": "books"}},
		{filepath.Join(in.o.Place.Indexes, "CATALOG"), []string{"CATALOG", "the aliases, if there were any"}, map[string]string{}},
	} {
		must(t, os.RemoveAll(x.remove))
		file, missing := salvaged(t, in.o.Place)
		for _, part := range x.missing {
			if !slices.ContainsFunc(missing, func(text string) bool { return strings.Contains(text, part) }) {
				t.Errorf("without %s: %q lacks %q", x.remove, missing, part)
			}
		}
		aliases := imported(t, file).catalog.Aliases()
		got := map[string]string{}
		for _, alias := range aliases.All() {
			got[alias] = aliases.Index(alias)
		}
		if !maps.Equal(got, x.aliases) {
			t.Errorf("without %s: aliases %v, want %v", x.remove, got, x.aliases)
		}
	}
}

// TestSalvageOfALaterFormat salvages a directory whose catalog or manifest has a format version of a later program. Nothing in it is wrong,
// so nothing is repaired. The report names the version, because that file may have more than this program reads.
func TestSalvageOfALaterFormat(t *testing.T) {
	in := filled(t)
	in.close()
	catalog, err := index.SalvageCatalog(vfs.OS, in.o.Place.Indexes)
	must(t, err)
	for _, x := range []struct{ file, report string }{
		{filepath.Join(in.o.Place.Indexes, "CATALOG"), "format version 4"},
		{filepath.Join(catalog.Directories["books"], "MANIFEST"), "format version 7"},
	} {
		known, err := os.ReadFile(x.file)
		must(t, err)
		later := slices.Clone(known)
		later[8] = x.report[len(x.report)-1] - '0'
		must(t, os.WriteFile(x.file, later, 0o600))
		file, missing := salvaged(t, in.o.Place)
		if len(missing) != 1 || !strings.Contains(missing[0], x.file) || !strings.Contains(missing[0], x.report) {
			t.Errorf("%s of a later format: %q, want a report of %s", filepath.Base(x.file), missing, x.report)
		}
		now := imported(t, file)
		if aliases := now.catalog.Aliases(); aliases.Index("shelf") != "books" || now.catalog.Get("books") == nil {
			t.Errorf("%s of a later format: the dump lacks an index or its alias", filepath.Base(x.file))
		}
		now.close()
		if after, err := os.ReadFile(x.file); err != nil || !slices.Equal(after, later) {
			t.Errorf("%s was changed: %v", x.file, err)
		}
		must(t, os.WriteFile(x.file, known, 0o600))
	}
}

// TestSalvageOfAnInterruptedBatch salvages directories in which svc ended between the change of the indexes and the end of the batch in the
// queue file. An import of the dump must not run the task again: it would edit the document twice, or swap the indexes back.
func TestSalvageOfAnInterruptedBatch(t *testing.T) {
	for _, x := range []struct {
		name  string
		uid   string
		c     task.Content
		index string // with the document afterwards
		want  string
	}{
		{"edit", "books", task.EditDocuments{Function: "doc.n += 1", Context: json.RawMessage("{}")}, "books", `{"id":1,"n":1}`},
		{"swap", "", task.SwapIndexes{Swaps: []task.Swap{{Indexes: [2]string{"books", "bare"}}}}, "bare", `{"id":1,"n":0}`},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			in := open(t, dir, nil)
			docs := `{"id":1,"n":0}` + "\n"
			in.run("books", add(docs), docs)
			in.run("bare", task.CreateIndex{}, "")
			in.close()
			idle := func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 } // runs no task
			in = open(t, dir, idle)
			own := in.enqueue(x.uid, x.c, "")
			in.close()
			waiting, err := os.ReadFile(filepath.Join(dir, "tasks", "queue.db"))
			must(t, err)
			waitingTask, missing := salvaged(t, in.o.Place)
			if len(missing) > 0 {
				t.Errorf("the dump of a waiting task lacks %q", missing)
			}
			in = open(t, dir, nil)
			in.wait(own.UID)
			in.close()
			must(t, os.WriteFile(filepath.Join(dir, "tasks", "queue.db"), waiting, 0o600)) // without the end of the batch
			interrupted, missing := salvaged(t, in.o.Place)
			if len(missing) != 1 || !strings.Contains(missing[0], fmt.Sprintf("how task %d ended", own.UID)) {
				t.Errorf("the dump of an interrupted batch lacks %q", missing)
			}
			for _, file := range []string{waitingTask, interrupted} {
				in := imported(t, file)
				in.close()
				in = open(t, in.dir, nil)
				if ended := in.wait(own.UID); ended.Status != task.Succeeded {
					t.Errorf("%s: task %d is %v", file, own.UID, ended.Status)
				}
				var got []string
				v := held(in.catalog.Get(x.index).View())
				must(t, Documents(v, nil, func(_ int, _ segment.Row, doc []byte) error {
					got = append(got, string(doc))
					return nil
				}))
				v.Release()
				if !slices.Equal(got, []string{x.want}) {
					t.Errorf("%s: %s has %q, want %q", file, x.index, got, x.want)
				}
			}
		})
	}
}
