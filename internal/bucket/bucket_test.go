package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/bucket/s3test"
	"svc/internal/vfs"
)

// stores returns a store of each kind.
func stores(t *testing.T) map[string]Store {
	t.Helper()
	s := s3test.New()
	t.Cleanup(s.Close)
	all := map[string]Store{}
	for name, o := range map[string]Options{
		"directory":    {URL: "file://" + filepath.ToSlash(t.TempDir())},
		"s3":           s3Options(s, "s3://backups/a/b"),
		"s3, no path":  s3Options(s, "s3://plain"),
		"s3, a slash":  s3Options(s, "s3://slash/"),
		"neighbour of": s3Options(s, "s3://backups/a"), // the store above must not see its objects
	} {
		store, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = store
	}
	if real := s3test.Real("/bucket"); real != nil {
		store, err := Open(Options{URL: real.URL, Endpoint: real.Endpoint, Region: real.Region, AccessKey: real.AccessKey, SecretKey: real.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		all["a real one"] = store
	}
	return all
}

func s3Options(s *s3test.Server, url string) Options {
	return Options{URL: url, Endpoint: s.URL, Region: "here-1", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
}

func names(t *testing.T, s Store, prefix string) []string {
	t.Helper()
	var all []string
	if err := s.List(t.Context(), prefix, "", func(o Object) error { all = append(all, fmt.Sprint(o.Name, " ", o.Size)); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func TestStores(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), partBytes/16+1000)
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if name == "neighbour of" {
				return
			}
			must := func(err error) {
				if err != nil {
					t.Helper()
					t.Fatal(err)
				}
			}
			must(Probe(ctx, s))
			must(s.Create(ctx, "once", []byte("first")))
			if err := s.Create(ctx, "once", []byte("second")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("an object was created twice: %v", err)
			}
			must(s.Put(ctx, "files/large", int64(len(large)), bytes.NewReader(large)))
			must(s.Put(ctx, "files/empty", 0, strings.NewReader("")))
			must(s.Put(ctx, "files/large", int64(len(large)), bytes.NewReader(large)))
			for i := range 20 {
				must(s.Put(ctx, fmt.Sprintf("many/%02d", i), 1, strings.NewReader("x")))
			}
			if err := s.Put(ctx, "short", 10, strings.NewReader("x")); err == nil {
				t.Error("Put accepts content that is shorter than its size")
			}
			for object, want := range map[string]string{"once": "first", "files/large": string(large), "files/empty": ""} {
				in, err := s.Open(ctx, object, 0)
				must(err)
				b, err := io.ReadAll(in)
				must(errors.Join(err, in.Close()))
				if string(b) != want {
					t.Errorf("%s has %d bytes, want %d", object, len(b), len(want))
				}
			}
			if _, err := s.Open(ctx, "nothing", 0); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a missing object is read: %v", err)
			}
			in, err := s.Open(ctx, "files/large", int64(len(large))-5)
			must(err)
			b, err := io.ReadAll(in)
			must(errors.Join(err, in.Close()))
			if string(b) != string(large[len(large)-5:]) {
				t.Errorf("the end of an object is %q", b)
			}
			for after, want := range map[string]int{"many/10": 9, "many/": 20, "many/10/x": 9, "many-": 20, "many0": 0, "files/zz": 20, "once": 0} {
				n := 0
				must(s.List(ctx, "many/", after, func(Object) error { n++; return nil }))
				if n != want {
					t.Errorf("%d objects after %s, want %d", n, after, want)
				}
			}
			if got, want := names(t, s, "files/"), []string{"files/empty 0", fmt.Sprint("files/large ", len(large))}; !slices.Equal(got, want) {
				t.Errorf("the list has %q, want %q", got, want)
			}
			if got := names(t, s, "many/"); len(got) != 20 {
				t.Errorf("the list has %q", got)
			}
			if got := names(t, s, ""); len(got) != 23 {
				t.Errorf("the whole list has %q", got)
			}
			stop := errors.New("stop")
			if err := s.List(ctx, "", "", func(Object) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("List continues after an error: %v", err)
			}
			must(s.Remove(ctx, "once"))
			must(s.Remove(ctx, "once"))
			if _, err := s.Open(ctx, "once", 0); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed object is read: %v", err)
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if err := s.Put(canceled, "late", 1, strings.NewReader("x")); err == nil {
				t.Error("Put succeeds after its context ended")
			}
		})
	}
}

