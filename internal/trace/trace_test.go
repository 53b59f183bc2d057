package trace

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/logs/logstest"
	"svc/internal/outbound"
	"svc/internal/trace/tracetest"
)

func open(t testing.TB, o Options) *Tracer {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	tracer, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// TestSpans checks what the collector gets for a request and its parts.
func TestSpans(t *testing.T) {
	c := tracetest.New(t)
	tracer := open(t, Options{Endpoint: c.URL, Headers: map[string]string{"Authorization": "secret"}, Ratio: 1, Policy: outbound.Any(), Version: "9", Instance: "here"})
	s := tracer.Serve("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ctx := s.In(context.Background())
	now := time.Now()
	Of(ctx).Record("over", now.Add(-time.Second), now)
	inner, call := Call(ctx, "call")
	h := http.Header{}
	Pass(inner, h)
	call.Fail("no")
	call.End()
	s.Name("GET /x")
	s.SetInt("status", 7)
	s.Set("index", "films")
	s.End()
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	spans := map[string]tracetest.Span{}
	for _, s := range c.Spans() {
		spans[s.Name] = s
		if s.Trace != "0af7651916cd43dd8448eb211c80319c" || s.Attributes["service.name"] != "svc" || s.Attributes["service.version"] != "9" || s.Attributes["service.instance.id"] != "here" {
			t.Errorf("%+v", s)
		}
	}
	root, over, made := spans["GET /x"], spans["over"], spans["call"]
	if len(spans) != 3 || root.Parent != "b7ad6b7169203331" || root.Kind != "SPAN_KIND_SERVER" || root.Attributes["status"] != int64(7) || root.Attributes["index"] != "films" || root.Failed {
		t.Errorf("the request: %+v", spans)
	}
	if over.Parent != root.ID || over.Nanos != uint64(time.Second) || made.Parent != root.ID || !made.Failed || made.Kind != "SPAN_KIND_CLIENT" {
		t.Errorf("the parts: %+v", spans)
	}
	if got, want := h.Get("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-"+made.ID+"-01"; got != want {
		t.Errorf("%q is propagated, want %q", got, want)
	}
	r := c.Requests()[0]
	if r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "secret" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
}

// TestSampling checks that a share of the traces that begin here is recorded, and of others those that their origin records.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		ratio       float64
		traceparent string
		want        int
	}{
		{0, "", 0},
		{1, "", 1},
		{0, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1},
		{1, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 0},
		{1, "nonsense", 1},
		{1, "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-00", 1},
		{1, strings.Repeat("0", 10000), 1},
	} {
		c := tracetest.New(t)
		tracer := open(t, Options{Endpoint: c.URL, Ratio: tt.ratio, Policy: outbound.Any()})
		s := tracer.Serve(tt.traceparent)
		ctx := s.In(context.Background())
		_, part := Start(ctx, "part")
		if recorded := tt.want == 1; s.Recorded() != recorded || Of(ctx).Recorded() != recorded || part.Recorded() != recorded {
			t.Errorf("%v %q: %t, and the part %t", tt.ratio, tt.traceparent, s.Recorded(), part.Recorded())
		}
		part.End()
		s.End()
		if err := tracer.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Spans()); n != 2*tt.want {
			t.Errorf("%v %q: %d spans", tt.ratio, tt.traceparent, n)
		}
	}
}

