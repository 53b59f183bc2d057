package embed

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
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/trace"
)

const (
	defaultTimeout  = 30 * time.Second
	defaultMaxRetry = 60 * time.Second

	maxRetries = 10
	parallel   = 40       // calls of documents in flight, of each embedder
	maxAnswer  = 64 << 20 // bytes of an answer
	maxShown   = 300      // bytes of an answer that an error quotes
)

// caller sends requests to providers, and sends them again where that may help.
type caller struct {
	client   http.Client
	timeout  time.Duration // of one call
	maxRetry time.Duration // the longest wait between two calls, before its random part
	// Those two are replaced in tests.
	sleep  func(ctx context.Context, d time.Duration) error
	random func() float64 // from 0 to below 1
}

// newCaller makes the client of all providers. It connects to addresses that the policy allows, and follows
// no redirect.
func newCaller(o *Options) *caller {
	transport := o.Policy.Transport()
	transport.MaxIdleConnsPerHost = parallel
	c := &caller{
		client: http.Client{
			Transport: transport,
			// What answers with a redirect is not the API that the embedder was configured for.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: o.Timeout, maxRetry: o.MaxRetry,
		sleep:  sleep,
		random: rand.Float64,
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.maxRetry <= 0 {
		c.maxRetry = defaultMaxRetry
	}
	return c
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

// endpoint is where the calls of an embedder go.
type endpoint struct {
	*caller
	url     *url.URL
	key     string            // "" for none
	headers map[string]string // they win over those that every call has
	hint    string            // for the error of a refused call
}

func (c *caller) endpoint(address, key string, headers map[string]string) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, apierr.New(failure, "user error: the URL of the embedder must begin with http:// or https:// and name a host.")
	}
	return &endpoint{caller: c, url: u, key: key, headers: headers}, nil
}

// name is the URL without what may be secret in it.
func (e *endpoint) name() string { return e.url.Scheme + "://" + e.url.Host + e.url.Path }

// redact takes the secrets of the embedder out of a text that others will read.
func (e *endpoint) redact(text string) string {
	secrets := append([]string{e.key, e.url.RawQuery}, outbound.SecretsOf(e.url)...)
	for _, value := range e.headers {
		secrets = append(secrets, value)
		if _, credential, ok := strings.Cut(value, " "); ok {
			secrets = append(secrets, credential)
		}
	}
	return outbound.HideSecrets(text, secrets)
}

// callError is a call that failed.
type callError struct {
	status int // 0 when there is no answer
	final  bool
	wait   time.Duration // added to the wait before the next call
	party  string        // at fault
	reason string
	brief  string // reason without addresses, paths and what a provider said; "": it has none of these
}

func (e *callError) Error() string { return e.party + ": " + e.reason }

// A Failure is the error of an embedder. Its text is for users who see the settings of the embedder. It wraps an *apierr.Error.
type Failure struct {
	shown *apierr.Error
	brief string
}

func (f *Failure) Error() string { return f.shown.Message }

func (f *Failure) Unwrap() error { return f.shown }

// Brief returns the text for users who only search, without the address of the provider and its response.
func (f *Failure) Brief() string { return f.brief }

func (e *callError) user() *Failure {
	f := &Failure{shown: apierr.New(failure, "%s", e.Error()), brief: e.Error()}
	if e.brief != "" {
		f.brief = e.party + ": " + e.brief
	}
	return f
}

const (
	userFault    = "user error"
	runtimeFault = "runtime error"
)

// unusable is the brief reason of an answer that is no vector.
const unusable = "the answer of the provider of the embedder cannot be used."

// post sends a body until there is a response, and returns the response as compact JSON. It retries up to ten times, after waits of
// 1, 10, 100… ms plus up to as much again, unless the response shows that a retry is useless, or the deadline of ctx passes. The
// error is a *callError, or that of ctx if it was cancelled.
func (e *endpoint) post(ctx context.Context, body []byte, stats *Stats) ([]byte, error) {
	waiting := stats.begin()
	defer waiting.end()
	before := min(waiting.retries(), maxRetries)
	base := time.Millisecond
	for range before {
		base = min(base*10, e.maxRetry)
	}
	for tries := before; ; tries++ {
		answer, failed := e.once(ctx, body)
		if failed == nil {
			stats.count(nil)
			return answer, nil
		}
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return nil, err
		}
		stats.count(failed)
		if failed.final || tries == maxRetries || ctx.Err() != nil {
			return nil, failed
		}
		wait := min(base+failed.wait, e.maxRetry)
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(deadline))
		}
		wait += time.Duration(e.random() * float64(wait))
		base = min(base*10, e.maxRetry)
		waiting.retry(failed, tries+1, wait)
		if err := e.sleep(ctx, wait); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil, err
			}
			return nil, failed // the deadline passed
		}
	}
}

