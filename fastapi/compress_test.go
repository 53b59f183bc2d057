package fastapi

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"svc/internal/budget"
)

// TestLargeAnswersAreCompressedWithRoom requests compressed answers: a large one is compressed if there is memory for it, and otherwise
// sent as it is. No memory may be held afterwards.
func TestLargeAnswersAreCompressedWithRoom(t *testing.T) {
	const memory = 64 << 20
	c, _ := newInstance(t, Options{Memory: memory})
	for _, test := range []struct {
		bytes int
		full  bool
		want  string
	}{{1000, false, "gzip"}, {longAnswerBytes, false, "gzip"}, {1000, true, "gzip"}, {longAnswerBytes, true, ""}} {
		other := c.server.budget.Open(1)
		if test.full {
			if err := other.Hold(memory - budget.SmallBytes - 1); err != nil {
				t.Fatal(err)
			}
		}
		var ctx fasthttp.RequestCtx
		r := c.server.begin(&ctx)
		ctx.Request.Header.Set("Accept-Encoding", "gzip")
		ctx.Response.SetBodyString(strings.Repeat("x", test.bytes))
		c.server.compress(&ctx)
		if got := string(ctx.Response.Header.ContentEncoding()); got != test.want || got == "" && len(ctx.Response.Body()) != test.bytes {
			t.Errorf("%d bytes, no room %t: %q, %d bytes", test.bytes, test.full, got, len(ctx.Response.Body()))
		}
		r.Close()
		other.Close()
		if _, running, waiting := c.server.slots.now(); running+waiting != 0 || c.server.budget.Used() != 0 {
			t.Errorf("%d run, %d wait, %d bytes are held at the end", running, waiting, c.server.budget.Used())
		}
	}
}
