package apierr

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
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

func TestMessagesAreValidUTF8(t *testing.T) {
	if b := New("bad_request", "`%s` is not known.", "li\xffmit").AppendJSON(nil); !utf8.Valid(b) {
		t.Errorf("got %q", b)
	}
}

func TestFromNamesTheMissingResource(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		want  Code
	}{
		{syscall.ENOSPC, "no_space_left_on_device"},
		{syscall.EDQUOT, "no_space_left_on_device"},
		{syscall.EMFILE, "too_many_open_files"},
		{syscall.ENOMEM, "too_many_open_files"},
		{syscall.EIO, "io_error"},
		{syscall.EROFS, "io_error"},
		{syscall.EINVAL, Internal},
	} {
		err := fmt.Errorf("cannot write segment a.seg: %w", &fs.PathError{Op: "write", Path: "/var/lib/svc/a.seg", Err: c.errno})
		got := From(err)
		if got.Code != c.want || !strings.Contains(got.LogValue().String(), "cannot write segment a.seg: write /var/lib/svc/a.seg") {
			t.Errorf("%v: got %+v, want %s with the file in the log", c.errno, got, c.want)
		}
		if got.HasCause() != (c.want != Internal) || got.HasCause() && strings.Contains(got.Message, "/var") {
			t.Errorf("%v: the message %q names files of the server", c.errno, got.Message)
		}
		if got := From(fmt.Errorf("%w: %w", err, New("index_not_found", "x"))); got.Code != "index_not_found" {
			t.Errorf("%v: %s hides the user error", c.errno, got.Code)
		}
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
