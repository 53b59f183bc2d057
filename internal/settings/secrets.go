package settings

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Redact hides a secret but for its first bytes, fewer the shorter it is. What it made before stays as it is.
func Redact(secret string) string {
	keep, marks := 5, "XXXXXX..."
	switch n := len(secret); {
	case n <= keep+len(marks) && strings.HasSuffix(secret, "XXX..."):
		return secret
	case n < 10:
		keep, marks = 0, "XXX..."
	case n < 20:
		keep, marks = 2, "XXXX..."
	case n < 30:
		keep, marks = 3, "XXXXX..."
	}
	for keep > 0 && !utf8.RuneStart(secret[keep]) {
		keep--
	}
	return secret[:keep] + marks
}

// redactAll hides the values of headers.
func redactAll(headers map[string]string) map[string]string {
	if headers == nil {
		return nil
	}
	shown := make(map[string]string, len(headers))
	for name, v := range headers {
		shown[name] = Redact(v)
	}
	return shown
}

// echoHeaders shows headers as sent, with their values redacted.
func echoHeaders(v value) any {
	members, err := v.members()
	if err != nil {
		return v.raw
	}
	o := make(object, len(members))
	for i, m := range members {
		o[i] = pair{m.key, m.raw}
		if text, err := m.text(); err == nil {
			o[i].value = Redact(text)
		}
	}
	return o
}

// OpenAIURL is where openAi embedders without a url go.
const OpenAIURL = "https://api.openai.com/v1/embeddings"

// Origin is what has to stay the same of a URL for secrets to be sent to it that were given for another: scheme, host and
// port, in one spelling.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port
}

// origin is where the secrets of an embedder go. A header can name another host behind the same address.
func (e *Embedder) origin() string {
	address := e.URL
	if address == "" && e.Source == OpenAI {
		address = OpenAIURL
	}
	origin := Origin(address)
	for name, v := range e.Headers {
		if strings.EqualFold(name, "Host") {
			origin += " " + strings.ToLower(v)
		}
	}
	return origin
}

// keepSecrets refuses a change that would send what is stored of secrets to another host than they were given for,
// unless the payload gives them anew.
func keepSecrets(old, e *Embedder, v value, sent []member) error {
	if old == nil || old.Source != e.Source || old.origin() == e.origin() {
		return nil
	}
	given := func(name string) bool {
		return slices.ContainsFunc(sent, func(m member) bool { return m.key == name })
	}
	var missing []string
	if e.APIKey != "" && !given("apiKey") {
		missing = append(missing, "apiKey")
	}
	if len(e.Headers) > 0 && !given("headers") {
		missing = append(missing, "headers")
	}
	if len(missing) == 0 {
		return nil
	}
	return v.fail("would send its stored %s to another host than before. Give %s again together with the url, or as null.",
		strings.Join(missing, " and "), fmt.Sprintf("`%s`", strings.Join(missing, "` and `")))
}
