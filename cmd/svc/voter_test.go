package main

import (
	"errors"
	"fmt"
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
