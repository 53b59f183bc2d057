//go:build windowsrules && linux

package vfs

import (
	"path"
	"testing"
)

func TestNamesOfWindows(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nul", "com1.db", "a ", "a.", "a?b", "a\tb", "a*"} {
		if _, err := OS.Create(path.Join(dir, name)); err == nil {
			t.Errorf("%q was made", name)
		}
	}
	if err := WriteFile(OS, path.Join(dir, "name"), nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(OS, path.Join(dir, "Name"), nil); err == nil {
		t.Error("a name that differs by case alone was made")
	}
}
