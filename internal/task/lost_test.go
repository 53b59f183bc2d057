package task

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"svc/internal/apierr"
)

// TestLostTasksAreDamage reads a task that its file does not lead to any more.
func TestLostTasksAreDamage(t *testing.T) {
	db, err := bbolt.Open(t.TempDir()+"/tasks", 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(taskBucket); return err }); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*bbolt.Tx) (*Task, error){
		"whole": func(tx *bbolt.Tx) (*Task, error) { return readTask(tx, 7, nil, nil) },
		"shown": func(tx *bbolt.Tx) (*Task, error) { return shownTask(tx, 7, nil, nil, nil) },
	} {
		err := db.View(func(tx *bbolt.Tx) error { _, err := read(tx); return err })
		var damage *apierr.Corruption
		if !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
