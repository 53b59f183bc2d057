package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/outbound"
)

// How long things may take. (Variables of Providers, so that tests can lower them.)
const (
	silenceLimit      = 2 * time.Minute  // a provider that says nothing
	conversationLimit = 15 * time.Minute // all rounds together
	retryLimit        = 30 * time.Second // the wait that a Retry-After asks for
	lingerLimit       = 5 * time.Second  // a provider that has said all, but does not end its answer
)

const (
	maxTries   = 3        // of one call, if the provider says when to retry
	maxRefusal = 64 << 10 // bytes that are read of an answer that is no stream
	maxShown   = 300      // bytes of it that an error quotes
)

// Providers calls providers. There is one per process: it owns the connections. It is safe for concurrent use.
type Providers struct {
	client                               http.Client
	silence, conversation, retry, linger time.Duration
	now                                  func() time.Time
}

// NewProviders returns what calls the providers that the policy allows.
func NewProviders(policy outbound.Policy) *Providers {
	t := policy.Transport()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	t.DisableCompression = true // a compressed stream comes in lumps
	t.ReadBufferSize, t.WriteBufferSize = readBytes, readBytes
	return &Providers{
		client: http.Client{
			Transport: t,
			// What answers with a redirect is not the API that the workspace was configured for.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		silence: silenceLimit, conversation: conversationLimit, retry: retryLimit, linger: lingerLimit, now: time.Now,
	}
}

// Close gives up idle connections.
func (p *Providers) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// endpoint is the address for the calls of a workspace, with the headers that identify the account.
type endpoint struct {
	url     *url.URL
	header  http.Header
	secrets []string
}

func (s *Settings) endpoint() (*endpoint, *failure) {
	u, err := url.Parse(s.baseURL())
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, transportFailure("The `baseUrl` of the workspace must begin with http:// or https:// and name a host.")
	}
	textOf := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	e := &endpoint{header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"svc"}}}
	key := textOf(s.APIKey)
	e.secrets = append(outbound.SecretsOf(u), key)
	if s.Source == Azure {
		e.url = u.JoinPath("openai", "deployments", url.PathEscape(textOf(s.DeploymentID)), "chat", "completions")
		query := e.url.Query()
		query.Set("api-version", textOf(s.APIVersion))
		e.url.RawQuery = query.Encode()
		e.header.Set("api-key", key)
		return e, nil
	}
	e.url = u.JoinPath("chat", "completions")
	if key != "" || u.User == nil { // without a key, the user in the URL authenticates
		e.header.Set("Authorization", "Bearer "+key)
	}
	e.header.Set("OpenAI-Beta", "assistants=v2")
	if s.Source == OpenAI {
		for name, v := range map[string]*string{"OpenAI-Organization": s.OrgID, "OpenAI-Project": s.ProjectID} {
			if v != nil {
				e.header.Set(name, *v)
			}
		}
	}
	return e, nil
}

// name returns the address without possible secrets. It is for the log: clients need not know the address.
func (e *endpoint) name() string { return e.url.Scheme + "://" + e.url.Host + e.url.Path }

// places are texts that tell where the provider is.
func (e *endpoint) places() []string {
	all := []string{e.name(), e.url.Host}
	if host := e.url.Hostname(); strings.Contains(host, ".") || strings.Contains(host, ":") { // a single word may be one of a sentence
		all = append(all, host)
	}
	return all
}

// Why a call was given up by the caller.
var (
	errSilence = errors.New("the provider stopped sending")
	errTooLong = errors.New("the conversation takes too long")
)

// streamTypes are the content types of streams. Not all providers say what they send.
var streamTypes = []string{"text/event-stream", "text/plain", "application/octet-stream", ""}

// answerStream is an answer on its way. Every wait for more of it has an end.
type answerStream struct {
	body    io.ReadCloser
	timer   *time.Timer // cancels the call
	silence time.Duration
	ctx     context.Context // of the call
	cancel  context.CancelCauseFunc
}

