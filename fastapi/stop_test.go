package fastapi

import (
	"context"
	"testing"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"
)

// TestStopBeforeTheStart stops a server before it serves: it must not start, or end at once.
func TestStopBeforeTheStart(t *testing.T) {
	o := Options{}
	complete(t, &o)
	for i := range 200 {
		s, l := New(o), fasthttputil.NewInmemoryListener()
		ended := make(chan struct{})
		begin := func() {
			_ = s.Serve(l) // may return the error of a closed listener
			close(ended)
		}
		if i%2 == 0 {
			go begin()
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			go begin()
		}
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatal("the server keeps running")
		}
	}
}
