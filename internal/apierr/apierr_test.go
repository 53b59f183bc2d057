package apierr

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryCodeHasTypeAndStatus(t *testing.T) {
	kinds := map[string]bool{"invalid_request": true, "auth": true, "internal": true, "system": true}
	for code, e := range table {
		if !kinds[e.kind] {
			t.Errorf("%s has type %q", code, e.kind)
		}
		if e.status < 400 || e.status > 599 {
			t.Errorf("%s has status %d", code, e.status)
		}
	}
}

func TestUnknownCodeIsInternal(t *testing.T) {
	if got := Code("no such code").Status(); got != 500 {
		t.Errorf("status %d, want 500", got)
	}
}

func TestFromKeepsTheUserErrorInAChain(t *testing.T) {
	inner := New("index_not_found", "Index `%s` not found.", "x")
	if got := From(fmt.Errorf("cannot search: %w", inner)); got != inner {
		t.Errorf("got %v", got)
	}
	if got := From(errors.New("disk on fire")); got.Code != Internal || got.Message != "disk on fire" {
		t.Errorf("got %+v", got)
	}
}

func TestCorruptionIsFoundThroughWrapping(t *testing.T) {
	c := &Corruption{File: "a.seg", Section: "terms", Offset: 12, Reason: "checksum 1, want 2"}
	if !IsCorruption(fmt.Errorf("cannot open: %w", c)) || IsCorruption(errors.New("x")) {
		t.Error("IsCorruption is wrong")
	}
	if want := "a.seg: section terms: offset 12: damaged: checksum 1, want 2"; c.Error() != want {
		t.Errorf("got %q, want %q", c.Error(), want)
	}
}
