package segment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"svc/internal/vfs"
)

// residentOf returns the resident bytes of a mapped file according to /proc/self/smaps.
func residentOf(t *testing.T, name string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	total, in := 0, false
	for line := range bytes.Lines(maps) {
		switch rest, ok := bytes.CutPrefix(line, []byte("Rss:")); {
		case bytes.HasSuffix(bytes.TrimSpace(line), []byte(name)):
			in = true
		case in && ok:
			n, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
			if err != nil {
				t.Fatal(err)
			}
			total, in = total+n<<10, false
		}
	}
	return total
}

// TestMergeReleasesPages merges segments of three times the size that may stay resident.
func TestMergeReleasesPages(t *testing.T) {
	dir, rng := t.TempDir(), testRand(t)
	var in []Live
	var names []string
	size := int64(0)
	for n := range 2 {
		name := filepath.Join(dir, fmt.Sprint(n, ".seg"))
		b := NewBuilder(BuilderOptions{})
		random := make([]byte, 1<<20)
		for i := range 24 {
			for j := range random {
				random[j] = byte(rng.Uint32())
			}
			id := 24*n + i
			b.StartDoc(DocID(id), fmt.Append(nil, id), fmt.Appendf(nil, `{"id":%d,"bytes":"%x"}`, id, random))
			b.EndDoc()
		}
		info, err := b.Write(t.Context(), vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Bytes
		r, err := Open(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		in, names = append(in, Live{Reader: r}), append(names, name)
	}
	if size < 3*int64(residentBytes) {
		t.Fatalf("only %d bytes to merge", size)
	}
	most, written := 0, 0
	measure := func(bytes int) error {
		if written += bytes; written >= 4<<20 {
			written = 0
			most = max(most, residentOf(t, names[0])+residentOf(t, names[1]))
		}
		return nil
	}
	if _, err := Merge(t.Context(), vfs.OS, filepath.Join(dir, "merged.seg"), in, MergeOptions{Throttle: measure}); err != nil {
		t.Fatal(err)
	}
	if most == 0 {
		t.Fatal("no resident bytes: the test measures nothing")
	}
	if most > 2*residentBytes {
		t.Errorf("%d MiB of %d MiB were in memory at once, want at most %d", most>>20, size>>20, 2*residentBytes>>20)
	}
}
