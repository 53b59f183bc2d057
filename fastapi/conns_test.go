package fastapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowReaders writes to a client that takes its time, and to one that has stopped reading.
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

// TestARequestBesideTheEndIsRead hangs a connection up between the head of a request and its handler: its body is read like others, and the
// next request is not waited for.
func TestARequestBesideTheEndIsRead(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	var cs conns
	c := &conn{Conn: server, in: &cs}
	defer c.Close()
	cs.take(c)
	read := func() error {
		go client.Write([]byte("x")) // it ends with the connection
		_, err := c.Read(make([]byte, 1))
		return err
	}
	c.hangUp()
	c.enter()
	if err := read(); err != nil {
		t.Errorf("the body of a request that was let in: %v", err)
	}
	c.hangUp() // it is busy
	if err := read(); err != nil {
		t.Errorf("the rest of it: %v", err)
	}
	c.busy.Store(false)
	c.hangUp()
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the request: %v", err)
	}
}
