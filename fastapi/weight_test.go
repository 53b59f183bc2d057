package fastapi

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"svc/internal/budget"
)

// TestAnswersReserveMemoryFirst requests large answers while there is no memory for them: they must be refused before they are built. With
// memory, the same requests must be answered, and nothing may stay charged.
func TestAnswersReserveMemoryFirst(t *testing.T) {
	const memory, large = 512 << 20, 4 << 20
	c, _ := newInstance(t, Options{Memory: memory, PayloadLimit: 64 << 20, JSONLimit: 8 << 20})
	text := strings.Repeat("words ", large/6)
	var fields, synonyms strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&fields, `,"%0100x":1`, i)
	}
	for i := range 40000 {
		fmt.Fprintf(&synonyms, `,"%0100x":["a"]`, i)
	}
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id":1,"text":"`+text+`"}]`))
	c.wait(c.json("POST", "/indexes/wide/documents", `[{"id":1`+fields.String()+`}]`))
	c.wait(c.json("PATCH", "/indexes/words/settings", `{"synonyms":{`+synonyms.String()[1:]+`}}`))
	other := c.server.budget.Open(1)
	if err := other.Hold(memory - budget.SmallBytes - 1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/indexes/films/documents/1", "/indexes/films/documents", "/indexes/words/settings", "/indexes/words/settings/synonyms",
		"/tasks/2", "/tasks?limit=1", "/batches/2", "/batches?limit=1", "/indexes/wide/stats", "/stats"} {
		ask := func() (reply, int) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := c.send("GET", path, nil)
			runtime.ReadMemStats(&after)
			return r, int(after.TotalAlloc - before.TotalAlloc)
		}
		r, took := ask()
		for range 4 { // other goroutines allocate, too
			if took > large/4 {
				_, again := ask()
				took = min(took, again)
			}
		}
		if r.status != 503 || took > large/4 {
			t.Errorf("%s without room: %d %.100s, %d bytes allocated", path, r.status, r.body, took)
		}
		other.Close()
		if r, _ := ask(); r.status != 200 || len(r.body) < large/2 {
			t.Errorf("%s with room: %d %.100s (%d bytes)", path, r.status, r.body, len(r.body))
		}
		for end := time.Now().Add(2 * time.Minute); c.server.budget.Used() > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		if used := c.server.budget.Used(); used != 0 {
			t.Errorf("%s: %d bytes are still held", path, used)
		}
		other = c.server.budget.Open(1)
		if err := other.Hold(memory - budget.SmallBytes - 1); err != nil {
			t.Fatal(err)
		}
	}
}
