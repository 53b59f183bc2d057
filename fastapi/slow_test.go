package fastapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is a buffer that requests write and a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// TestSlowSearchesAreLogged treats every search as slow: each must be logged with its request and result, without the filter of a tenant
// token or a key, and at most ten per second.
func TestSlowSearchesAreLogged(t *testing.T) {
	var log lockedBuffer
	o := Options{SlowSearch: time.Nanosecond}
	openInstance(t, &o)
	o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := newClient(t, o)
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes": ["year"], "searchCutoffMs": 3600000}`))
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "Metropolis", "year": 1927}, {"id": 2, "title": "Stalker", "year": 1979}]`))
	shown := c.json("POST", "/indexes/films/search", `{"q": "metropolis", "filter": "year < 1930"}`)
	if shown.status != 200 || strings.Contains(shown.body, "performanceDetails") {
		t.Errorf("%d %s", shown.status, shown.body)
	}
	c.get("/indexes/films/search?q=" + strings.Repeat("x", 2000) + "&filter=year%20%3E%201")
	c.json("POST", "/multi-search", `{"queries": [{"indexUid": "films", "q": "a"}, {"indexUid": "films", "q": "b"}]}`)
	c.json("POST", "/indexes/none/search", `{"q": "lost"}`)
	type line struct {
		Msg, Index, Q, Filter string
		Took, Waited          int64
		Stages                map[string]int64
		Hits                  *int
		Degraded              *bool
		LeftOut               int `json:"left_out"`
	}
	var lines []line
	for _, text := range log.lines() {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	first := lines[0]
	if first.Msg != "slow search" || first.Index != "films" || first.Q != "metropolis" || first.Filter != `"year < 1930"` || first.Took <= 0 ||
		first.Hits == nil || *first.Hits != 1 || first.Degraded == nil || *first.Degraded || len(first.Stages) < 3 || first.Stages["search"] <= 0 {
		t.Errorf("%+v", first)
	}
	if n := len(lines[1].Q); n < slowTextBytes || n > slowTextBytes+4 || lines[1].Filter != "year > 1" {
		t.Errorf("%d bytes of the query, filter %q", n, lines[1].Filter)
	}
	if lines[2].Index != "films | films" || lines[2].Q != "a | b" || lines[3].Q != "lost" || lines[3].Hits != nil {
		t.Errorf("%+v", lines[2:])
	}
}

func TestSlowSearchesDoNotFillTheLog(t *testing.T) {
	var l slowSearches
	at := time.Unix(1000, 0)
	written := 0
	for range 100 {
		if ok, left := l.may(at); ok {
			written++
			if left != 0 {
				t.Errorf("%d lines left out before the limit", left)
			}
		}
	}
	if ok, left := l.may(at.Add(time.Second)); written != slowPerSecond || !ok || left != 100-slowPerSecond {
		t.Errorf("%d written, then %v and %d left out", written, ok, left)
	}
}
