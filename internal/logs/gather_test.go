package logs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writes records the messages of each call of Write.
type writes []string

func (w *writes) Write(b []byte) (int, error) {
	var messages []string
	for line := range strings.Lines(string(b)) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), "m=")
		messages = append(messages, message)
	}
	*w = append(*w, strings.Join(messages, " "))
	return len(b), nil
}

func TestLinesOfSpansAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got writes
		l := New(&got, AtLeast(slog.LevelInfo), Human)
		log := l.Logger()
		span := func(m string, level slog.Level) {
			log.LogAttrs(context.Background(), level, "close", slog.Group("request", slog.String("method", "GET")), slog.String("m", m))
		}
		check := func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Fatalf("%s: written %q, want %q", step, got, want)
			}
			got = nil
		}
		span("a", slog.LevelInfo)
		span("b", slog.LevelInfo)
		check("without Gather", "a", "b")
		l.Gather()
		span("c", slog.LevelInfo)
		check("the first", "c")
		span("d", slog.LevelInfo)
		time.Sleep(gatherFor / 2)
		span("e", slog.LevelInfo)
		check("soon after the first")
		time.Sleep(gatherFor / 2)
		check("later", "d e")
		span("f", slog.LevelInfo)
		span("g", slog.LevelWarn)
		check("a warning", "f g")
		span("h", slog.LevelInfo)
		log.Info("x", "m", "i")
		check("a line of no span", "h i")
		time.Sleep(gatherFor)
		check("nothing waited")
		span("j", slog.LevelInfo)
		check("after a rest", "j")
		long := strings.Repeat("k", gatherBytes)
		span(long, slog.LevelInfo)
		check("a large one", long)
		span("l", slog.LevelInfo)
		check("one that waits")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		check("closed", "l")
		span("m", slog.LevelInfo)
		check("after Close", "m")
		time.Sleep(2 * gatherFor)
		check("long after Close")
	})
}
