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

	"golang.org/x/sys/unix"

	"svc/internal/vfs"
)

// randomParts returns the parts of a mapped file that have random access advice.
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

// TestScatteredPartsAreAdvised checks that scattered parts get random access advice while files are crowded, and only then.
func TestScatteredPartsAreAdvised(t *testing.T) {
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
	f.SetCold(true)
	check("the file is cold", a, b)
	FitIn(0)
	f.SetCold(false)
	check("they do not fit, and the file is not cold", a, b)
	FitIn(1 << 40)
	check("they fit once more")
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

// TestMissingPages checks that pages can be evicted from memory, and that evicted pages are reported as missing.
func TestMissingPages(t *testing.T) {
	page := int64(os.Getpagesize())
	f := coldFile(t, 64*page)
	fitIn(t, 0)
	f.Scatter([]Part{{0, 64 * page}})
	sum := byte(0)
	for _, b := range f.Bytes() {
		sum |= b
	}
	if sum != 0 {
		t.Error("the bytes differ")
	}
	checkMissing(t, f, f.Missing(0, 64*page), nil)
	want := []Part{{8 * page, 4 * page}, {20 * page, 2 * page}}
	out := func() bool {
		for _, p := range want {
			f.Advise(p.At, p.Length, PageOut)
			for at := p.At; at < p.At+p.Length; at += page {
				if f.Holds(at) {
					return false
				}
			}
		}
		return true
	}
	// A page that was just read may be in a per-CPU list, from which the system does not evict it.
	for end := time.Now().Add(5 * time.Second); !out(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Skip("this system does not evict pages on request")
		}
	}
	checkMissing(t, f, f.Missing(5, 64*page-9), want)
}

// coldFile returns a file of zeros with no page in memory. PageOut could not do this: it takes only mapped pages, and may leave pages that
// were not read from the disk.
func coldFile(t *testing.T, size int64) *File {
	t.Helper()
	w, err := os.Create(filepath.Join(t.TempDir(), "cold"))
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
	if err := unix.Fadvise(int(w.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Skip(err)
	}
	f, err := Open(vfs.OS, w.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	page := int64(os.Getpagesize())
	for at := int64(0); at < size; at += page {
		if f.Holds(at) {
			t.Skip("this file system keeps its pages")
		}
	}
	return f
}

// checkMissing compares the missing parts of a file with the evicted ones. The system may evict others: if a second check finds these
// missing as well, it skips the test.
func checkMissing(t *testing.T, f *File, got, want []Part) {
	t.Helper()
	page := int64(os.Getpagesize())
	has := func(parts []Part, at int64) bool {
		return slices.ContainsFunc(parts, func(p Part) bool { return p.At <= at && at < p.At+p.Length })
	}
	left := false
	for at := int64(0); at < int64(len(f.Bytes())); at += page {
		switch missing := has(got, at); {
		case missing == has(want, at):
		case missing && !f.Holds(at):
			left = true
		default:
			t.Fatalf("missing are %v, want %v: differs at %d", got, want, at)
		}
	}
	if left {
		t.Skipf("pages leave memory by themselves: %v", got)
	}
	if !slices.Equal(got, want) {
		t.Errorf("missing are %v, want %v", got, want)
	}
}

// TestRequestedPages requests far more than a disk reads ahead: the last piece must come into memory as well. The test checks its first
// page only, because a disk that reads ahead less than a piece does not load the rest.
func TestRequestedPages(t *testing.T) {
	const size = 20 << 20
	f := coldFile(t, size)
	f.Advise(0, size, Random)
	const last = size - mostNeeded
	if f.Holds(last) {
		t.Fatal("the last piece is in memory before it is requested")
	}
	f.Advise(0, size, WillNeed)
	for end := time.Now().Add(20 * time.Second); !f.Holds(last); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the last piece was not read")
		}
		f.Advise(0, size, WillNeed) // a page may be evicted before it is checked
	}
}
