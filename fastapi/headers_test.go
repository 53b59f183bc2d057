package fastapi

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestHeadersAreFound finds all headers in random requests at once, some of which have no svc headers, and compares with
// looking up each name.
func TestHeadersAreFound(t *testing.T) {
	var names []string
	for _, name := range requestHeaders {
		names = append(append(names, string(name)), name.aliases()...)
	}
	plain := []string{"User-Agent", "Accept", "Accept-Encoding", "Authorization", "Content-Type", "Content-Encoding", "Cache-Control"}
	r := rand.New(rand.NewPCG(1, 1))
	found, skipped := 0, 0
	for range 5000 {
		from := plain
		if r.IntN(2) == 0 {
			from = names
		}
		var b strings.Builder
		b.WriteString("POST / HTTP/1.1\r\nHost: a\r\n")
		for range r.IntN(7) {
			name := from[r.IntN(len(from))]
			switch requestHeader(name) {
			case headerHost, headerTransferEncoding, headerContentLength, headerExpect: // fasthttp refuses bad ones
				continue
			}
			switch r.IntN(4) {
			case 0:
				name = strings.ToLower(name)
			case 1:
				name = strings.ToUpper(name)
			}
			b.WriteString(name + []string{":", ": "}[r.IntN(2)] + []string{"", "a", "true"}[r.IntN(3)] + "\r\n")
		}
		b.WriteString("\r\n")
		var h fasthttp.RequestHeader
		if err := h.Read(bufio.NewReader(strings.NewReader(b.String()))); err != nil {
			t.Fatalf("%q: %v", b.String(), err)
		}
		if !extended(&h) {
			skipped++
		}
		for _, name := range requestHeaders {
			var want []byte
			for _, n := range append([]string{string(name)}, name.aliases()...) {
				if want = h.Peek(n); len(want) > 0 {
					break
				}
			}
			want = slices.Clone(want)
			got := name.in(&h)
			if !bytes.Equal(got, want) {
				t.Errorf("%q: %s is %q, want %q", b.String(), name, got, want)
			}
			if len(name.aliases()) > 0 && len(want) > 0 {
				found++
			}
		}
	}
	if found < 1000 || skipped < 1000 {
		t.Errorf("found %d svc headers, %d requests had none; want some of both", found, skipped)
	}
}
