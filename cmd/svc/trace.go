package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"svc/internal/trace"
)

// traceOptions say which OpenTelemetry collector gets the traces.
type traceOptions struct {
	Endpoint string       `name:"trace-endpoint" placeholder:"URL" help:"OpenTelemetry collector for traces, by OTLP over HTTP, such as http://localhost:4318 (default: no traces)."`
	Headers  traceHeaders `name:"trace-headers" placeholder:"HEADERS" help:"Headers for the collector: name=value, separated by commas."`
	Ratio    float64      `name:"trace-ratio" default:"1" placeholder:"RATIO" help:"Share of requests, batches and merges to trace, from 0 to 1. Requests with a sampled traceparent header are always traced (default: ${default})."`
}

// traceHeaders are headers by their names.
type traceHeaders map[string]string

// UnmarshalText reads name=value,name=value.
func (h *traceHeaders) UnmarshalText(text []byte) error {
	read := traceHeaders{}
	for piece := range strings.SplitSeq(string(text), ",") {
		if piece = strings.TrimSpace(piece); piece == "" {
			continue
		}
		name, value, ok := strings.Cut(piece, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t:") {
			return errors.New("headers must be name=value, separated by commas") // the text may be a secret
		}
		read[name] = strings.TrimSpace(value)
	}
	*h = read
	return nil
}

func (o *traceOptions) validate() error {
	if o.Ratio < 0 || o.Ratio > 1 || o.Ratio != o.Ratio {
		return errors.New("--trace-ratio must be from 0 to 1")
	}
	if o.Endpoint != "" {
		if _, err := trace.Endpoint(o.Endpoint); err != nil {
			return fmt.Errorf("--trace-endpoint: %w", err)
		}
	}
	return nil
}

// tracer returns what traces, nil when there is no collector.
func (o *options) tracer(address string, log *slog.Logger) (*trace.Tracer, error) {
	if o.Traces.Endpoint == "" {
		return nil, nil
	}
	t, err := trace.New(trace.Options{
		Endpoint: o.Traces.Endpoint, Headers: maps.Clone(o.Traces.Headers), Ratio: o.Traces.Ratio, Policy: o.AllowedNetworks, Logger: log, Version: svcVersion, Instance: address,
	})
	if err != nil {
		return nil, fmt.Errorf("--trace-endpoint: %w", err)
	}
	return t, nil
}
