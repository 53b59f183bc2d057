package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// pair returns both ends of a connection. If wrapped, the first is the result of Wrap.
func pair(t *testing.T, wrapped bool) (net.Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	if wrapped {
		near = Wrap(near, always)
	}
	return near, far.(*net.TCPConn)
}

func always() bool { return true }

// notDue makes the next calls use our own read path.
func notDue() { woken.Store(int64(time.Since(epoch) + time.Hour)) }

func TestBytesArrive(t *testing.T) {
	notDue()
	near, far := pair(t, false)
	calls := 0
	near = Wrap(near, func() bool { calls++; return calls%3 > 0 }) // alternates between both paths
	g := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return b
	}
	// More than the buffers of the system hold, so that the writer must wait.
	for _, n := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {3, 5}, {4096, 100_000}, {9_000_000, 0}, {0, 9_000_000}, {5_000_000, 4_000_001}} {
		a, b := random(n[0]), random(n[1])
		want := append(bytes.Clone(a), b...)
		read := make(chan []byte)
		go func() {
			got := make([]byte, len(want))
			_, err := io.ReadFull(far, got)
			if err != nil {
				t.Error(err)
			}
			read <- got
		}()
		var written int64
		var err error
		if c, ok := near.(*Conn); ok {
			written, err = c.WriteBoth(a, b)
		} else {
			var m int
			m, err = near.Write(want)
			written = int64(m)
		}
		if err != nil || written != int64(len(want)) {
			t.Errorf("%v: %d bytes are written, %v", n, written, err)
		}
		if got := <-read; !bytes.Equal(got, want) {
			t.Errorf("%v: the bytes that arrive differ", n)
		}
	}
	all := random(9_000_000)
	go far.Write(all)
	got := make([]byte, len(all))
	if _, err := io.ReadFull(near, got); err != nil || !bytes.Equal(got, all) {
		t.Errorf("the bytes read differ, %v", err)
	}
}

func TestWritersDoNotMix(t *testing.T) {
	notDue()
	near, far := pair(t, true)
	const each, size = 40, 300_000
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range each {
				if n, err := near.Write(bytes.Repeat([]byte{byte(i)}, size)); n != size || err != nil {
					t.Errorf("%d bytes are written, %v", n, err)
				}
			}
		})
	}
	b := make([]byte, size)
	for range 4 * each {
		if _, err := io.ReadFull(far, b); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(b, b[:1]) != size {
			t.Fatal("the bytes of two writers are mixed")
		}
	}
	writers.Wait()
}

// TestErrorsAreThoseOfNet provokes the same errors on a connection of package net and on a wrapped one.
func TestErrorsAreThoseOfNet(t *testing.T) {
	reset := func(near net.Conn, far *net.TCPConn) {
		far.SetLinger(0)
		far.Close()
		time.Sleep(20 * time.Millisecond)
	}
	read := func(near net.Conn) error { _, err := near.Read(make([]byte, 10)); return err }
	write := func(near net.Conn) (err error) {
		for err == nil { // until the system reports it
			_, err = near.Write(make([]byte, 100_000))
		}
		return err
	}
	for _, c := range []struct {
		name   string
		before func(near net.Conn, far *net.TCPConn)
		call   func(near net.Conn) error
		is     error
	}{
		{"the end", func(_ net.Conn, far *net.TCPConn) { far.CloseWrite() }, read, io.EOF},
		{"read of a reset connection", reset, read, nil},
		{"write to a reset connection", reset, write, nil},
		{"read of a closed connection", func(near net.Conn, _ *net.TCPConn) { near.Close() }, read, net.ErrClosed},
		{"write to a closed connection", func(near net.Conn, _ *net.TCPConn) { near.Close() }, write, net.ErrClosed},
		{"read after the deadline", func(near net.Conn, _ *net.TCPConn) { near.SetDeadline(time.Now()) }, read, os.ErrDeadlineExceeded},
		{"write after the deadline", func(near net.Conn, _ *net.TCPConn) { near.SetDeadline(time.Now()) }, write, os.ErrDeadlineExceeded},
		{"read until the deadline", func(near net.Conn, _ *net.TCPConn) { near.SetDeadline(time.Now().Add(30 * time.Millisecond)) }, read, os.ErrDeadlineExceeded},
		{"write to a stalled reader until the deadline", func(near net.Conn, _ *net.TCPConn) { near.SetDeadline(time.Now().Add(30 * time.Millisecond)) }, write, os.ErrDeadlineExceeded},
		{"closed while it is read", func(near net.Conn, _ *net.TCPConn) { time.AfterFunc(30*time.Millisecond, func() { near.Close() }) }, read, net.ErrClosed},
	} {
		var errs [2]error
		for i := range errs {
			notDue()
			near, far := pair(t, i == 1)
			c.before(near, far)
			errs[i] = c.call(near)
			if c.is != nil && !errors.Is(errs[i], c.is) {
				t.Errorf("%s, wrapped %v: %v, want %v", c.name, i == 1, errs[i], c.is)
			}
		}
		var theirs, ours *net.OpError
		switch a, b := errors.As(errs[0], &theirs), errors.As(errs[1], &ours); {
		case a != b:
			t.Errorf("%s: %T, want %T", c.name, errs[1], errs[0])
		case a && (theirs.Op != ours.Op || theirs.Net != ours.Net || ours.Source == nil || theirs.Timeout() != ours.Timeout() || theirs.Err.Error() != ours.Err.Error()):
			t.Errorf("%s: %v, want %v", c.name, errs[1], errs[0])
		}
	}
}

func TestTheMonitorIsWokenFromTimeToTime(t *testing.T) {
	woken.Store(0)
	for _, x := range []struct {
		at  int64
		due bool
	}{{int64(monitorEvery) - 1, false}, {int64(monitorEvery), true}, {2*int64(monitorEvery) - 1, false}, {3 * int64(monitorEvery), true}, {3 * int64(monitorEvery), false}} {
		if monitorIsDueAt(x.at) != x.due {
			t.Errorf("after %d ns, want due %v", x.at, x.due)
		}
	}
	woken.Store(-int64(time.Hour))
	near, far := pair(t, true)
	go far.Write([]byte("a"))
	if n, err := near.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, ours := near.(interface {
		WriteBoth(a, b []byte) (int64, error)
	}); ours && woken.Load() < 0 {
		t.Error("a read that was due has not woken the monitor")
	}
	WakeMonitor()
}

func TestOtherConnectionsAreNotWrapped(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	if Wrap(a, always) != a {
		t.Error("a pipe is wrapped")
	}
	near, _ := pair(t, false)
	near.Close()
	if err := Wrap(near, always).Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed one: %v", err)
	}
}

// TestTheMonitorIsWokenWhateverTheTimeOfDay checks that the time of the last wake-up is one of the monotonic clock.
func TestTheMonitorIsWokenWhateverTheTimeOfDay(t *testing.T) {
	defer woken.Store(woken.Load())
	woken.Store(-int64(time.Hour))
	if !monitorIsDue() {
		t.Error("the monitor must be woken")
	}
	if at := time.Duration(woken.Load()); at < 0 || at > time.Since(epoch) {
		t.Errorf("it was woken %v after the start of the program", at)
	}
}
