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
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/outbound"
	"svc/internal/trace"
)

const (
	idlePerRemote = 64       // connections to one remote that are kept for the next request
	maxAnswer     = 64 << 20 // bytes of an answer that are read
	quotedBytes   = 512      // of what a remote answered, in messages
)

// newTransport returns what all requests to remotes go through. It keeps connections. Compressed answers are for readAnswer.
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
	stream      func() (io.ReadCloser, error) // instead of body, sent compressed; nil: there is none
	into        io.Writer                     // gets what a remote answers that accepts the request; nil: it is in the reply
}

// reply is the answer of a remote that has accepted a request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do makes a request once. Its error is one of the codes remote_…; again says that another try may succeed.
func (n *Node) do(ctx context.Context, name string, r *Remote, q *request) (got *reply, again bool, err *apierr.Error) {
	ctx, span := trace.Call(ctx, "request to a remote")
	defer func() {
		span.Set("svc.remote", name)
		span.Set("url.path", q.Path)
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
		return nil, false, apierr.New("remote_could_not_send_request", "The remote `%s` cannot be asked: its url is no address.", name)
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
	if q.Search && !strings.ContainsFunc(req.URL.Host, func(c rune) bool { return c > unicode.MaxASCII }) { // which wires do not translate
		client = &n.searched
	}
	res, e := client.Do(req)
	if e != nil {
		return nil, !errors.Is(e, context.Canceled), failure(ctx, name, e)
	}
	defer res.Body.Close()
	var account *budget.Account
	if q.Search {
		account = budget.Of(ctx)
	}
	answer, e := readAnswer(res, q.into, account)
	switch {
	case errors.Is(e, budget.ErrFull):
		return nil, false, apierr.New(noRoom, "There is no room for the answer of the remote `%s`.", name)
	case e != nil:
		err := failure(ctx, name, e)
		if err.Code == "remote_could_not_send_request" {
			err.Code = "remote_bad_response"
		}
		return nil, true, err
	case len(answer) > maxAnswer:
		return nil, false, apierr.New("remote_bad_response", "The answer of the remote `%s` is larger than %d bytes.", name, maxAnswer)
	}
	return &reply{res.StatusCode, res.Header, answer}, res.StatusCode >= 500, refusal(name, res.StatusCode, answer)
}

var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// noRoom is the code of an answer for which the account of its request has none. Nobody sees it.
const noRoom apierr.Code = "too_many_search_requests"

// readAnswer reads an answer to its end, or a byte more than is allowed: that to an accepted request into a writer, unless it is nil.
// There is room behind the answer for who reads some bytes over its end. All of that is charged to an account, which may be nil.
func readAnswer(res *http.Response, into io.Writer, account *budget.Account) ([]byte, error) {
	var from io.Reader = res.Body
	room := res.ContentLength
	if res.Header.Get("Content-Encoding") == "gzip" {
		z := unzippers.Get().(*gzip.Reader)
		defer unzippers.Put(z)
		if err := z.Reset(res.Body); err != nil {
			return nil, fmt.Errorf("the compressed answer cannot be read: %w", err)
		}
		from, room = z, 4*room
	}
	from = io.LimitReader(from, maxAnswer+1)
	if into != nil && res.StatusCode < 300 {
		n, err := io.Copy(into, from)
		if err == nil && n > maxAnswer {
			err = fmt.Errorf("it is larger than %d bytes", maxAnswer)
		}
		return nil, err
	}
	const (
		beyond    = 64
		firstRead = 16 << 10
	)
	if room <= 0 || room > maxAnswer {
		room = firstRead
	}
	answer := make([]byte, 0, room+bytes.MinRead+beyond)
	if err := account.Hold(int64(cap(answer))); err != nil {
		return nil, err
	}
	for {
		if cap(answer)-len(answer) < bytes.MinRead+beyond {
			held := cap(answer)
			if err := account.Hold(int64(held)); err != nil { // before it is there
				return nil, err
			}
			answer = slices.Grow(answer, held)
			if err := account.Hold(int64(cap(answer) - 2*held)); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(answer[len(answer) : cap(answer)-beyond])
		answer = answer[:len(answer)+n]
		if err == io.EOF {
			return answer, nil
		}
		if err != nil {
			_ = account.Hold(-int64(cap(answer)))
			return nil, err
		}
	}
}

// failure is the error of a request that has no answer.
func failure(ctx context.Context, name string, err error) *apierr.Error {
	var refused *outbound.RefusedError
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return apierr.New("remote_could_not_send_request", "The remote `%s` cannot be asked: %v.", name, refused)
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout() && !connecting(err):
		return apierr.New("remote_timeout", "The remote `%s` did not answer in time.", name)
	}
	if u := new(url.Error); errors.As(err, &u) { // it shows the whole URL
		err = u.Err
	}
	return apierr.New("remote_could_not_send_request", "The remote `%s` cannot be reached: %v.", name, err)
}

// connecting reports whether err is of a connection that was never made.
func connecting(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// refusal is the error of an answer with a status, nil when it is none.
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
		return fmt.Sprintf("status %d, %s: %s", status, said.Code, said.Message[:min(len(said.Message), quotedBytes)])
	}
	return fmt.Sprintf("status %d", status)
}
