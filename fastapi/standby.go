package fastapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/group"
)

// Standby answers requests while the stores of a reader are not open. It passes them on to the writer, apart from those that ask for this
// member of the group.
type Standby struct {
	member    Member
	forwarder *Forwarder
	master    [sha256.Size]byte
	log       *slog.Logger
	http      fasthttp.Server
}

// NewStandby returns a standby whose own routes the master key opens.
func NewStandby(m Member, f *Forwarder, masterKey string, log *slog.Logger) *Standby {
	s := &Standby{member: m, forwarder: f, master: sha256.Sum256([]byte(masterKey)), log: log}
	s.http = fasthttp.Server{
		Handler: s.serve, Logger: httpLog{log}, ReadBufferSize: headerBytes, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxRequestBodySize: 1 << 30,
		StreamRequestBody: true, DisablePreParseMultipartForm: true, NoDefaultServerHeader: true, NoDefaultContentType: true, NoDefaultDate: true,
		CloseOnShutdown: true, SecureErrorLogMessage: true,
	}
	return s
}

// Serve answers on l until Shutdown.
func (s *Standby) Serve(l net.Listener) error { return s.http.Serve(l) }

// Shutdown waits for running requests until ctx is done.
func (s *Standby) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

func (s *Standby) serve(ctx *fasthttp.RequestCtx) {
	var err error
	switch string(ctx.Path()) {
	case "/health":
		s.health(ctx)
	case "/group":
		err = s.group(ctx)
	default:
		err = s.forwarder.Forward(ctx)
	}
	if err == nil {
		return
	}
	e := apierr.From(err)
	ctx.SetStatusCode(e.Code.Status())
	ctx.SetContentType(contentJSON)
	ctx.SetBody(e.AppendJSON(nil))
}

// health says that requests are answered: as long as the writer can be reached.
func (s *Standby) health(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType(contentJSON)
	if r := s.member.Status().Reader; r != nil && r.State == group.StateAway {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.SetBodyString(`{"status":"unavailable"}`)
		return
	}
	ctx.SetBodyString(`{"status":"available"}`)
}

func (s *Standby) group(ctx *fasthttp.RequestCtx) error {
	scheme, key, _ := bytes.Cut(headerAuthorization.in(&ctx.Request.Header), []byte{' '})
	if sum := sha256.Sum256(key); !bytes.Equal(scheme, bearer) || subtle.ConstantTimeCompare(sum[:], s.master[:]) != 1 {
		return apierr.New("invalid_api_key", "A reader whose data is not open takes the master key alone here.")
	}
	b, err := json.Marshal(s.member.Status())
	if err != nil {
		return err
	}
	ctx.SetContentType(contentJSON)
	ctx.SetBody(b)
	return nil
}
