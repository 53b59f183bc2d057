package main

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// trouble is what a link does to its connections. The zero value is no trouble.
type trouble struct {
	refuse    bool          // refuse connections
	hole      bool          // hold bytes until the trouble is over
	way       way           // direction of the hole
	delay     time.Duration // delay of all bytes
	perSecond int           // bytes per second and direction of a connection; 0: no limit
	cutAfter  int           // bytes per direction after which a connection breaks; 0: never
}

// way is a direction of a link.
type way uint8

const (
	bothWays way = iota
	there        // to the instance
	back
)

// troubles returns a random trouble of each kind.
var troubles = []func(r *rand.Rand) trouble{
	func(*rand.Rand) trouble { return trouble{refuse: true} },
	func(*rand.Rand) trouble { return trouble{hole: true} },
	func(r *rand.Rand) trouble { return trouble{delay: time.Duration(1+r.IntN(150)) * time.Millisecond} },
	func(r *rand.Rand) trouble { return trouble{perSecond: 2000 + r.IntN(20_000)} },
	func(r *rand.Rand) trouble { return trouble{cutAfter: 1 + r.IntN(1500)} },
}

// link forwards connections to an instance, subject to its trouble.
type link struct {
	address string // address of the link

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	target   string       // address of the instance; "": none
	now      trouble
	over     chan struct{} // closed when the current trouble is over
	conns    map[net.Conn]bool
	closed   bool
}

func newLink(t *testing.T) *link {
	t.Helper()
	k := &link{address: freeAddress(), conns: map[net.Conn]bool{}, over: make(chan struct{})}
	k.listen()
	t.Cleanup(func() {
		k.suffer(trouble{refuse: true})
		k.closed = true
	})
	return k
}

// listen starts accepting connections. The caller holds mu, or is the only user of the link.
func (k *link) listen() {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		l, err := net.Listen("tcp", k.address)
		if err == nil {
			k.listener = l
			break
		}
		if time.Now().After(deadline) {
			panic(err) // the port is taken
		}
	}
	go func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.pass(c)
		}
	}(k.listener)
}

// suffer starts a trouble, or ends all of it. Connections that must break do so at once.
func (k *link) suffer(t trouble) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = t
	close(k.over)
	k.over = make(chan struct{})
	if t.refuse && k.listener != nil {
		k.listener.Close()
		k.listener = nil
		for c := range k.conns {
			c.Close()
		}
	}
	if !t.refuse && k.listener == nil && !k.closed {
		k.listen()
	}
}

func (k *link) lead(target string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.target = target
}

func (k *link) suffered() (trouble, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.over
}

func (k *link) pass(c net.Conn) {
	defer c.Close()
	k.mu.Lock()
	target := k.target
	k.mu.Unlock()
	if target == "" {
		return
	}
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	k.mu.Lock()
	k.conns[c], k.conns[to] = true, true
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.conns, c)
		delete(k.conns, to)
	}()
	go func() { k.copy(to, c, there); to.Close() }()
	k.copy(c, to, back)
}

// copy forwards bytes in one direction until the connection ends or breaks.
func (k *link) copy(to io.Writer, from io.Reader, direction way) {
	buffer := make([]byte, 4<<10)
	passed := 0
	for {
		n, err := from.Read(buffer)
		for {
			t, over := k.suffered()
			if !t.hole || t.way != bothWays && t.way != direction {
				break
			}
			<-over
		}
		t, _ := k.suffered()
		pause := t.delay
		if t.perSecond > 0 {
			pause += time.Duration(n) * time.Second / time.Duration(t.perSecond)
		}
		time.Sleep(pause)
		broken := t.refuse || t.cutAfter > 0 && passed+n > t.cutAfter
		if broken {
			n = min(n, max(t.cutAfter-passed, 0))
		}
		passed += n
		if _, e := to.Write(buffer[:n]); err != nil || e != nil || broken {
			return
		}
	}
}
