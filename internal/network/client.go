package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/outbound"
	"svc/internal/search"
	"svc/internal/trace"
)

const (
	idlePerRemote = 64       // connections to one remote that are kept for the next request
	maxAnswer     = 64 << 20 // largest answer in bytes; see Message.Most
	maxRefusal    = 64 << 10 // largest answer that refuses a request
	quotedBytes   = 512      // of what a remote answered, in messages
	quotedCode    = 64
)

// newTransport returns the transport of all requests to remotes. It keeps connections open. readAnswer decompresses the responses.
func newTransport(allowed outbound.Policy) *http.Transport {
	t := allowed.Transport()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.DisableCompression = 0, idlePerRemote, true
	return t
}

// request is one for a remote.
type request struct {
	*Message
	key         *string // nil: none
	headers     map[string]string
	contentType string // "": there is no body
	body        []byte
	stream      func() (io.ReadCloser, error) // sent compressed instead of body; nil: none
	into        io.Writer                     // gets what a remote answers that accepts the request; nil: it is in the reply
}

// reply is the answer of a remote that accepted a request. The body of an answer to a search may still be compressed.
type reply struct {
	status int
	header http.Header
	body   []byte
	zipped bool
}

// do sends a request once. Its error is one of the codes remote_…. again says that another try may succeed.
func (n *Node) do(ctx context.Context, name string, r *Remote, q *request) (got *reply, again bool, err *apierr.Error) {
	ctx, span := trace.Call(ctx, "request to a remote")
	path, _, _ := strings.Cut(q.Path, "?") // a client's parameters are its own
	defer func() {
		span.Set("svc.remote", name)
		span.Set("url.path", path)
		if err != nil {
			err.Message = outbound.HideSecrets(err.Message, r.secrets())
			span.Fail(string(err.Code))
		}
		span.End()
	}()
	var body io.Reader = bytes.NewReader(q.body)
	if q.stream != nil {
		stream, e := compressed(q.stream)
		if e != nil {
			return nil, true, apierr.New("remote_could_not_send_request", "The remote `%s` cannot be sent documents: %v.", name, e)
		}
		defer stream.Close()
		body = stream
	}
	req, e := http.NewRequestWithContext(ctx, q.Method, r.trimmed()+q.Path, body)
	if e != nil {
		return nil, false, apierr.New("remote_could_not_send_request", "The remote `%s` cannot be called: its url is not valid.", name)
	}
	if q.contentType != "" {
		req.Header.Set("Content-Type", q.contentType)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	if q.stream != nil {
		req.Header.Set("Content-Encoding", "gzip")
	}
	for k, v := range q.headers {
		req.Header.Set(k, v)
	}
	if q.key != nil {
		req.Header.Set("Authorization", "Bearer "+*q.key)
	}
	trace.Pass(ctx, req.Header)
	client := &n.http
	if q.Quick && !strings.ContainsFunc(req.URL.Host, func(c rune) bool { return c > unicode.MaxASCII }) { // which wires do not translate
		client = &n.searched
	}
	res, e := client.Do(req)
	if e != nil {
		again := !errors.Is(e, context.Canceled) && !errors.As(e, new(*outbound.RefusedError))
		return nil, again, n.failure(ctx, name, r, q, e)
	}
	defer res.Body.Close()
	var account *budget.Account
	if q.Quick {
		account = budget.Of(ctx)
	}
	most := q.Most
	if res.StatusCode >= 300 {
		most = maxRefusal
	}
	zipped := q.Quick && res.StatusCode < 300 && res.Header.Get("Content-Encoding") == "gzip"
	answer, e := readAnswer(res, q.into, most, zipped, account)
	switch {
	case errors.Is(e, budget.ErrFull):
		return nil, false, apierr.New(noRoom, "There is no memory for the answer of the remote `%s`.", name)
	case e != nil:
		err := n.failure(ctx, name, r, q, e)
		if err.Code == "remote_could_not_send_request" {
			err.Code = "remote_bad_response"
		}
		return nil, true, err
	case len(answer) > most && res.StatusCode < 300:
		return nil, false, apierr.New("remote_bad_response", "The answer of the remote `%s` is larger than %d bytes.", name, most)
	}
	return &reply{res.StatusCode, res.Header, answer, zipped}, res.StatusCode >= 500, refusal(name, res.StatusCode, answer[:min(len(answer), most)])
}

var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// noRoom is the internal code of a response that exceeds the memory account of its request.
const noRoom apierr.Code = "too_many_search_requests"

// readAnswer reads a response to its end, or to one byte more than is allowed. If into is not nil, it gets the body of a response to
// an accepted request. The result has spare capacity for parsers that read beyond its end. All of its memory is charged to an
// account, which may be nil. If raw is set, the response stays compressed.
func readAnswer(res *http.Response, into io.Writer, most int, raw bool, account *budget.Account) ([]byte, error) {
	var from io.Reader = res.Body
	room := res.ContentLength
	if !raw && res.Header.Get("Content-Encoding") == "gzip" {
		z := unzippers.Get().(*gzip.Reader)
		defer unzippers.Put(z)
		if err := z.Reset(res.Body); err != nil {
			return nil, fmt.Errorf("the compressed answer cannot be read: %w", err)
		}
		from, room = z, 4*room
	}
	from = io.LimitReader(from, int64(most)+1)
	if into != nil && res.StatusCode < 300 {
		n, err := io.Copy(into, from)
		if err == nil && n > int64(most) {
			err = fmt.Errorf("it is larger than %d bytes", most)
		}
		return nil, err
	}
	return readAll(from, room, most, account.Hold, nil)
}

// readAll reads up to most bytes. room is the expected number, or 0. hold charges each buffer before it is allocated. yield is called
// before each piece is read, unless it is nil.
func readAll(from io.Reader, room int64, most int, hold func(int64) error, yield func() error) ([]byte, error) {
	const (
		beyond    = 64
		firstRead = 16 << 10
		piece     = 64 << 10
	)
	if room <= 0 || room > int64(most) {
		room = min(firstRead, int64(most))
	}
	if err := hold(room + bytes.MinRead + beyond); err != nil {
		return nil, err
	}
	answer := make([]byte, 0, room+bytes.MinRead+beyond)
	for {
		if cap(answer)-len(answer) < bytes.MinRead+beyond {
			grown := 2 * cap(answer)
			if err := hold(int64(grown)); err != nil {
				return nil, err
			}
			held := cap(answer)
			answer = append(make([]byte, 0, grown), answer...)
			if err := hold(-int64(held)); err != nil {
				return nil, err
			}
		}
		if yield != nil {
			if err := yield(); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(answer[len(answer):min(cap(answer)-beyond, len(answer)+piece)])
		answer = answer[:len(answer)+n]
		if err == io.EOF {
			return answer, nil
		}
		if err != nil {
			_ = hold(-int64(cap(answer))) // a release never fails
			return nil, err
		}
	}
}

// unzipped returns the decompressed body.
func (got *reply) unzipped(most int, reading *search.Reading) ([]byte, error) {
	if !got.zipped {
		return got.body, nil
	}
	z := unzippers.Get().(*gzip.Reader)
	defer unzippers.Put(z)
	if err := z.Reset(bytes.NewReader(got.body)); err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	body, err := readAll(io.LimitReader(z, int64(most)+1), 4*int64(len(got.body)), most, reading.Charge, reading.Wait)
	switch {
	case err != nil && reading.Ended() == nil:
		err = fmt.Errorf("it cannot be decompressed: %w", err)
	case err == nil && len(body) > most:
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return body, err
}

// failure returns the error of a request without a response. For a search it omits the address of the remote, which users must not
// learn; the log has it.
func (n *Node) failure(ctx context.Context, name string, r *Remote, q *request, err error) *apierr.Error {
	var refused *outbound.RefusedError
	var network net.Error
	what := "cannot be reached"
	switch {
	case errors.As(err, &refused):
		what, err = "cannot be called", refused // which names the option that allows its address
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout() && !connecting(err):
		return apierr.New("remote_timeout", "The remote `%s` did not answer in time.", name)
	}
	if u := new(url.Error); errors.As(err, &u) { // it shows the whole URL
		err = u.Err
	}
	if q.Quick {
		if n.availability.mayLog(name) {
			n.o.Logger.Warn("a remote cannot be searched", "remote", name, "error", outbound.HideSecrets(err.Error(), r.secrets()))
		}
		return apierr.New("remote_could_not_send_request", "The remote `%s` %s. The log of this instance has the cause.", name, what)
	}
	return apierr.New("remote_could_not_send_request", "The remote `%s` %s: %v.", name, what, err)
}

// connecting reports whether err is of a connection that was never made.
func connecting(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// refusal returns the error of a response with an error status, or nil.
func refusal(name string, status int, body []byte) *apierr.Error {
	switch {
	case status < 300:
		return nil
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return apierr.New("remote_invalid_api_key", "The remote `%s` does not accept the key that the network has for it (%s).", name, quoted(status, body))
	case status >= 500:
		return apierr.New("remote_remote_error", "The remote `%s` failed (%s).", name, quoted(status, body))
	case status >= 400:
		return apierr.New("remote_bad_request", "The remote `%s` refused the request (%s).", name, quoted(status, body))
	}
	return apierr.New("remote_bad_response", "The remote `%s` redirects elsewhere (status %d). Give its own address as `url`.", name, status)
}

// quoted tells what a remote answered.
func quoted(status int, body []byte) string {
	var said struct{ Code, Message string }
	if json.Unmarshal(body, &said) == nil && said.Code != "" {
		return fmt.Sprintf("status %d, %s: %s", status, beginning(said.Code, quotedCode), beginning(said.Message, quotedBytes))
	}
	return fmt.Sprintf("status %d", status)
}

// beginning returns at most this many bytes of s, without a broken character.
func beginning(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