func (s *answerStream) Read(b []byte) (int, error) {
	s.timer.Reset(s.silence)
	n, err := s.body.Read(b)
	s.timer.Stop() // while the reader works, the provider is not waited for
	return n, err
}

func (s *answerStream) Close() error {
	s.timer.Stop()
	err := s.body.Close()
	s.cancel(nil)
	return err
}

// call sends a request until the response is a stream. It retries if the provider asks for that with Retry-After, and soon. The error
// is a *failure, or that of ctx.
func (p *Providers) call(ctx context.Context, e *endpoint, body []byte) (*answerStream, error) {
	waited := time.Duration(0)
	for tries := 1; ; tries++ {
		s, after, err := p.once(ctx, e, body)
		if err == nil || after < 0 || tries == maxTries || waited+after > p.retry {
			return s, err
		}
		waited += after
		t := time.NewTimer(after)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// once makes one call. after is the time before a retry, and negative for no retry.
func (p *Providers) once(ctx context.Context, e *endpoint, body []byte) (_ *answerStream, after time.Duration, _ error) {
	limited, cancel := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(limited, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		cancel(nil)
		return nil, -1, transportFailure("The `baseUrl` of the workspace is not a valid URL.")
	}
	request.Header = e.header.Clone()
	s := &answerStream{silence: p.silence, ctx: limited, cancel: cancel}
	s.timer = time.AfterFunc(p.silence, func() { cancel(errSilence) })
	response, err := p.client.Do(request)
	s.timer.Stop()
	if err != nil {
		err = p.broken(limited, e, err)
		cancel(nil)
		return nil, -1, err
	}
	s.body = response.Body
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode == http.StatusOK && slices.Contains(streamTypes, kind) {
		return s, 0, nil
	}
	defer s.Close()
	read, err := io.ReadAll(io.LimitReader(s, maxRefusal))
	if err != nil {
		return nil, -1, p.broken(limited, e, err)
	}
	return nil, p.retryAfter(response), refusal(e, response.StatusCode, read)
}

// refusal judges an answer that is no stream.
func refusal(e *endpoint, status int, body []byte) *failure {
	if f := readFailure(body); f != nil {
		return f
	}
	if status == http.StatusOK {
		return unparsable("The provider did not answer with a stream.").at(e).because("it said: %s", quote(body))
	}
	f := &failure{kind: unreadableKind, message: fmt.Sprintf("The provider answered with status %d", status)}
	switch {
	case status >= 300 && status < 400:
		f.message += ", a redirect, which svc does not follow: set `baseUrl` to the address of the API."
	case len(bytes.TrimSpace(body)) > 0:
		f.message += "."
		f.because("it said: %s", quote(body))
	default:
		f.message += "."
	}
	return f.at(e)
}

// quote shows the start of an answer.
func quote(body []byte) string {
	s := strings.ToValidUTF8(string(body), "\uFFFD")
	if len(s) > maxShown {
		n := maxShown
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}

// retryAfter returns when the provider wants to be called again, negative when it does not say so.
func (p *Providers) retryAfter(r *http.Response) time.Duration {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		return -1
	}
	text := r.Header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(p.now()), 0)
	}
	return -1
}

// broken classifies the error of a call, or of a response that broke off. ctx is that of the call.
func (p *Providers) broken(ctx context.Context, e *endpoint, err error) error {
	refused := new(outbound.RefusedError)
	switch cause := context.Cause(ctx); {
	case errors.As(err, &refused):
		return transportFailure("The provider cannot be called: its address is not allowed.").at(e).because("%v", refused)
	case cause == errSilence:
		return transportFailure("The provider sent nothing for %v.", p.silence).at(e)
	case cause != nil:
		return cause
	}
	if u := new(url.Error); errors.As(err, &u) { // it shows the whole URL
		err = u.Err
	}
	return transportFailure("The provider cannot be reached, or closed the connection.").at(e).because("%v", err)
}
