package dump

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/vfs"
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
		t.Errorf("%+v, but told %q", report, missing)
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
		missing []string // parts of what is told
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
