package aggregate

import (
	"testing"

	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

// written writes a segment in memory, and opens it for the duration of the test.
func written(t testing.TB, b *segment.Builder) *segment.Reader {
	t.Helper()
	fs := vfs.NewMem()
	if _, err := b.Write(t.Context(), fs, "s.seg"); err != nil {
		t.Fatal(err)
	}
	file, err := segment.Open(fs, "s.seg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// allFilterable returns settings that make all attributes filterable.
func allFilterable(t testing.TB) *settings.Settings {
	t.Helper()
	update, err := settings.ParseUpdate([]byte(`{"filterableAttributes":["*"]}`), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := settings.Default().Apply(update)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
