package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"svc/internal/apierr"
)

// plaintextListener is below TLS. It answers a client that speaks plain HTTP with an error before it closes the connection.
type plaintextListener struct{ net.Listener }

func (l plaintextListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if tcp, ok := nc.(*net.TCPConn); ok && err == nil {
		return &plaintextConn{TCPConn: tcp}, nil
	}
	return nc, err
}

// plaintextConn looks at the first bytes of a client. It is read by one goroutine at a time, as TLS does.
type plaintextConn struct {
	*net.TCPConn
	heard bool
}

// Read answers a request of plain HTTP by an error that says so, because a client would only see a failed
// handshake.
func (c *plaintextConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if c.heard || n == 0 {
		return n, err
	}
	// A record of TLS begins with its kind, below 32; a request of HTTP with a method.
	if c.heard = true; p[0] < 'A' || p[0] > 'Z' {
		return n, err
	}
	body := apierr.New("bad_request", "This address serves HTTPS. Use `https://`.").AppendJSON(nil)
	_, _ = fmt.Fprintf(c.TCPConn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	// Unread data at the close of the connection may cost the client the answer.
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(plaintextPatience))
	_, _ = io.CopyN(io.Discard, c.TCPConn, plaintextBytes)
	return 0, net.ErrClosed
}

// plaintextPatience and plaintextBytes limit how long, and how much, is read from a client that does not speak TLS.
const (
	plaintextPatience = 500 * time.Millisecond
	plaintextBytes    = 64 << 10
)
