// Package trace reports the time of requests, batches and merges to a collector of OpenTelemetry: spans, created with the official
// SDK and sent as OTLP over HTTP. A nil Tracer starts no span, and a span without a parent is not started. Without tracing, the cost
// is a lookup in the context.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"svc/internal/outbound"
)

// Options of a Tracer.
type Options struct {
	Endpoint string            // URL of the collector; /v1/traces is added where it has no path
	Headers  map[string]string // of the requests to the collector
	Ratio    float64           // of traces that begin here, from 0 to 1; of those that another server began, it has decided
	Policy   outbound.Policy   // which addresses the collector may have
	Logger   *slog.Logger
	Version  string // of svc
	Instance string // tells this server from others
}

const (
	// queueSpans is how many ended spans wait for the collector, at most. Beyond that they are dropped.
	queueSpans = 8192
	// sendSpans go in one request.
	sendSpans = 512
	// sendPause is how long spans wait for others to go with them.
	sendPause = 2 * time.Second
	// sendTimeout limits a request, including retries.
	sendTimeout = 10 * time.Second
	// stopTime is how long Close waits for the collector.
	stopTime = time.Second

	// scope names who made the spans.
	scope = "svc"
)

// Tracer begins traces.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	sender   *sender
}

// New makes a Tracer, which Close ends. It does not connect yet.
func New(o Options) (*Tracer, error) {
	address, err := Endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	s := newSender(address, &o)
	// Start cannot fail: the sender's does nothing.
	exporter, err := otlptrace.New(context.Background(), s)
	if err != nil {
		return nil, err
	}
	// All that the environment could set is set here: the options of svc are the only ones.
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "svc"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: 1000, AttributeCountLimit: 32, EventCountLimit: 8, LinkCountLimit: 1, AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 1}),
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(queueSpans), sdk.WithMaxExportBatchSize(sendSpans), sdk.WithBatchTimeout(sendPause), sdk.WithExportTimeout(sendTimeout)),
	)
	return &Tracer{provider, provider.Tracer(scope, otel.WithInstrumentationVersion(o.Version)), s}, nil
}

// Endpoint reads the URL of a collector, and returns where it takes traces.
func Endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return "", fmt.Errorf("%q is not the URL of a collector: use one such as http://localhost:4318", text)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Close sends the waiting spans, as long as the collector accepts them quickly.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	t.sender.end()
	if ctx.Err() != nil {
		return nil // the collector is away, which the log has said
	}
	return err
}

// Span is a traced operation. The zero Span is not traced.
type Span struct{ span otel.Span }

// Begin starts a trace, or a span in the trace of ctx. Code with the returned context may start child spans.
func (t *Tracer) Begin(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name)
	return ctx, Span{s}
}

// Serve starts the span of a request. traceparent names the client's span; "": none. The name of the span is set when it ends.
func (t *Tracer) Serve(traceparent string) Span {
	if t == nil {
		return Span{}
	}
	ctx := context.Background()
	if traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	}
	_, s := t.tracer.Start(ctx, "request", otel.WithSpanKind(otel.SpanKindServer))
	return Span{s}
}

// Start begins a part of what ctx belongs to.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, otel.SpanKindInternal)
}

// Call begins a call to another server.
func Call(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, otel.SpanKindClient)
}

func start(ctx context.Context, name string, kind otel.SpanKind) (context.Context, Span) {
	parent := otel.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, s := parent.TracerProvider().Tracer(scope).Start(ctx, name, otel.WithSpanKind(kind))
	return ctx, Span{s}
}

// Of returns the span that ctx belongs to; one that is not recorded where it belongs to none.
func Of(ctx context.Context) Span { return Span{otel.SpanFromContext(ctx)} }

// Record adds a part that is over already.
func (s Span) Record(name string, from, to time.Time) {
	if s.Recorded() {
		_, part := s.span.TracerProvider().Tracer(scope).Start(s.In(context.Background()), name, otel.WithTimestamp(from))
		part.End(otel.WithTimestamp(to))
	}
}

// Pass tells another instance of svc which trace a request belongs to.
func Pass(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// In returns a context that belongs to the span.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return otel.ContextWithSpan(ctx, s.span)
}

// Recorded reports whether the collector gets the span: others need no attributes.
func (s Span) Recorded() bool { return s.span != nil && s.span.IsRecording() }

// Name names the span.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Set sets an attribute.
func (s Span) Set(name, value string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// SetInt sets an attribute.
func (s Span) SetInt(name string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(name, value))
	}
}

// Fail says that it went wrong.
func (s Span) Fail(reason string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}
