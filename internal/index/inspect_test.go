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

// TestInspection damages bytes that opening does not read: the damage is reported with its file soon after the start. Sound segments
// are not reported.
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
		t.Errorf("sound segments are reported: %s", told)
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
			continue // found without the inspection
		}
		want := r.Inspect(func(int) error { return nil }) != nil // otherwise no checksum covers the byte
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
	b.c.inspect(ended, 1) // at one byte per second it would take hours
}

// TestInspectRate checks the bytes that an inspection reads per second: a share of the memory, within bounds.
func TestInspectRate(t *testing.T) {
	for memory, want := range map[int64]int64{1 << 20: 1 << 20, 341 << 20: 341 << 20 / 40, 16 << 30: 64 << 20} {
		if got := (&Options{MaxIndexingMemory: memory}).inspectRate(); got != want {
			t.Errorf("%d bytes of memory: %d bytes a second, want %d", memory, got, want)
		}
	}
}
