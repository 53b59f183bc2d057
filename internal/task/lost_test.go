package task

import (
	"errors"
	"testing"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// TestLostTasksAreDamage reads a task that can no longer be reached in its file.
func TestLostTasksAreDamage(t *testing.T) {
	db, err := boltfile.Open(t.TempDir()+"/tasks", fileOptions(nil, true))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, read := range map[string]func(*boltfile.Tx) (*Task, error){
		"whole": func(tx *boltfile.Tx) (*Task, error) { return readTask(tx, 7, nil, nil) },
		"shown": func(tx *boltfile.Tx) (*Task, error) { return shownTask(tx, 7, nil, nil, nil) },
	} {
		err := db.View(func(tx *boltfile.Tx) error { _, err := read(tx); return err })
		var damage *apierr.Corruption
		if !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
