package webhook

import (
	"net/url"
	"strings"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/settings"
)

const (
	maxWebhooks = 20 // besides the one of the command line
	maxHeaders  = 200
)

// Webhook is a receiver of notifications. It is immutable once stored.
type Webhook struct {
	UUID    uuid.UUID         `json:"uuid"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"` // by name as given; sent after svc's own
}

// Editable reports whether the API may change the webhook. It may not change the one of the command line, which has the nil UUID.
func (w *Webhook) Editable() bool { return w.UUID != uuid.Nil }

// Shown returns the URL and the headers with their secrets hidden.
func (w *Webhook) Shown() (address string, headers map[string]string) {
	shown := make(map[string]string, len(w.Headers))
	for name, v := range w.Headers {
		if strings.EqualFold(name, authorization) {
			v = redact(v)
		}
		shown[name] = v
	}
	return settings.RedactURL(w.URL), shown
}

const authorization = "Authorization"

// redact hides a credential. It shows whether it is a bearer token.
func redact(credential string) string {
	if token, ok := strings.CutPrefix(credential, "Bearer "); ok {
		return "Bearer " + settings.Redact(token)
	}
	return settings.Redact(credential)
}

// Launched returns the webhook of the command line.
func Launched(address, credential string) (*Webhook, error) {
	w := &Webhook{URL: address, Headers: map[string]string{}}
	if credential != "" {
		w.Headers[authorization] = credential
	}
	return w, w.check()
}

// check validates the URL and the headers (invalid_webhook_url, invalid_webhook_headers).
func (w *Webhook) check() error {
	if err := checkURL(w.URL); err != nil {
		return err
	}
	if len(w.Headers) > maxHeaders {
		return apierr.New("invalid_webhook_headers", "A webhook can have at most %d headers, but has %d.", maxHeaders, len(w.Headers))
	}
	for name, v := range w.Headers {
		if !validName(name) {
			return apierr.New("invalid_webhook_headers", "%q in `headers` cannot be the name of an HTTP header. Use letters, digits and -.", name)
		}
		if !validValue(v) {
			return apierr.New("invalid_webhook_headers", "The value of `%s` in `headers` contains line breaks or other control characters, which HTTP headers cannot have.", name)
		}
	}
	return nil
}

func checkURL(address string) error {
	const form = "Use an absolute URL such as `https://example.com/done`."
	if address == "" {
		return apierr.New("invalid_webhook_url", "`url` is missing or empty. "+form)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return apierr.New("invalid_webhook_url", "`url` is %q, which is not an absolute URL. "+form, settings.RedactURL(address))
	}
	if (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() == "" {
		return apierr.New("invalid_webhook_url", "`url` is %q, which has no host. "+form, settings.RedactURL(address))
	}
	return nil
}

// validName reports whether s is a token of RFC 9110, 5.6.2.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// validValue reports whether s has no control characters other than tabs (RFC 9110, 5.5).
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
