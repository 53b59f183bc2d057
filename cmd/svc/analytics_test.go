package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnalyticsSurviveAKill kills a server right after searches, restarts it, and runs `svc analytics`.
func TestAnalyticsSurviveAKill(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv(asProgram, "1")
	s := startServer(t, os.Args[0], data, "--analytics-retention", "2d")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out := runProgram(nil, append(args, "--url", s.url)...)
		if code != want {
			t.Fatalf("%q: exit code %d: %s", args, code, out)
		}
		return out
	}
	run(0, "index", "create", "films")
	if left := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); left < 30*time.Second {
		time.Sleep(left) // so that one hour counts all searches
	}
	for range 3 {
		run(0, "search", "films", "Dune")
	}
	journal := filepath.Join(data, "analytics", "journal")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(journal)
		if err == nil && strings.Contains(string(b), "dune\x03") { // three searches
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no journal is written: %s", s.log)
		}
	}
	s.kill()
	s = startServer(t, os.Args[0], data, "--analytics-retention", "48h")
	if out := run(0, "analytics"); !strings.Contains(out, "QUERY") || !strings.Contains(out, `"dune"`) || !strings.Contains(out, "films") {
		t.Errorf("%s", out)
	}
	if out := run(0, "analytics", "no-results", "--index", "films", "--from", "2020-01-01", "--json"); !strings.Contains(out, `"count": 3`) || !strings.Contains(out, `"noResults": 3`) {
		t.Errorf("%s", out)
	}
	if out := run(0, "analytics", "filters"); strings.Contains(out, "POSITION") {
		t.Errorf("%s", out)
	}
	for what, args := range map[string][]string{
		"--delete needs": {"--delete"}, "is not a date": {"--from", "yesterday"}, "--limit": {"--limit", "1001"}, "--index": {"--index", "a b"},
	} {
		if out := run(exitFailure, append([]string{"analytics"}, args...)...); !strings.Contains(out, what) {
			t.Errorf("%q: %s", args, out)
		}
	}
	run(0, "analytics", "--delete", "--from", "1970-01-01")
	s.kill()
	s = startServer(t, os.Args[0], data, "--analytics-retention", "2d")
	if out := run(0, "analytics"); strings.Contains(out, "dune") {
		t.Errorf("after a deletion and a kill: %s", out)
	}
	s.stop(t)
	s = startServer(t, os.Args[0], data)
	if out := run(exitFailure, "analytics"); !strings.Contains(out, "--analytics-retention 30d") {
		t.Errorf("%s", out)
	}
	s.stop(t)
}

func TestRetentionOfAnalytics(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0d": 0, "0": 0, "12h": 12 * time.Hour, " 1h30m ": 90 * time.Minute} {
		var d days
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v %v", text, time.Duration(d), err)
		}
	}
	for _, text := range []string{"", "d", "30", "1.5d", "-1d", "99999d", "x"} {
		if err := new(days).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as a duration", text)
		}
	}
	for _, text := range []string{"1m", "-1h"} {
		if code, out := runProgram(nil, "--analytics-retention="+text); code != exitUsage || !strings.Contains(out, "--analytics-retention") {
			t.Errorf("%q: %d %s", text, code, out)
		}
	}
}