// TestWithoutATracer checks that nothing is recorded without a Tracer.
func TestWithoutATracer(t *testing.T) {
	var tracer *Tracer
	ctx, s := tracer.Begin(t.Context(), "x")
	for _, s := range []Span{s, tracer.Serve("x"), {}} {
		s.Name("x")
		s.Set("x", "y")
		s.SetInt("x", 1)
		s.Fail("x")
		s.End()
		if s.Recorded() || s.In(ctx) != ctx {
			t.Error("a span without a tracer is recorded")
		}
	}
	if c, s := Start(ctx, "x"); c != ctx || s.Recorded() || Of(ctx).Recorded() {
		t.Error("a part without a span is recorded")
	}
	Of(ctx).Record("x", time.Now(), time.Now())
	h := http.Header{}
	if Pass(ctx, h); len(h) != 0 {
		t.Errorf("%v", h)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}

// TestCollectorIsAway checks that spans are dropped while the collector is away: one line in the log, no waiting, no leak.
func TestCollectorIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + l.Addr().String() // accepts connections and sends nothing
	t.Cleanup(func() { l.Close() })
	for what, o := range map[string]Options{
		"no answer":     {Endpoint: silent, Policy: outbound.Any()},
		"no connection": {Endpoint: "http://127.0.0.1:1", Policy: outbound.Any()},
		"refused":       {Endpoint: tracetest.New(t, slices.Repeat([]int{400}, 1000)...).URL, Policy: outbound.Any()},
		"overloaded":    {Endpoint: tracetest.New(t, slices.Repeat([]int{503}, 1000)...).URL, Policy: outbound.Any()},
		"not allowed":   {Endpoint: silent},
	} {
		t.Run(what, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var logged logstest.Buffer
			o.Ratio, o.Logger = 1, slog.New(slog.NewTextHandler(&logged, nil))
			tracer := open(t, o)
			for range 4 * queueSpans {
				_, s := tracer.Begin(t.Context(), "x")
				s.End()
			}
			if err := tracer.Close(); err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before || !strings.Contains(logged.String(), "refuses traces"); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					buf := make([]byte, 1<<20)
					t.Fatalf("%d goroutines, %d before; log: %s\n%s", runtime.NumGoroutine(), before, logged.String(), buf[:runtime.Stack(buf, true)])
				}
			}
			if n := strings.Count(logged.String(), "\n"); n != 1 {
				t.Errorf("%d lines: %s", n, logged.String())
			}
			if strings.Contains(what, "allowed") && !strings.Contains(logged.String(), "experimental-allowed-ip-networks") {
				t.Errorf("the log does not say what to do: %s", logged.String())
			}
		})
	}
}

// TestCollectorIsBack checks that spans which the collector may accept later are sent again.
func TestCollectorIsBack(t *testing.T) {
	c := tracetest.New(t, 503, 429)
	s := newSender(c.URL+"/v1/traces", &Options{Policy: outbound.Any(), Logger: slog.New(slog.DiscardHandler)})
	defer s.end()
	if err := s.send(t.Context(), nil); err != nil || len(c.Requests()) != 3 {
		t.Errorf("%v after %d requests", err, len(c.Requests()))
	}
	again := tracetest.New(t, 302)
	s = newSender(again.URL, &Options{Policy: outbound.Any(), Logger: slog.New(slog.DiscardHandler)})
	defer s.end()
	if err := s.send(t.Context(), nil); err == nil || len(again.Requests()) != 1 {
		t.Errorf("a redirect: %v after %d requests", err, len(again.Requests()))
	}
}

func TestEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:4318":             "http://localhost:4318/v1/traces",
		"https://example.com/":              "https://example.com/v1/traces",
		"https://example.com/otlp/traces":   "https://example.com/otlp/traces",
		"https://example.com/?tenant=a":     "https://example.com/v1/traces?tenant=a",
		"localhost:4318":                    "",
		"ftp://localhost":                   "",
		"http://":                           "",
		"http://user:password@example.com/": "",
		"":                                  "",
	} {
		got, err := Endpoint(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := New(Options{Endpoint: "nowhere"}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// BenchmarkPart measures the cost of a traced place, with and without a recorded span.
func BenchmarkPart(b *testing.B) {
	type key struct{}
	deep := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		b.Cleanup(cancel)
		return context.WithValue(ctx, key{}, 1)
	}
	b.Run("off", func(b *testing.B) {
		ctx := deep(context.Background())
		b.ReportAllocs()
		for b.Loop() {
			_, s := Start(ctx, "part")
			s.End()
		}
	})
	b.Run("on", func(b *testing.B) {
		c := tracetest.New(b)
		tracer := open(b, Options{Endpoint: c.URL, Ratio: 1, Policy: outbound.Any()})
		ctx, root := tracer.Begin(context.Background(), "root")
		ctx = deep(ctx)
		b.ReportAllocs()
		for b.Loop() {
			_, s := Start(ctx, "part")
			s.End()
		}
		root.End()
		if err := tracer.Close(); err != nil {
			b.Error(err)
		}
	})
}
