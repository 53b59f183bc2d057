package fastapi

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestForwardsLongAnswers: an answer may take longer than forwardWait as long as its pieces come, and a request too.
func TestForwardsLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		f := NewForwarder(func(context.Context) (net.Conn, error) { return near, nil })
		c, err := f.client.Dial("writer")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(forwardWait)) // as fasthttp does before a request
		piece := make([]byte, 1)
		for i := range 5 {
			go func() {
				time.Sleep(forwardWait * 3 / 4)
				far.Write(piece)
			}()
			if _, err := c.Read(piece); err != nil {
				t.Fatalf("piece %d of the answer: %v", i, err)
			}
		}
		for i := range 5 {
			go func() {
				time.Sleep(forwardWait * 3 / 4)
				far.Read(make([]byte, 1))
			}()
			if _, err := c.Write(piece); err != nil {
				t.Fatalf("piece %d of the request: %v", i, err)
			}
		}
		if _, err := c.Read(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a writer that sends nothing: %v", err)
		}
		if _, err := c.Write(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a writer that reads nothing: %v", err)
		}
	})
}
