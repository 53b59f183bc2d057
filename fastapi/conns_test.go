package fastapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowReaders writes to a slow client, and to one that has stopped reading.
func TestSlowReaders(t *testing.T) {
	answer := bytes.Repeat([]byte("0123456789"), writeBytes/2) // five pieces
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			c := &conn{Conn: server, in: &conns{}}
			var received int
			read := make(chan struct{})
			go func() {
				defer close(read)
				piece := make([]byte, writeBytes)
				for {
					n, err := io.ReadFull(client, piece)
					received += n
					if err != nil {
						return
					}
					if stops {
						time.Sleep(10 * writeTimeout)
						return
					}
					time.Sleep(writeTimeout / 2)
				}
			}()
			n, err := c.Write(answer)
			c.Close()
			<-read
			client.Close()
			switch {
			case !stops && (err != nil || n != len(answer) || received != n):
				t.Errorf("a slow client gets %d bytes of %d: %v", received, len(answer), err)
			case stops && (!errors.Is(err, os.ErrDeadlineExceeded) || n != writeBytes):
				t.Errorf("%d bytes are written to a client that stopped: %v", n, err)
			}
		})
	}
}

// TestARequestDuringHangUpIsRead hangs up a connection after the head of a request and before its handler: the body must still be read,
// and the server must not wait for another request.
func TestARequestDuringHangUpIsRead(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	var cs conns
	c := &conn{Conn: server, in: &cs}
	defer c.Close()
	cs.take(c)
	read := func() error {
		go client.Write([]byte("x")) // ends with the connection
		_, err := c.Read(make([]byte, 1))
		return err
	}
	c.hangUp()
	c.enter()
	if err := read(); err != nil {
		t.Errorf("the body of a request that was let in: %v", err)
	}
	c.hangUp() // the connection is busy
	if err := read(); err != nil {
		t.Errorf("the rest of it: %v", err)
	}
	c.busy.Store(false)
	c.hangUp()
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the request: %v", err)
	}
}

// instant is a connection on which the next request is always available.
type instant struct{ net.Conn }

func (instant) Read(b []byte) (int, error)       { return copy(b, "GET / HTTP/1.1\r\n\r\n"), nil }
func (instant) Write(b []byte) (int, error)      { return len(b), nil }
func (instant) SetWriteDeadline(time.Time) error { return nil }

// TestAConnectionYields uses one processor: other goroutines must run before the next request of a client that never pauses is read.
func TestAConnectionYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := &conn{Conn: instant{}, in: new(conns)}
	for tries := 0; !c.prompt; tries++ {
		if _, err := c.Read(make([]byte, 64)); err != nil || tries == 10_000 {
			t.Fatalf("%v; %d requests were available, but none was read at once", err, tries)
		}
	}
	for range 3 {
		var others atomic.Bool
		go others.Store(true)
		for range 3 { // once in 61 times the scheduler first runs the goroutine that yielded
			c.prompt = true // even on a busy machine
			if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			c.gaveWay = c.gaveWay.Add(-2 * bout)
			if _, err := c.Read(make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
		}
		if !others.Load() {
			t.Fatal("a runnable goroutine did not run between an answer and the next request")
		}
	}
}
