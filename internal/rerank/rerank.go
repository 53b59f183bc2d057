// Package rerank asks a service in which order hits suit a user. It speaks the form of Cohere's v1 reranking, which
// others understand, too.
package rerank

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
	"time"
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/jsontext"
	"svc/internal/outbound"
)

// DefaultURL is Cohere's own service.
const DefaultURL = "https://api.cohere.ai/v1/rerank"

const (
	model = "rerank-english-v3.0"

	callTime   = 30 * time.Second
	maxWait    = time.Minute // between two calls, before its random part
	maxRetries = 10
	maxAnswer  = 8 << 20 // bytes
)

// Client calls the service.
type Client struct {
	url  string
	key  string
	http http.Client

	sleep  func(ctx context.Context, d time.Duration) error // replaced in tests
	random func() float64                                   // from 0 to below 1; replaced in tests
}

// New makes a client of the service at an http or https URL.
func New(address, key string, policy outbound.Policy) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http:// or https:// URL with a host", address)
	}
	return &Client{
		url: address, key: key,
		http: http.Client{
			Transport:     policy.Transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
		},
		sleep: sleep, random: rand.Float64,
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed is a call that failed.
type failed struct {
	code  apierr.Code
	final bool          // another call would not help
	wait  time.Duration // added to the wait before the next call
	what  string
}

// Order returns the indexes of hits, each a JSON text, in the order in which they suit a user. It may leave some out. Where
// the deadline of ctx passes before there is an answer it returns nil. Errors are *apierr.Error
// (remote_…, too_many_search_requests), ctx's when it was cancelled, or budget.ErrFull: the account of ctx is charged for the request.
func (c *Client) Order(ctx context.Context, userContext, query string, hits [][]byte) ([]int, error) {
	asked := "User context: " + userContext
	if query != "" {
		asked += "\nQuery: " + query
	}
	account, size := budget.Of(ctx), bodyBytes(asked, hits)
	if err := account.Hold(size); err != nil {
		return nil, err
	}
	defer func() { _ = account.Hold(-size) }() // giving back never fails
	body := appendBody(make([]byte, 0, size), asked, hits)
	base := time.Millisecond
	for tries := 0; ; tries++ {
		order, f := c.once(ctx, body, len(hits))
		if f == nil {
			return order, nil
		}
		switch err := ctx.Err(); {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if f.final || tries == maxRetries {
			return nil, apierr.New(f.code, "The hits could not be personalized: %s", f.what)
		}
		wait := min(base+f.wait, maxWait)
		wait += time.Duration(c.random() * float64(wait))
		base = min(base*10, maxWait)
		if err := c.sleep(ctx, wait); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return nil, nil
			}
			return nil, err
		}
	}
}

// The parts of a request between its texts.
const (
	beforeQuery = `{"query":`
	beforeHits  = `,"documents":[`
	afterHits   = `],"model":"` + model + `"}`
)

// bodyBytes returns an upper bound of the length of what appendBody appends, near it if hits are valid UTF-8. Documents are texts in
// the request: their quotes and backslashes take twice the space.
func bodyBytes(query string, hits [][]byte) int64 {
	n := len(beforeQuery) + len(beforeHits) + len(afterHits) + quotedBytes([]byte(query))
	for _, h := range hits {
		n += quotedBytes(h) + len(",")
	}
	return int64(n)
}

// quotedBytes returns an upper bound of the length of a text as a JSON string.
func quotedBytes(text []byte) int {
	n := len(text) + jsontext.EscapeBytes(text) + len(`""`)
	if !utf8.Valid(text) {
		n += (utf8.RuneLen(utf8.RuneError) - 1) * len(text)
	}
	return n
}

// appendBody appends the body of a request.
func appendBody(dst []byte, query string, hits [][]byte) []byte {
	dst = jsontext.AppendQuoted(append(dst, beforeQuery...), query)
	dst = append(dst, beforeHits...)
	for i, h := range hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(dst, h)
	}
	return append(dst, afterHits...)
}

// once makes one call.
func (c *Client) once(ctx context.Context, body []byte, hits int) ([]int, *failed) {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, &failed{code: "remote_could_not_send_request", final: true, what: "the URL of the service is not valid."}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.key)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreached(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, c.unreached(err)
	}
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return read(answer, hits)
	case status == http.StatusUnauthorized:
		return nil, &failed{code: "remote_invalid_api_key", final: true, what: "the service refuses the key of --experimental-personalization-api-key."}
	case status == http.StatusTooManyRequests:
		return nil, &failed{code: "too_many_search_requests", wait: 100 * time.Millisecond, what: "the service received too many requests. Try again later."}
	case status == http.StatusBadRequest:
		return nil, &failed{code: "remote_bad_request", final: true, what: "the service does not understand the request (status 400)."}
	case status >= 500:
		return nil, &failed{code: "remote_remote_error", what: fmt.Sprintf("the service failed with status %d.", status)}
	default:
		return nil, &failed{code: "remote_bad_response", final: true, what: fmt.Sprintf("the service answered with status %d.", status)}
	}
}

// unreached judges a call without an answer. The URL may hold secrets: it is not shown.
func (c *Client) unreached(err error) *failed {
	f := &failed{code: "remote_could_not_send_request", what: "the service did not answer."}
	if refused := new(outbound.RefusedError); errors.As(err, &refused) {
		f.final, f.what = true, "its address is not allowed. To allow it, start the server with its network in --experimental-allowed-ip-networks."
	}
	return f
}

// read takes the order out of an answer.
func read(answer []byte, hits int) ([]int, *failed) {
	bad := func(final bool, what string) *failed {
		return &failed{code: "remote_bad_response", final: final, what: "the answer of the service " + what}
	}
	var a struct {
		Results []struct {
			Index *int `json:"index"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, bad(false, "cannot be read.")
	}
	if a.Results == nil {
		return nil, bad(true, "has no `results`.")
	}
	order := make([]int, 0, hits)
	seen := make([]bool, hits)
	for _, r := range a.Results {
		switch {
		case r.Index == nil || *r.Index < 0 || *r.Index >= hits:
			return nil, bad(true, "names a hit that was not sent to it.")
		case seen[*r.Index]:
			return nil, bad(true, "names a hit twice.")
		}
		seen[*r.Index] = true
		order = append(order, *r.Index)
	}
	return order, nil
}
