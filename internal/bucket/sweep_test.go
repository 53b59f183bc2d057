package bucket

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"svc/internal/bucket/s3test"
	"svc/internal/vfs"
)

// TestSweepOfADirectory leaves all kinds of files, and sweeps the old ones of a prefix.
func TestSweepOfADirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{URL: "file://" + filepath.ToSlash(dir)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"files/aa/whole", "log/whole"} {
		if err := s.Put(t.Context(), name, 1, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	left := func(name string, age time.Duration) {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	temp := func(name string) string { return name + "." + rand.Text() + vfs.TempSuffix }
	fresh, other := temp("files/aa/fresh"), temp("log/other")
	left(temp("files/old"), 2*time.Hour)
	left(temp("files/aa/old"), 2*time.Hour)
	left(fresh, 0)
	left(other, 2*time.Hour)
	left("files/foreign.tmp", 2*time.Hour)
	if got := names(t, s, ""); len(got) != 2 {
		t.Errorf("unfinished objects are listed: %q", got)
	}
	if err := s.Sweep(t.Context(), "files/", now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{fresh, "files/aa/whole", "files/foreign.tmp", other, "log/whole"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

// TestSweepOfS3 begins uploads and sweeps the old ones of a prefix.
func TestSweepOfS3(t *testing.T) {
	server := s3test.New()
	defer server.Close()
	store, err := Open(s3Options(server, "s3://backups/a"))
	if err != nil {
		t.Fatal(err)
	}
	s := store.(*s3)
	begin := func(name string) {
		if _, err := s.client.NewMultipartUpload(t.Context(), "backups", name, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/files/1", "a/files/2", "a/files-2/1", "a/log/1", "files/1", "a/files/1"} {
		begin(name)
	}
	if err := s.Sweep(t.Context(), "files/", time.Now().Add(-time.Hour)); err != nil || len(server.Uploads()) != 6 {
		t.Errorf("young uploads are swept: %v, %q", err, server.Uploads())
	}
	if err := s.Sweep(t.Context(), "files/", time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if got, want := server.Uploads(), []string{"/backups/a/files-2/1", "/backups/a/log/1", "/backups/files/1"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
