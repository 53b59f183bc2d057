package group

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"testing"
	"time"

	"svc/internal/commit"
)

// TestFilesOfAVoterFeed checks that a feed opens files that entries name as long as the spool, the log or the directory has them. After
// that they are reported as missing.
func TestFilesOfAVoterFeed(t *testing.T) {
	t.Parallel()
	e := leaderOf(t, newElectors(t, 1))
	contents := map[string][]byte{"tasks/payloads/small": []byte("small"), "tasks/payloads/large": bytes.Repeat([]byte("large"), maxInlineFile)}
	dir := path.Join(e.o.Dir, "tasks/payloads")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := e.v.Feed()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	after := e.v.Position()
	for name, content := range contents {
		if err := os.WriteFile(path.Join(e.o.Dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		c := commit.Change{Kind: commit.Sealed, Name: "a.json", Data: []byte("1"), Files: []string{name}}
		if err := e.v.Do(c, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	at := e.v.Position()
	large := fileOf("", contents["tasks/payloads/large"])
	key := fileKey(large.Size, large.Sum)
	if index := e.v.spool.files[key].index; index <= after.Index || index > at.Index {
		t.Errorf("a file of one of the entries behind %v up to %v is there for entry %d", after, at, index)
	}
	if _, err := f.Next(t.Context(), after, 0); err != nil {
		t.Fatal(err)
	}
	has := func(what string, want bool) {
		t.Helper()
		for name, content := range contents {
			in, err := f.Open(name)
			if !want && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s is opened with %v", what, name, err)
			}
			if !want || err != nil {
				if want {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			got, err := io.ReadAll(in)
			if err = errors.Join(err, in.Close()); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %s has %d bytes: %v", what, name, len(got), err)
			}
		}
	}
	each := func(do func(name string) error) {
		t.Helper()
		for name := range contents {
			if err := do(path.Join(e.o.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rename := func(from, to string) func(string) error {
		return func(name string) error { return os.Rename(name+from, name+to) }
	}
	has("as they are", true)
	each(rename("", ".away"))
	has("in the spool and in the log", true)
	if err := os.Remove(path.Join(e.o.Dir, spoolDir, key)); err != nil {
		t.Fatal(err)
	}
	for name, x := range f.named {
		x.index = 1 // entry 1 is never stored, like entries that were cut
		f.named[name] = x
	}
	has("nowhere", false)
	each(rename(".away", ""))
	has("in the directory", true)
	each(func(name string) error { return os.WriteFile(name, []byte("other"), 0o600) })
	has("as other files", false)
	f.Need(at)
	has("behind the position", false)
}

// TestVoterFeedReportsRemovals checks that a reader learns of each removed payload with the next entry that it reads.
func TestVoterFeedReportsRemovals(t *testing.T) {
	t.Parallel()
	e := leaderOf(t, newElectors(t, 1))
	f, err := e.v.Feed()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	remove := func(name string) {
		t.Helper()
		name = path.Join(e.o.Dir, name)
		if err := errors.Join(os.MkdirAll(path.Dir(name), 0o700), os.WriteFile(name, nil, 0o600), toldFS{e.o.FS, e.v}.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
	next := func(after Position, want ...string) Position {
		t.Helper()
		b, err := f.Next(t.Context(), after, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, raw := range b.Entries {
			x, err := ReadEntry(raw)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, x.Removed...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after %v the feed reports removals of %q, want %q", after, got, want)
		}
		after.Index += uint64(len(b.Entries))
		return after
	}
	start := e.v.Position()
	remove("tasks/payloads/a")
	if err := e.write("a.json", []byte("1")); err != nil {
		t.Fatal(err)
	}
	next(start, "tasks/payloads/a")
	at := next(start, "tasks/payloads/a") // the reader asks again from the same position
	remove("tasks/payloads/b")
	if err := e.write("a.json", []byte("2")); err != nil {
		t.Fatal(err)
	}
	next(next(at, "tasks/payloads/b"))
}

// TestImagesOfAVoterFeedExpire checks that files of an image are removed when no file was read for a while.
func TestImagesOfAVoterFeedExpire(t *testing.T) {
	t.Parallel()
	e := leaderOf(t, newElectors(t, 1))
	f, err := e.v.Feed()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st *Image
	within(t, "the stores are open", func() bool {
		st, err = f.Image(t.Context(), nil)
		return err == nil
	})
	for _, x := range []struct {
		after time.Duration
		want  bool
	}{{feedHoldTime - time.Minute, true}, {feedHoldTime + time.Minute, false}} {
		f.Need(st.Run) // Need reads no file
		e.v.held(time.Now().Add(x.after))
		in, err := f.Open(st.Files[0].At)
		if (err == nil) != x.want || !x.want && !errors.Is(err, fs.ErrNotExist) {
			t.Error(fmt.Errorf("after %v: %w", x.after, err))
		}
		if err == nil {
			_ = in.Close()
		}
	}
}
