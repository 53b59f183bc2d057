package settings

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Redact hides a secret except for its first bytes; the shorter it is, the fewer. It does not change its own results.
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

// RedactURL hides possible secrets in a URL: the password, or the user if there is no password, the values of parameters that are
// named like a secret (see namesSecret), and parameters without a name. It leaves the other parameters for operators.
func RedactURL(address string) string {
	return rewriteURL(address, func(string, int, string) string { return Redact("") })
}

// restoreURL returns a URL with its hidden parts replaced by those in the same places of another URL.
func restoreURL(address, old string) string {
	type place struct {
		name string
		nth  int
	}
	was := map[place]string{}
	rewriteURL(old, func(name string, nth int, value string) string {
		was[place{name, nth}] = value
		return value
	})
	return rewriteURL(address, func(name string, nth int, value string) string {
		if secret, ok := was[place{name, nth}]; ok && value == Redact("") {
			return secret
		}
		return value
	})
}

// RestoreURL returns a URL with the secrets that RedactURL has hidden in it, taken from an older URL, so that sending back a shown
// URL changes nothing. It does so only if the origin is the same.
func RestoreURL(address, old string) string {
	if restored := restoreURL(address, old); Origin(restored) == Origin(old) {
		return restored
	}
	return address
}

// namesSecret reports whether a parameter is named like a credential: api_key, access-token, X-Amz-Signature, code (of Azure's functions).
func namesSecret(name string) bool {
	name = strings.ToLower(name)
	return name == "code" || slices.ContainsFunc([]string{"key", "token", "secret", "pass", "pwd", "auth", "sig", "cred"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// rewriteURL replaces the secrets of a URL, as they are spelled. The secret of the user has no name. Parameters have names, and are
// numbered from 1. Text that is not a URL is returned unchanged.
func rewriteURL(address string, secret func(name string, nth int, value string) string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, both := strings.Cut(authority[:at], ":")
		if both {
			user += ":" + secret("", 0, password)
		} else {
			user = secret("", 0, user)
		}
		authority = user + authority[at:]
	}
	before, fragment, marked := strings.Cut(rest, "#")
	path, query, asked := strings.Cut(before, "?")
	b := scheme + "://" + authority + path
	if asked {
		pairs := strings.Split(query, "&")
		for i, pair := range pairs {
			switch name, v, named := strings.Cut(pair, "="); {
			case !named && pair != "": // it may be a value
				pairs[i] = secret("", i+1, pair)
			case v != "" && namesSecret(name):
				pairs[i] = name + "=" + secret(name, i+1, v)
			}
		}
		b += "?" + strings.Join(pairs, "&")
	}
	if marked {
		b += "#" + fragment
	}
	return b
}

// restore replaces masked secrets of an embedder by the old ones, so that sending back shown settings changes nothing. It does so
// only for secrets that go to the same host as before.
func (e *Embedder) restore(old *Embedder) {
	if old == nil || old.Source != e.Source {
		return
	}
	c := *e
	c.URL = restoreURL(e.URL, old.URL)
	if old.APIKey != "" && e.APIKey == Redact(old.APIKey) {
		c.APIKey = old.APIKey
	}
	if e.Headers != nil {
		c.Headers = maps.Clone(e.Headers)
		for name, v := range old.Headers {
			if shown, ok := c.Headers[name]; ok && shown == Redact(v) {
				c.Headers[name] = v
			}
		}
	}
	if c.origin() == old.origin() {
		*e = c
	}
}

// OpenAIURL is where openAi embedders without a url go.
const OpenAIURL = "https://api.openai.com/v1/embeddings"

// Origin is the part of a URL that must stay the same so that secrets for the old URL may be sent to the new one: scheme, host and
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
	if address == "" {
		address = sourceOf(e.Source).origin
	}
	origin := Origin(address)
	for name, v := range e.Headers {
		if strings.EqualFold(name, "Host") {
			origin += " " + strings.ToLower(v)
		}
	}
	return origin
}

// keepSecrets refuses a change that would send stored secrets to another host than they were given for, unless the payload contains
// them again.
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
	return v.fail("would send its stored %s to another host. Send %s again with the url, or as null.",
		strings.Join(missing, " and "), fmt.Sprintf("`%s`", strings.Join(missing, "` and `")))
}
