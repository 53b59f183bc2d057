// Package fastapi speaks the HTTP API: fasthttp and its router in front,
// one file a resource, request decoding with exact error codes.
package fastapi

import (
	"context"
	"log/slog"
	"net"

	"svc/internal/index"
	"svc/internal/task"
)

// Options of a server.
type Options struct {
	Catalog      *index.Catalog
	Queue        *task.Queue
	Logger       *slog.Logger
	PayloadLimit int64 // bytes, after decompression
	MasterKey    string
	Production   bool // no dashboard on /
	Pprof        bool // serve /debug/pprof
}

// Server answers HTTP requests.
type Server struct{}

func New(o Options) *Server { panic("stub") }

// Serve answers on l until Shutdown.
func (s *Server) Serve(l net.Listener) error { panic("stub") }

// Shutdown refuses new connections and waits for running requests.
func (s *Server) Shutdown(ctx context.Context) error { panic("stub") }
