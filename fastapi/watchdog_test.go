package fastapi

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
)

// TestWatchdog has a search hold the only slot forever while another one waits, and checks the health.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(Options{Searches: 1, SearchQueue: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		go s.watchdog.watch(s.searching)
		defer func() {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}()
		health := func() (int, string) {
			var ctx fasthttp.RequestCtx
			if err := s.health(&ctx); err != nil {
				t.Fatal(err)
			}
			return ctx.Response.StatusCode(), string(ctx.Response.Body())
		}
		look := func(when string, stalls int64, status int, body string) {
			t.Helper()
			synctest.Wait()
			code, got := health()
			if s.watchdog.stalls.Load() != stalls || code != status || got != body {
				t.Errorf("%s: %d stalls, %d %s", when, s.watchdog.stalls.Load(), code, got)
			}
		}
		const sound = `{"status":"available"}`
		if err := s.slots.acquire(false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		look("one search runs for long, and none waits", 0, 200, sound)

		waits := make(chan error)
		go func() { waits <- s.slots.acquire(false) }()
		time.Sleep(stalledLooks*watchEvery - watchEvery/2)
		look("another one waits", 0, 200, sound)
		time.Sleep(2 * watchEvery)
		look("it waits for longer", 1, 503, `{"status":"unavailable","details":{"searchesStalledSeconds":11}}`)
		time.Sleep(10 * watchEvery)
		look("and longer", 1, 503, `{"status":"unavailable","details":{"searchesStalledSeconds":21}}`)
		if n := strings.Count(log.String(), "searches are stalled"); n != 1 || strings.Count(log.String(), "stacks=") != 1 || !strings.Contains(log.String(), "TestWatchdog") {
			t.Errorf("%d lines in the log: %s", n, log.String())
		}

		s.slots.release()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		time.Sleep(2 * watchEvery)
		look("it has its turn", 1, 200, sound)
		if !strings.Contains(log.String(), "progress again") {
			t.Errorf("the log: %s", log.String())
		}

		go func() { waits <- s.slots.acquire(false) }()
		time.Sleep(2 * stalledLooks * watchEvery)
		look("the next one waits", 2, 503, `{"status":"unavailable","details":{"searchesStalledSeconds":20}}`)
		if n := strings.Count(log.String(), "searches are stalled"); n != 2 || strings.Count(log.String(), "stacks=") != 1 {
			t.Errorf("%d lines in the log, want only one with stacks: %s", n, log.String())
		}
		s.slots.release()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		s.slots.release()
	})
}