// once makes one call.
func (e *endpoint) once(ctx context.Context, body []byte) (answer []byte, failed *callError) {
	ctx, span := trace.Call(ctx, "call to an embedder")
	defer func() {
		span.Set("server.address", e.url.Host)
		span.SetInt("http.request.body.size", len(body))
		if failed != nil {
			span.SetInt("http.response.status_code", failed.status)
			span.Fail(failed.party)
		}
		span.End()
	}()
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &callError{final: true, party: userFault, reason: "the URL of the embedder is not valid."}
	}
	request.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		request.Header.Set("Authorization", "Bearer "+e.key)
	}
	for name, value := range e.headers {
		if strings.EqualFold(name, "Host") {
			request.Host = value
		}
		request.Header.Set(name, value)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return nil, e.unreached(ctx, limited, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, e.unreached(ctx, limited, err)
	}
	switch status := response.StatusCode; {
	case len(read) > maxAnswer:
		return nil, &callError{status: status, final: true, party: runtimeFault,
			reason: fmt.Sprintf("the answer of %s is longer than %d MiB.", e.name(), maxAnswer>>20), brief: unusable}
	case status >= 200 && status < 300:
		var compact bytes.Buffer
		if err := json.Compact(&compact, read); err != nil || !utf8.Valid(read) {
			return nil, &callError{status: status, party: runtimeFault, reason: fmt.Sprintf("the answer of %s is not JSON: %s", e.name(), e.quote(read)), brief: unusable}
		}
		return compact.Bytes(), nil
	default:
		return nil, e.refused(status, read)
	}
}

// refused judges an answer that is no success.
func (e *endpoint) refused(status int, body []byte) *callError {
	f := &callError{status: status, final: true, party: userFault, brief: fmt.Sprintf("the provider of the embedder answered with status %d.", status)}
	said := fmt.Sprintf("%s answered with status %d", e.name(), status)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.reason = said + ": check the apiKey and headers of the embedder." + e.hint
	case status == http.StatusTooManyRequests:
		f.final, f.party, f.wait = false, runtimeFault, 100*time.Millisecond
		f.reason = said + ": it received too many requests."
	case status >= 400 && status < 500:
		f.reason = said + "."
	case status >= 300 && status < 400:
		f.reason = said + ", a redirect, which svc does not follow: set the url of the embedder to the address of the API."
	default:
		f.final, f.party, f.reason = false, runtimeFault, said+"."
	}
	if len(bytes.TrimSpace(body)) > 0 {
		f.reason += " It said: " + e.quote(body)
	}
	return f
}

// unreached judges a call without an answer.
func (e *endpoint) unreached(ctx, limited context.Context, err error) *callError {
	f := &callError{party: runtimeFault, brief: "the provider of the embedder cannot be called."}
	refused := new(outbound.RefusedError)
	switch {
	case errors.As(err, &refused):
		f.final, f.party = true, userFault
		f.reason = fmt.Sprintf("cannot call %s: %v.", e.name(), refused)
	case ctx.Err() != nil:
		f.reason = fmt.Sprintf("%s did not answer before the deadline of the embedding.", e.name())
		f.brief = "the provider of the embedder did not answer before the deadline of the embedding."
	case limited.Err() != nil:
		f.reason = fmt.Sprintf("%s did not answer within %v.", e.name(), e.timeout)
		f.brief = fmt.Sprintf("the provider of the embedder did not answer within %v.", e.timeout)
	default:
		if u := new(url.Error); errors.As(err, &u) { // it shows the whole URL
			err = u.Err
		}
		f.reason = fmt.Sprintf("cannot call %s: %s.", e.name(), e.redact(err.Error()))
	}
	return f
}

// quote shows the start of an answer.
func (e *endpoint) quote(body []byte) string {
	s := e.redact(strings.ToValidUTF8(string(body), "\uFFFD"))
	if len(s) > maxShown {
		n := maxShown
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}
