// Package client calls a running svc over its HTTP API, for shell commands. It retries requests that the server cannot accept yet,
// and waits for tasks.
//
// An import is sent in requests of some MiB each, with at most a number of them waiting in the server. Its checkpoint says how many
// documents the server has accepted and which tasks have not ended. An import that is killed continues from the last checkpoint.
// Documents that were sent but not acknowledged are sent again, which is harmless because they have ids.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"svc/internal/settings"
	"svc/internal/stall"
)

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	key   string
	http  http.Client
	first time.Duration // pause before a request is sent again, which doubles

	// Patience is how long a request is retried while the server cannot be reached or accepts nothing. New sets a few seconds. Until
	// the server has answered once, retries take at most FirstPatience, because the address may be wrong.
	Patience, FirstPatience time.Duration

	reached atomic.Bool // the server has answered once

	// Waiting, if not nil, is called before a retry, with its reason and the pause.
	Waiting func(reason error, pause time.Duration)
}

// New returns a client of the server at an absolute URL. key may be "". own says that the server is on this machine and requested by
// its address. Its certificate may only have its host name.
func New(address, key string, own bool) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		shown := settings.RedactURL(address)
		if _, host, ok := strings.Cut(shown, "@"); ok && !strings.Contains(shown, "://") {
			shown = "…@" + host // before it may be a password
		}
		return nil, fmt.Errorf("%q must be an absolute URL, such as http://localhost:7700", shown)
	}
	c := &Client{base: u, key: key, first: firstPause, Patience: defaultPatience, FirstPatience: firstPatience}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: own}} // and no proxy
	c.http.Transport = &stall.Transport{Next: transport, Limit: stallTime}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key goes nowhere else
	return c, nil
}

// Host is the server's, for messages.
func (c *Client) Host() string { return c.base.Host }

// Error is an answer that is an error.
type Error struct {
	Status     int    // of HTTP
	Code       string `json:"code"` // "" if the answer is not svc's
	Message    string `json:"message"`
	retryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return printable(e.Message) + " (" + printable(e.Code) + ")"
}

