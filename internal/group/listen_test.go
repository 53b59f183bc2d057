package group

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// lineCount counts lines: a log handler calls Write once per line.
type lineCount struct{ atomic.Int64 }

func (c *lineCount) Write(b []byte) (int, error) {
	c.Add(1)
	return len(b), nil
}

// TestEarlyConnectionsAreNoWarning checks that connections of members before this one takes part are logged once, and other refused
// connections each time.
func TestEarlyConnectionsAreNoWarning(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	var written lineCount
	log := slog.New(slog.NewTextHandler(io.MultiWriter(&lines, &written), &slog.HandlerOptions{Level: slog.LevelDebug}))
	own, err := newCredentials(Certificates{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	key, err := newSecret("a-master-key-of-16+bytes")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	me := &hello{Protocol: protocol}
	d := newDoor(l, own, key, func(h *hello) *reply {
		r := me.refuse(refusedRole, "it is not there")
		r.early = h.Purpose == forVotes
		return r
	}, func() {}, log)
	d.open()
	addr := l.Addr().String()
	c := newClient([]string{addr}, own, key, func() *hello { return &hello{Protocol: protocol} }, func(*hello) {})
	for i, to := range []purpose{forVotes, forVotes, forGroup, forVotes, forGroup} {
		_, err := c.dial(context.Background(), addr, to)
		if refused := new(RefusedError); !errors.As(err, &refused) || refused.Code != refusedRole {
			t.Errorf("%s: %v", to, err)
		}
		within(t, "the refusal is logged", func() bool { return written.Load() > int64(i) }) // the reply is sent first
	}
	if err := d.Close(); err != nil { // it waits for the lines
		t.Error(err)
	}
	var levels []string
	for line := range strings.Lines(lines.String()) {
		_, level, _ := strings.Cut(line, "level=")
		level, _, _ = strings.Cut(level, " ")
		levels = append(levels, level)
	}
	if got := strings.Join(levels, " "); got != "INFO DEBUG WARN DEBUG WARN" {
		t.Errorf("levels %s:\n%s", got, &lines)
	}
}
