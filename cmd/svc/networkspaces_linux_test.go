package main

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// socket returns a UDP socket in the namespace, at the address that the others use.
func (n *namespace) socket() *net.UDPConn {
	n.t.Helper()
	type opened struct {
		c   *net.UDPConn
		err error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread() // the thread is in the namespace, so it must end with the goroutine
		f, err := os.Open("/var/run/netns/" + n.name)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			f.Close()
		}
		var c *net.UDPConn
		if err == nil {
			c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(n.ip)})
		}
		done <- opened{c, err}
	}()
	o := <-done
	if o.err != nil {
		n.t.Fatal(o.err)
	}
	n.t.Cleanup(func() { o.c.Close() })
	return o.c
}

// TestMutedNamespaces sends packets in both directions between two namespaces and mutes one direction: only its packets may vanish. The
// next packet that arrives proves it.
func TestMutedNamespaces(t *testing.T) {
	if inOwnNetwork(t) {
		return
	}
	rooms, err := newNamespaces(t, 2)
	if err != nil {
		t.Skip(err)
	}
	var sockets [2]*net.UDPConn
	for i, n := range rooms {
		sockets[i] = n.socket()
	}
	send := func(from int, text string) {
		t.Helper()
		if _, err := sockets[from].WriteTo([]byte(text), sockets[1-from].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	arrives := func(at int, want string) {
		t.Helper()
		b := make([]byte, 100)
		n, _, err := sockets[at].ReadFrom(b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("%q arrives, want %q: %v", b[:n], want, err)
		}
	}
	for from := range rooms {
		send(from, "before")
		arrives(1-from, "before")
		rooms[from].mute(rooms[1-from], true)
		send(from, "lost")
		send(1-from, "meanwhile")
		arrives(from, "meanwhile")
		rooms[from].mute(rooms[1-from], false)
		send(from, "after")
		arrives(1-from, "after")
	}
}