// printable replaces control characters, with which a server could control the terminal, and shortens long text.
func printable(s string) string {
	const limit = 2000
	s = strings.ToValidUTF8(s[:min(len(s), limit)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

const (
	// defaultPatience is for a user who waits for the answer.
	defaultPatience = 5 * time.Second

	// firstPatience is enough for a server that is starting.
	firstPatience = 10 * time.Second

	firstPause  = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// stallTime is how long no data of a request or an answer may move. It is a variable for tests.
var stallTime = 5 * time.Minute

// CallOnce is Call for requests that must not be repeated: it fails where Call would retry.
func (c *Client) CallOnce(ctx context.Context, method, path string, body, out any) error {
	b, err := encode(body)
	if err != nil {
		return err
	}
	return c.once(ctx, method, path, "application/json", b, out)
}

func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.Marshal(body)
}

// Call sends a request with a JSON body (nil: none) and decodes the answer into out (nil: ignored). It retries requests that the
// server cannot accept yet, or that get no answer, so requests must be repeatable.
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	b, err := encode(body)
	if err != nil {
		return err
	}
	return c.send(ctx, method, path, "application/json", b, out)
}

// send is Call with a body of any type.
func (c *Client) send(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	start := time.Now()
	for pause := c.first; ; pause = min(2*pause, longestWait) {
		err := c.once(ctx, method, path, contentType, body, out)
		patience := c.Patience
		if !c.reached.Load() {
			patience = min(patience, c.FirstPatience)
		}
		if err == nil || ctx.Err() != nil || !temporary(err) || time.Since(start)+pause > patience {
			return err
		}
		wait := pause
		var refused *Error
		if errors.As(err, &refused) && refused.retryAfter > 0 {
			wait = min(refused.retryAfter, longestWait)
		}
		if c.Waiting != nil {
			c.Waiting(err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// temporary reports whether a later repetition of the request may have another result.
func temporary(err error) bool {
	var refused *Error
	if !errors.As(err, &refused) {
		var unread *unreadable
		var large *tooLargeError
		return !errors.As(err, &unread) && !errors.As(err, &large)
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return true
	}
	return refused.Status == http.StatusInsufficientStorage || refused.Code == "no_space_left_on_device"
}

// maxAnswer is the largest answer that is read, and the largest document, in bytes. Servers take no larger documents by default. It is a
// variable for tests.
var maxAnswer = 128 << 20

// tooLargeError is an answer with more bytes than maxAnswer, or a document.
type tooLargeError struct{ what string }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s has more than %d MiB", e.what, maxAnswer>>20)
}

// unreadable is the error of an answer that cannot be decoded.
type unreadable struct{ err error }

func (e *unreadable) Error() string { return "the answer cannot be read: " + e.err.Error() }

func (c *Client) once(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	path, query, _ := strings.Cut(path, "?")
	u := c.base.JoinPath(path)
	u.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return &unreadable{err}
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if failed := new(url.Error); errors.As(err, &failed) {
			err = failed.Err // without the URL, which may hold a secret
		}
		if !c.reached.Load() {
			return fmt.Errorf("no server answers at %s://%s (%w); check the address, and that the server runs", c.base.Scheme, c.base.Host, err)
		}
		return fmt.Errorf("%s does not answer: %w", c.base.Host, err)
	}
	c.reached.Store(true)
	defer response.Body.Close()
	if e, ok := out.(*Enqueued); ok {
		e.File, e.Directory = response.Header.Get("Svc-File"), response.Header.Get("Svc-Directory")
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(maxAnswer)+1))
	if err != nil {
		return fmt.Errorf("%s interrupted its answer: %w", c.base.Host, err)
	}
	if len(answer) > maxAnswer {
		return &tooLargeError{"the answer of " + c.base.Host}
	}
	if response.StatusCode >= 300 {
		refused := &Error{}
		_ = json.Unmarshal(answer, refused) // another server's answer may be anything
		refused.Status = response.StatusCode
		if s, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
			refused.retryAfter = time.Duration(s) * time.Second
		}
		return refused
	}
	if out == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &unreadable{err}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Task has the used members of a task.
type Task struct {
	UID        int64           `json:"uid"`
	IndexUID   string          `json:"indexUid"`
	Status     string          `json:"status"`
	Type       string          `json:"type"`
	Error      *Error          `json:"error"`
	Details    json.RawMessage `json:"details"`
	EnqueuedAt string          `json:"enqueuedAt"`
	Duration   string          `json:"duration"` // ISO 8601
	Parked     *Parked         `json:"parked"`
}

// Parked tells why a task is paused.
type Parked struct {
	Reason *Error `json:"reason"`
	Since  string `json:"since"`
	Tries  int    `json:"tries"`
}

// Enqueued is the answer to a request that becomes a task.
type Enqueued struct {
	TaskUID    int64  `json:"taskUid"`
	EnqueuedAt string `json:"enqueuedAt"`

	File      string `json:"-"` // path on the server of the file that the task creates; "" if the server does not send it
	Directory string `json:"-"` // directory on the server of the file that the task creates; "" if the server does not send it
}

// Ended reports whether nothing of the task changes any more.
func (t *Task) Ended() bool { return t.Status != "enqueued" && t.Status != "processing" }

// Err returns why the task failed, or nil.
func (t *Task) Err() error {
	switch {
	case t.Error != nil:
		return fmt.Errorf("task %d failed: %w", t.UID, t.Error)
	case t.Status != "succeeded":
		return fmt.Errorf("task %d is %s", t.UID, t.Status)
	}
	return nil
}

// Task returns a task as it is now.
func (c *Client) Task(ctx context.Context, uid int64) (*Task, error) {
	t := new(Task)
	return t, c.Call(ctx, http.MethodGet, "/tasks/"+strconv.FormatInt(uid, 10), nil, t)
}

// Wait waits for the end of a task, however it ends.
func (c *Client) Wait(ctx context.Context, uid int64) (*Task, error) {
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, time.Second/2) {
		t, err := c.Task(ctx, uid)
		if err != nil || t.Ended() {
			return t, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// Do sends a request that becomes a task, and waits until that has succeeded.
func (c *Client) Do(ctx context.Context, method, path string, body any) (*Task, error) {
	t, _, err := c.Make(ctx, method, path, body)
	return t, err
}

// Make is Do that also returns the first response.
func (c *Client) Make(ctx context.Context, method, path string, body any) (*Task, Enqueued, error) {
	var e Enqueued
	if err := c.CallOnce(ctx, method, path, body, &e); err != nil {
		return nil, e, err
	}
	t, err := c.Wait(ctx, e.TaskUID)
	if err == nil {
		err = t.Err()
	}
	return t, e, err
}
