package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestLostLead checks that only the loss of the lead counts as such, not other errors.
func TestLostLead(t *testing.T) {
	lost, disk := error(apierr.New("no_writer", "lost")), errors.New("disk full")
	for _, x := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{disk, false},
		{apierr.New("internal", "x"), false},
		{lost, true},
		{fmt.Errorf("cannot close: %w", lost), true},
		{errors.Join(lost, fmt.Errorf("cannot close: %w", errors.Join(nil, lost))), true},
		{errors.Join(lost, disk), false},
		{fmt.Errorf("cannot close: %w", errors.Join(disk, lost)), false},
	} {
		if got := lostLead(x.err); got != x.want {
			t.Errorf("%v: %v", x.err, got)
		}
	}
}

// TestAVoterRefusesAnInterruptedImport starts a voter on a directory that an import has filled in part.
func TestAVoterRefusesAnInterruptedImport(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, importingFile), []byte("a.dump"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &options{DBPath: dir}
	if err := o.initVoter(nil); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, versionFile)); err == nil {
		t.Error("the directory counts as complete")
	}
}
