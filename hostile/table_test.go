package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRewrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "S.md")
	const before, after = "# Security\n\n" + beginMark + "\n", endMark + "\n\nMore.\n"
	if err := os.WriteFile(name, []byte(before+"\nold\n\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []row{
		{"idle connections", &result{quiet: 6200 * time.Microsecond, worst: 40 * time.Millisecond, slow: 1250 * time.Millisecond, peak: 300 << 20, left: -1 << 20, stop: 150 * time.Millisecond}},
		{"long tags", &result{quiet: 6 * time.Millisecond, worst: 400 * time.Millisecond, slow: 2500 * time.Millisecond, peak: 1 << 30, left: 12 << 20, stop: time.Second}},
		{"half-sent", &result{quiet: 6 * time.Millisecond, worst: 6 * time.Millisecond, peak: 1 << 30, left: 101 << 20, stop: time.Second}},
	}
	want := before + `
One run of a1 on 2 processors, 2026-01-02. Attacks beyond a limit are refused by it; those “within limits” stay just below.

| attack | quiet p99 | worst p99 | above five times quiet for | most memory | left | stop | |
| --- | --- | --- | --- | --- | --- | --- | --- |
| idle connections | 6.2 ms | 40 ms | 1.25 s | 300 MiB | 0 MiB | 0.1 s | held |
| long tags | 6.0 ms | 400 ms | 2.5 s | 1024 MiB | 12 MiB | 1.0 s | slow |
| half-sent | 6.0 ms | 6 ms | 0 s | 1024 MiB | 101 MiB | 1.0 s | keeps memory |

1 of 3 held.

` + after
	for range 2 {
		if err := rewrite(name, table(rows, "a1 on 2 processors", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
	if err := os.WriteFile(name, []byte(endMark+beginMark), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewrite(name, nil); err == nil {
		t.Error("a section without an end is rewritten")
	}
}

// TestThePlaceIsThere checks that the document which make hostile rewrites has the section.
func TestThePlaceIsThere(t *testing.T) {
	document, err := os.ReadFile("../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "S.md")
	if err := os.WriteFile(name, document, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewrite(name, nil); err != nil {
		t.Error(err)
	}
}
