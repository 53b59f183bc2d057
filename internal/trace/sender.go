package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"svc/internal/outbound"
)

// sender sends spans to the collector: OTLP over HTTP, as protocol buffers (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
// The exporter of the SDK for that would bring gRPC and its gateway along, 5 MB of the program, and connects by itself.
type sender struct {
	url     string
	headers map[string]string
	client  http.Client
	log     *slog.Logger
	ctx     context.Context // of all requests
	end     context.CancelFunc
	away    atomic.Bool // the collector did not take the last spans
}

func newSender(url string, o *Options) *sender {
	s := &sender{url: url, headers: o.Headers, log: o.Logger}
	s.client = http.Client{Transport: o.Policy.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Start, Stop and UploadTraces make it an otlptrace.Client.
func (s *sender) Start(context.Context) error { return nil }

// Stop closes the connections.
func (s *sender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, or drops them: the log says so when that begins, and when it is over.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	// ExportTraceServiceRequest has the same fields, but its package depends on gRPC.
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil {
		err = s.send(ctx, plain)
	}
	if (err != nil) == s.away.Swap(err != nil) {
		return nil
	}
	if err != nil {
		s.log.Warn("the collector refuses traces: spans are dropped until it accepts them", "error", err)
	} else {
		s.log.Info("the collector accepts traces again")
	}
	return nil
}

const (
	firstPause  = 500 * time.Millisecond // before a request is tried again; each further pause is twice as long
	quotedBytes = 200                    // of what the collector answers, in the log
)

// send sends spans, again and again where the collector says that it may take them later.
func (s *sender) send(ctx context.Context, plain []byte) error {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(plain); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	for pause := firstPause; ; pause *= 2 {
		after, err := s.once(ctx, body.Bytes())
		if err == nil || after < 0 {
			return err
		}
		select {
		case <-time.After(max(pause, after)):
		case <-ctx.Done():
			return err
		}
	}
}

// once sends one request. after is the minimum time before the next one. If it is negative, a retry is useless.
func (s *sender) once(ctx context.Context, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if errors.As(err, new(*outbound.RefusedError)) {
			return -1, err
		}
		return 0, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, quotedBytes))
	switch {
	case res.StatusCode < 300:
		return 0, nil
	case err != nil:
		return 0, err
	}
	err = fmt.Errorf("it answered with status %d: %q", res.StatusCode, said)
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // 0 when it says nothing
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second, err
	}
	return -1, err
}
