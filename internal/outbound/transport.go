package outbound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	connectTimeout = 10 * time.Second
	idleTimeout    = 90 * time.Second
	maxIdle        = 64
)

// RefusedError is the error of a connection that the policy does not allow.
// It lies wrapped in the error of the request.
type RefusedError struct{ Addr netip.Addr }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("connecting to %s is not allowed. To allow it, start the server with its network in --experimental-allowed-ip-networks", e.Addr)
}

// Dialer returns a dialer that connects only to what p allows.
func (p Policy) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: connectTimeout, ControlContext: p.control}
}

// Transport returns a transport that connects only to what p allows. It uses no proxy, because a proxy would connect to addresses
// that the guard does not see.
func (p Policy) Transport() *http.Transport {
	return &http.Transport{
		DialContext:         p.Dialer().DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        maxIdle,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: connectTimeout,
	}
}

// maxRedirects is how many redirects a request may follow.
const maxRedirects = 10

// RepeatOnly is the CheckRedirect of clients whose requests change something and carry secrets. It follows a redirect only if it
// repeats the same request (307, 308) at the same origin: scheme, host and port. Another port may belong to another party, which
// would get the key. Any other redirect is returned as the response: a POST that became a GET would look successful.
func RepeatOnly(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.Method != first.Method || origin(req.URL) != origin(first.URL) {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("there are more than %d redirects", maxRedirects)
	}
	return nil
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) [3]string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return [3]string{u.Scheme, strings.ToLower(u.Hostname()), port}
}

// control is called with each resolved address just before a socket connects to it.
func (p Policy) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot check the address %q: %w", address, err)
	}
	if !p.Allows(to.Addr()) {
		return &RefusedError{to.Addr()}
	}
	return nil
}
