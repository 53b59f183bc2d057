package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/vfs"
)

// refuse is a request that was refused.
func refuse(t *testing.T, l *Log, key, address string) {
	t.Helper()
	if err := l.Refuse(Entry{Time: time.Now(), Key: key, Action: "keys.create", Method: "POST", Route: "/keys", Address: address, Status: 403, Outcome: "invalid_api_key"}); err != nil {
		t.Fatal(err)
	}
}

// lines returns the entries of the log as "key address outcome count", without those that earlier calls returned.
func lines(t *testing.T, fsys vfs.FS, seen *int) (all []string) {
	t.Helper()
	b, err := vfs.ReadFile(fsys, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b[*seen:]) {
		var e Entry
		if json.Unmarshal(line, &e) != nil {
			continue // a write failed
		}
		all = append(all, fmt.Sprintf("%s %s %s %d", e.Key, e.Address, e.Outcome, e.Count))
	}
	*seen = len(b)
	return all
}

func TestRefusedRequestsAreSummarized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		l := open(t, mem)
		seen := 0
		expect := func(want ...string) {
			t.Helper()
			if got := lines(t, mem, &seen); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
		for i := range 1000 {
			refuse(t, l, "", fmt.Sprintf("10.0.0.7:%d", i+1))
			refuse(t, l, "", fmt.Sprintf("[2001:db8::%x]:%d", i+1, i+1))
		}
		refuse(t, l, "k", "10.0.0.7:1")
		refuse(t, l, "", "/run/socket")
		appendTo(t, l, 1) // others are written as always
		got, want := lines(t, mem, &seen), []string{" 10.0.0.7:1 invalid_api_key 0", " [2001:db8::1]:1 invalid_api_key 0", " 10.0.0.7:2 invalid_api_key 0"}
		if !slices.Equal(got[:3], want) {
			t.Errorf("got  %q\nwant %q", got[:3], want)
		}
		want = []string{" [2001:db8::8]:8 invalid_api_key 0", "k 10.0.0.7:1 invalid_api_key 0", " /run/socket invalid_api_key 0", "master 127.0.0.1:9 done 0"}
		if end := got[2*maxOfSender-1:]; !slices.Equal(end, want) {
			t.Errorf("got  %q\nwant %q", end, want)
		}
		time.Sleep(refusedTime)
		synctest.Wait()
		expect(fmt.Sprint(" 10.0.0.7 refused ", 1000-maxOfSender), fmt.Sprint(" 2001:db8::/64 refused ", 1000-maxOfSender))
		time.Sleep(10 * refusedTime)
		synctest.Wait()
		expect()

		for i := range 10 * maxSenders {
			refuse(t, l, "", fmt.Sprintf("10.0.%d.1:5", i))
		}
		if got := lines(t, mem, &seen); len(got) != maxRefused {
			t.Errorf("%d entries, want %d", len(got), maxRefused)
		}
		refuse(t, l, "", "10.0.0.1:6")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		expect(" 10.0.0.1 refused 1", fmt.Sprintf("  refused %d", 9*maxSenders))
		if err := l.Refuse(Entry{}); err == nil {
			t.Error("a closed log counts requests")
		}
	})
}

// TestSummariesAreWrittenLater fails the first summary.
func TestSummariesAreWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, full := vfs.NewMem(), false
		l := open(t, vfs.Hook(mem, func(op vfs.Op) error {
			if full && op.Kind.Changes() {
				return errors.New("the disk is full")
			}
			return nil
		}))
		for range maxOfSender + 4 {
			refuse(t, l, "", "10.0.0.7:1")
		}
		full = true
		if err := l.Refuse(Entry{Address: "10.0.0.8:1"}); err == nil {
			t.Error("the entry of another address was written")
		}
		time.Sleep(refusedTime)
		synctest.Wait()
		full = false
		refuse(t, l, "", "10.0.0.8:1") // its first one was not written
		time.Sleep(refusedTime)
		synctest.Wait()
		seen := 0
		if got, want := lines(t, mem, &seen)[maxOfSender-1:], []string{" 10.0.0.7:1 invalid_api_key 0", " 10.0.0.8:1 invalid_api_key 0", " 10.0.0.7 refused 4"}; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
