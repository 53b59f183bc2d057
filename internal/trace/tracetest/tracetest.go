// Package tracetest has a collector of traces for tests.
package tracetest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is what a collector got.
type Span struct {
	Name       string
	Trace      string // hex
	ID, Parent string // hex; "": none
	Kind       string
	Failed     bool
	Attributes map[string]any // strings and int64
	Nanos      uint64         // how long it took
}

// Collector takes spans on loopback.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	requests []*http.Request
	statuses []int
}

// New starts a collector that ends with the test. It answers the first requests with statuses, and all others with 200.
func New(t testing.TB, statuses ...int) *Collector {
	c := &Collector{statuses: statuses}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP takes spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	if len(c.statuses) > 0 {
		status := c.statuses[0]
		c.statuses = c.statuses[1:]
		http.Error(w, "not now", status)
		return
	}
	spans, err := read(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.spans = append(c.spans, spans...)
}

func read(body io.Reader) (spans []Span, err error) {
	z, err := gzip.NewReader(body)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var all tracepb.TracesData
	if err := proto.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for _, r := range all.ResourceSpans {
		for _, in := range r.ScopeSpans {
			for _, s := range in.Spans {
				x := Span{
					Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Kind: s.Kind.String(),
					Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: map[string]any{}, Nanos: s.EndTimeUnixNano - s.StartTimeUnixNano,
				}
				for _, a := range append(s.Attributes, r.Resource.Attributes...) {
					x.Attributes[a.Key] = a.Value.GetStringValue()
					if x.Attributes[a.Key] == "" {
						x.Attributes[a.Key] = a.Value.GetIntValue()
					}
				}
				spans = append(spans, x)
			}
		}
	}
	return spans, nil
}

// Spans returns what came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// Requests returns the requests so far.
func (c *Collector) Requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}
