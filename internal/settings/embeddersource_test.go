package settings

import (
	"slices"
	"testing"
)

// TestSourcesNameFields checks that a source names existing fields, each once, and that each field belongs to a source.
func TestSourcesNameFields(t *testing.T) {
	used := map[string]bool{}
	for i, s := range sources {
		if s.name == "" || slices.Index(Sources(), s.name) != i {
			t.Errorf("source %d is named %q", i, s.name)
		}
		fields := slices.Concat(s.needs, s.takes)
		for k, name := range fields {
			used[name] = true
			if slices.Contains(fields[:k], name) {
				t.Errorf("%s names %s twice", s.name, name)
			}
		}
	}
	for _, f := range embedderFields {
		if !used[f.name] {
			t.Errorf("no source has the field %s", f.name)
		}
		delete(used, f.name)
	}
	for name := range used {
		t.Errorf("a source names the unknown field %s", name)
	}
}
