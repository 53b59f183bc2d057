package embed

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRetriesContinue checks that interrupted work continues with its remaining retries and waits.
func TestRetriesContinue(t *testing.T) {
	server := newProvider(t, script(repeat(500, 100)...))
	pool, waits := testPool(t, Options{})
	stats := &Stats{Retries: 7}
	_, err := open(t, pool, restConfig(server.URL), 2).EmbedDocuments(t.Context(), texts("a"), stats)
	wantError(t, err, "status 500")
	if n := len(server.calls()); n != maxRetries-7+1 || len(*waits) != maxRetries-7 || (*waits)[0] != 90*time.Second {
		t.Errorf("%d calls, waits %v", n, *waits)
	}
}

// TestTroubleBeginsAndEnds checks that trouble is reported once a call has failed for long, and ends with it.
func TestTroubleBeginsAndEnds(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = time.Minute // the first five waits are far below, the sixth is above
	server := newProvider(t, script(append(repeat(503, 6), 200)...))
	pool, _ := testPool(t, Options{})
	stats := &Stats{}
	var told []bool
	stats.Changed = func() {
		_, ok := stats.Trouble()
		told = append(told, ok)
	}
	began := time.Now()
	pool.caller.sleep = func(_ context.Context, d time.Duration) error {
		trouble, ok := stats.Trouble()
		switch {
		case ok != (d >= patience):
			t.Errorf("a wait of %v: trouble %v", d, ok)
		case ok && (trouble.Retries != 6 || !strings.Contains(trouble.Reason.Message, "status 503") || trouble.Since.Before(began) || trouble.Next.Sub(trouble.Since) < d):
			t.Errorf("%+v, %v", trouble, trouble.Reason)
		}
		return nil
	}
	if _, err := open(t, pool, restConfig(server.URL), 2).EmbedDocuments(t.Context(), texts("a"), stats); err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 || !told[0] || told[len(told)-1] {
		t.Errorf("reported: %v", told)
	}
	if _, ok := stats.Trouble(); ok {
		t.Error("trouble without a call")
	}
}

// TestSlowWorkIsReported checks that slow work is reported while it waits, even for many calls that are quick one by one.
func TestSlowWorkIsReported(t *testing.T) {
	defer func(d time.Duration) { slowAfter = d }(slowAfter)
	slowAfter = 60 * time.Millisecond
	server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(slowAfter / 4)
		lengths(w, r)
	})
	pool, _ := testPool(t, Options{})
	e := open(t, pool, restConfig(server.URL), 2)
	told := make(chan struct{}, 1)
	stats := &Stats{Changed: func() { told <- struct{}{} }}
	for n := 0; n < 8 || n < 400 && len(told) == 0; n++ { // more on a loaded machine, where the timer may be late
		if _, err := e.EmbedDocuments(t.Context(), texts("a"), stats); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-told:
	default:
		t.Error("slow work is not reported")
	}
	if !stats.Slow() {
		t.Error("the work does not count as slow")
	}
}

// TestEmbeddersDoNotWaitForEachOther checks that calls of a hanging embedder do not use the slots of others.
func TestEmbeddersDoNotWaitForEachOther(t *testing.T) {
	var asked atomic.Int64
	hangs := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	})
	good := newProvider(t, lengths)
	pool, _ := testPool(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := open(t, pool, restConfig(hangs.URL), 2).EmbedDocuments(ctx, make([]Input, 2*parallel), new(Stats))
		ended <- err
	}()
	for asked.Load() < parallel {
		time.Sleep(time.Millisecond)
	}
	if _, err := open(t, pool, restConfig(good.URL), 2).EmbedDocuments(t.Context(), texts("a"), new(Stats)); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
