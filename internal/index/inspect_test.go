package index

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"svc/internal/vfs"
	"svc/segment"
)

// Damage where opening does not look is told soon after the start, with the file; segments that are sound are passed over.
func TestInspection(t *testing.T) {
	mem := vfs.NewMem()
	b := newBed(t, mem, Options{})
	for _, uid := range []string{"a", "b"} {
		b.apply(b.create(uid), b.payload(`{"id":1,"t":"some words"}`, `{"id":2,"t":"other words"}`))
	}
	name := b.c.Get("b").current.Load().files[0].path()
	b.close()

	var log bytes.Buffer
	inspected := func() string {
		log.Reset()
		b.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b.open()
		defer b.close()
		b.c.inspect(t.Context(), 0)
		return log.String()
	}
	if told := inspected(); told != "" {
		t.Errorf("of sound segments: %s", told)
	}
	sound, err := vfs.ReadFile(mem, name)
	if err != nil {
		t.Fatal(err)
	}
	quiet := 0
	for at := 64; at < len(sound); at += 97 {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1
		if err := vfs.WriteFile(mem, name, damaged); err != nil {
			t.Fatal(err)
		}
		r, err := segment.Open(mem, name)
		if err != nil {
			continue // found without
		}
		want := r.Inspect(func(int) error { return nil }) != nil // else it is behind the checksums
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if want {
			quiet++
		}
		if told := inspected(); strings.Contains(told, name) != want || strings.Contains(told, "index=a") {
			t.Errorf("byte %d: %q", at, told)
		}
	}
	if quiet == 0 {
		t.Error("opening found everything")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.open()
	defer b.close()
	b.c.inspect(ended, 1) // at a byte a second it would take hours
}

// An inspection reads a share of the memory in a second, and neither too much nor nothing.
func TestInspectRate(t *testing.T) {
	for memory, want := range map[int64]int64{1 << 20: 1 << 20, 341 << 20: 341 << 20 / 40, 16 << 30: 64 << 20} {
		if got := (&Options{MaxIndexingMemory: memory}).inspectRate(); got != want {
			t.Errorf("%d bytes of memory: %d bytes a second, want %d", memory, got, want)
		}
	}
}
