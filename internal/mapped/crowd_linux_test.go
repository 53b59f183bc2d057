package mapped

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

// randomParts returns the parts of a mapped file that the system takes to be read at random.
func randomParts(t *testing.T, f *File) []Part {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer maps.Close()
	var parts []Part
	var now Part
	ours := false
	for s := bufio.NewScanner(maps); s.Scan(); {
		var from, to, offset int64
		var mode, device string
		var node int
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x %s %x %s %d", &from, &to, &mode, &offset, &device, &node); n == 6 {
			ours = strings.HasSuffix(s.Text(), f.Name())
			now = Part{offset, to - from}
		}
		if flags, ok := strings.CutPrefix(s.Text(), "VmFlags:"); ok && ours && slices.Contains(strings.Fields(flags), "rr") {
			parts = append(parts, now)
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.At, b.At) })
	return parts
}

// The system is told of the parts that are read at single places while files are crowded, and only then.
func TestScatteredPartsAreToldToTheSystem(t *testing.T) {
	page := int64(os.Getpagesize())
	name := filepath.Join(t.TempDir(), "scattered")
	if err := os.WriteFile(name, make([]byte, 100*page), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check := func(when string, want ...Part) {
		t.Helper()
		if got := randomParts(t, f); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	f.Scatter([]Part{{2*page + 5, 7 * page}, {20 * page, page}})
	check("all files fit")
	fitIn(t, 0)
	a, b := Part{2 * page, 8 * page}, Part{20 * page, page}
	check("they do not", a, b)
	FitIn(1 << 40)
	check("they fit again")
	FitIn(0)
	check("they do not again", a, b)
	other, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Scatter([]Part{{50 * page, 2 * page}})
	check("another was opened meanwhile", append([]Part{a, b}, Part{50 * page, 2 * page})...)
}

// What is not in memory is told, and pages can be taken out of memory.
func TestMissingPages(t *testing.T) {
	page := int64(os.Getpagesize())
	name := filepath.Join(t.TempDir(), "missing")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(make([]byte, 64*page)); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil { // the system keeps what it has not written
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fitIn(t, 0)
	f.Scatter([]Part{{0, 64 * page}})
	sum := byte(0)
	for _, b := range f.Bytes() {
		sum |= b
	}
	if sum != 0 {
		t.Error("other bytes")
	}
	if missing := f.Missing(0, 64*page); missing != nil {
		t.Skipf("pages leave memory by themselves: %v", missing)
	}
	f.Advise(8*page, 4*page, PageOut)
	f.Advise(20*page, 2*page, PageOut)
	want := []Part{{8 * page, 4 * page}, {20 * page, 2 * page}}
	switch got := f.Missing(5, 64*page-9); {
	case got == nil:
		t.Skip("this file system keeps its pages")
	case slices.Equal(got, want):
	case pages(got, page) > pages(want, page):
		t.Skipf("pages leave memory by themselves: %v", got)
	default:
		t.Errorf("missing are %v, want %v", got, want)
	}
}

// pages counts the pages of some parts.
func pages(parts []Part, page int64) (n int64) {
	for _, p := range parts {
		n += p.Length / page
	}
	return n
}

// What is requested comes into memory up to its end, however little the disk is set to read ahead.
func TestRequestedPages(t *testing.T) {
	const size = 20 << 20
	name := filepath.Join(t.TempDir(), "requested")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Advise(0, size, Random)
	f.Advise(0, size, PageOut)
	if f.Holds(size - 1) {
		t.Skip("this file system keeps its pages")
	}
	f.Advise(0, size, WillNeed)
	for end := time.Now().Add(20 * time.Second); !f.Holds(size - 1); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the last page was not read")
		}
	}
}
