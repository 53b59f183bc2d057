package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"svc/internal/outbound"
	"svc/internal/settings"
)

// A request is tried until it succeeds, is refused, or giveUp has passed. Waits grow by a half each, and are
// spread by a half to either side.
const (
	requestTimeout = 5 * time.Second
	bytesPerSecond = 1 << 20 // at least: a request has so much more time for its body
	firstWait      = 500 * time.Millisecond
	maxWait        = time.Minute
	giveUp         = 15 * time.Minute
	maxAnswer      = 1 << 20 // bytes of an answer that are read
)

// remote is the target instance of an export.
type remote struct {
	client    http.Client
	transport *http.Transport
	url       string
	key       string
	secrets   []string // what answers may quote of the two
	giveUp    time.Duration
	firstWait time.Duration
}

// newRemote makes a client of another instance. secrets are hidden in its errors.
func newRemote(transport *http.Transport, address, key string) *remote {
	r := &remote{
		client: http.Client{Transport: transport, CheckRedirect: outbound.RepeatOnly}, transport: transport,
		url: strings.TrimRight(address, "/"), key: key, secrets: []string{key}, giveUp: giveUp, firstWait: firstWait,
	}
	if u, err := url.Parse(address); err == nil {
		r.secrets = append(r.secrets, outbound.SecretsOf(u)...)
	}
	return r
}

func (r *remote) close() { r.transport.CloseIdleConnections() }

// refusedError is an answer that says no.
type refusedError struct {
	request string
	status  int
	code    string
	message string
	moved   string // where the other side would like the request; "" when it does not say
}

func (e *refusedError) Error() string {
	if e.moved != "" {
		return fmt.Sprintf("%s: the answer has status %d, a redirect to %s, which svc does not follow: export to the address of the other instance", e.request, e.status, e.moved)
	}
	if e.code == "" {
		return fmt.Sprintf("%s: the answer has status %d", e.request, e.status)
	}
	return fmt.Sprintf("%s: the answer has status %d, code %s: %s", e.request, e.status, e.code, e.message)
}

// has reports whether the other side has an index.
func (r *remote) has(ctx context.Context, uid string) (bool, error) {
	err := r.do(ctx, http.MethodGet, "/indexes/"+uid, "", nil)
	var refused *refusedError
	if errors.As(err, &refused) && refused.code == "index_not_found" {
		return false, nil
	}
	return err == nil, err
}

// send sends JSON.
func (r *remote) send(ctx context.Context, method, path string, body any) error {
	b, err := encode(body)
	if err != nil {
		return err
	}
	return r.do(ctx, method, path, "application/json", b)
}

// documents sends documents, one a line.
func (r *remote) documents(ctx context.Context, path string, lines []byte) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(lines)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return r.do(ctx, http.MethodPost, path, "application/x-ndjson", packed.Bytes())
}

// do makes a request until the other side has taken or refused it.
func (r *remote) do(ctx context.Context, method, path, contentType string, body []byte) error {
	end := time.Now().Add(r.giveUp)
	for wait := r.firstWait; ; wait = min(wait*3/2, maxWait) {
		again, err := r.try(ctx, method, path, contentType, body)
		if err == nil || !again || ctx.Err() != nil {
			return err
		}
		pause := wait/2 + rand.N(wait)
		if time.Now().Add(pause).After(end) {
			return fmt.Errorf("%w; it was tried for %s", err, r.giveUp)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try makes a request once. again says that a later one may succeed.
func (r *remote) try(ctx context.Context, method, path, contentType string, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+time.Duration(len(body)/bytesPerSecond)*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if contentType == "application/x-ndjson" {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	res, err := r.client.Do(req)
	if err != nil {
		var refused *outbound.RefusedError
		again := !errors.As(err, &refused)
		if u := new(url.Error); errors.As(err, &u) { // it shows the whole URL
			err = fmt.Errorf("%s %s: %w", method, path, u.Err)
		}
		return again, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return true, err
	}
	if res.StatusCode < 300 {
		return false, nil
	}
	e := &refusedError{request: method + " " + path, status: res.StatusCode}
	if to, err := res.Location(); err == nil && res.StatusCode < 400 {
		e.moved = settings.RedactURL(to.String())
	}
	var said struct{ Code, Message string }
	if json.Unmarshal(answer, &said) == nil {
		e.code, e.message = said.Code, outbound.HideSecrets(said.Message, r.secrets)
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, e
	}
	return false, e
}