func TestProbeRefuses(t *testing.T) {
	s := s3test.New()
	defer s.Close()
	store, err := Open(s3Options(s, "s3://backups"))
	if err != nil {
		t.Fatal(err)
	}
	s.Replaces = true
	if err := Probe(t.Context(), store); err == nil || !strings.Contains(err.Error(), "If-None-Match") {
		t.Errorf("a store that replaces objects passes: %v", err)
	}
	s.Replaces = false
	s.Fault = func(r *http.Request) s3test.Fault {
		if r.Method == http.MethodGet {
			return s3test.Refused
		}
		return s3test.None
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Probe(ctx, store); err == nil {
		t.Error("a store that cannot be read passes")
	}
	if left := s.Objects(); len(left) > 0 {
		t.Errorf("objects stay: %d", len(left))
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, o := range []Options{
		{},
		{URL: "backups"},
		{URL: "http://here/backups"},
		{URL: "file://host/backups"},
		{URL: "s3://backups"},
		{URL: "s3://backups", Endpoint: "https://here", AccessKey: "a"},
		{URL: "s3://backups", AccessKey: "a", SecretKey: "b"},
		{URL: "s3://backups", Endpoint: "here", AccessKey: "a", SecretKey: "b"},
		{URL: "s3://backups", Endpoint: "https://here/path", AccessKey: "a", SecretKey: "b"},
		{URL: "s3://a:b@backups", Endpoint: "https://here", AccessKey: "a", SecretKey: "b"},
		{URL: "s3://backups?x=1", Endpoint: "https://here", AccessKey: "a", SecretKey: "b"},
	} {
		if s, err := Open(o); err == nil {
			t.Errorf("%+v: opened as %v", o, s)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%+v: the error has a secret: %v", o, err)
		}
	}
}

// TestDirectoryOutlivesCrashes checks that an object is complete or missing, whatever operation fails.
func TestDirectoryOutlivesCrashes(t *testing.T) {
	for n := int64(0); ; n++ {
		broken, count := errors.New("broken"), int64(0)
		dir := filepath.ToSlash(t.TempDir())
		fsys := vfs.Hook(vfs.OS, func(op vfs.Op) error {
			if count++; count == n+1 {
				return broken
			}
			return nil
		})
		s := &directory{fs: fsys, root: dir}
		err := errors.Join(s.Put(t.Context(), "a/b", 5, strings.NewReader("whole")), s.Create(t.Context(), "a/c", []byte("whole")))
		left := &directory{fs: vfs.OS, root: dir}
		for _, o := range names(t, left, "") {
			if o != "a/b 5" && o != "a/c 5" {
				t.Errorf("operation %d failed: the object is %q", n, o)
			}
		}
		if count <= n {
			if err != nil || n < 8 {
				t.Errorf("%d operations without a failure: %v", n, err)
			}
			return
		}
	}
}

// TestObjectsOutliveFailedSyncs stores objects with several goroutines, which repeat what fails. Some syncs fail, and lose what they should
// have made durable. After a power failure all objects are there.
func TestObjectsOutliveFailedSyncs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	failed := 0
	for round := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, round))
		var mu sync.Mutex
		mem := vfs.NewMem()
		s := &directory{root: "/bucket", fs: vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
			runtime.Gosched() // to others, which name objects meanwhile
			mu.Lock()
			defer mu.Unlock()
			if (o.Kind == vfs.OpSync || o.Kind == vfs.OpSyncDir) && r.IntN(4) == 0 {
				failed++
				return errors.New("the disk is failing")
			}
			return nil
		}))}
		want := map[string]bool{}
		var all sync.WaitGroup
		for i := range 8 {
			name := fmt.Sprintf("a/%d", i)
			want[name+" 5"] = true
			all.Go(func() {
				for {
					var err error
					if i%2 == 0 {
						err = s.Put(t.Context(), name, 5, strings.NewReader("whole"))
					} else {
						err = s.Create(t.Context(), name, []byte("whole"))
					}
					if err == nil || errors.Is(err, fs.ErrExist) {
						return
					}
				}
			})
		}
		all.Wait()
		left := &directory{root: "/bucket", fs: mem.CrashClone(nil)}
		for _, o := range names(t, left, "") {
			delete(want, o)
		}
		if len(want) > 0 {
			t.Fatalf("round %d: after a crash %v are missing", round, want)
		}
	}
	if failed == 0 {
		t.Error("no sync failed")
	}
}
