package settings

import (
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestSecretsStayHome changes embedders that have a stored key and headers.
func TestSecretsStayHome(t *testing.T) {
	const (
		form = `"request": {"input": "{{text}}"}, "response": {"data": "{{embedding}}"}`
		rest = `{"e": {"source": "rest", "url": "https://a.test/embed", ` + form + `, "apiKey": "stored-key", "headers": {"X-Token": "stored-header"}}}`
		open = `{"e": {"source": "openAi", "apiKey": "stored-key"}}`
		llm  = `{"e": {"source": "ollama", "model": "m", "url": "http://a.test:11434/api/embed", "apiKey": "stored-key"}}`
		both = `{"e": {"source": "composite", "searchEmbedder": {"source": "rest", "url": "https://a.test", ` + form + `, "apiKey": "stored-key"},
			"indexingEmbedder": {"source": "rest", "url": "https://a.test", ` + form + `, "apiKey": "stored-key"}}}`
	)
	features := Features{CompositeEmbedders: true}
	update := func(s *Settings, body string) (*Settings, error) {
		u, err := ParseOne("embedders", []byte(body), features)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return s.Apply(u)
	}
	for _, tt := range []struct{ stored, change, want string }{ // want: what has to be given again
		{rest, `{"e": {"url": "https://a.test/other?x=y"}}`, ""},
		{rest, `{"e": {"url": "https://A.test.:443/embed"}}`, ""},
		{rest, `{"e": {"url": "https://b.test/embed"}}`, "`apiKey` and `headers`"},
		{rest, `{"e": {"url": "http://a.test/embed"}}`, "`apiKey` and `headers`"},
		{rest, `{"e": {"url": "https://a.test:8443/embed"}}`, "`apiKey` and `headers`"},
		{rest, `{"e": {"url": "https://a.test@b.test/embed"}}`, "`apiKey` and `headers`"},
		{rest, `{"e": {"url": "https://b.test/embed", "apiKey": "new"}}`, "`headers`"},
		{rest, `{"e": {"url": "https://b.test/embed", "headers": null}}`, "`apiKey`"},
		{rest, `{"e": {"url": "https://b.test/embed", "headers": {"X-Token": "new"}, "apiKey": null}}`, ""},
		{rest, `{"e": {"headers": {"host": "b.test"}}}`, "`apiKey`"},
		{rest, `{"e": {"source": "rest", "url": "https://b.test/embed", ` + form + `}}`, "`apiKey` and `headers`"},
		{rest, `{"e": null}`, ""},
		{open, `{"e": {"url": "https://api.openai.com/v2"}}`, ""},
		{open, `{"e": {"url": "https://b.test"}}`, "`apiKey`"},
		{open, `{"e": {"url": "https://b.test", "apiKey": "new"}}`, ""},
		{open, `{"e": {"source": "rest", "url": "https://b.test/embed", ` + form + `}}`, ""}, // another source begins anew
		{llm, `{"e": {"url": "http://b.test:11434/api/embed"}}`, "`apiKey`"},
		{llm, `{"e": {"url": null}}`, "`apiKey`"},
		{both, `{"e": {"indexingEmbedder": {"source": "rest", "url": "https://b.test", ` + form + `}}}`, "`apiKey`"},
		{both, `{"e": {"searchEmbedder": {"source": "rest", "url": "https://b.test", ` + form + `}}}`, ""}, // always as sent
	} {
		s, err := update(Default(), tt.stored)
		if err != nil {
			t.Fatal(err)
		}
		s, err = update(s, tt.change)
		if tt.want != "" {
			if apierr.From(err).Code != "invalid_settings_embedders" || !strings.Contains(err.Error(), "Give "+tt.want+" again") {
				t.Errorf("%s after %s: %v, want … %s", tt.change, tt.stored, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s after %s: %v", tt.change, tt.stored, err)
			continue
		}
		if e := s.Embedders["e"]; e != nil && strings.Contains(e.URL, "b.test") && (e.APIKey == "stored-key" || e.Headers["X-Token"] == "stored-header") {
			t.Errorf("%s after %s keeps %+v", tt.change, tt.stored, e)
		}
	}
}

// TestHeadersAreRedacted looks for the values of headers wherever settings are shown.
func TestHeadersAreRedacted(t *testing.T) {
	const body = `{"e": {"source": "composite", "searchEmbedder": {"source": "rest", "url": "https://a.test", "request": "{{text}}", "response": "{{embedding}}", "headers": {"X-Token": "canary-of-a-header"}},
		"indexingEmbedder": {"source": "rest", "url": "https://a.test", "request": "{{text}}", "response": "{{embedding}}", "headers": {"X-Token": "canary-of-a-header"}}},
		"f": {"source": "rest", "url": "https://a.test", "request": "{{text}}", "response": "{{embedding}}", "headers": {"X-Token": "canary-of-a-header"}}}`
	u, err := ParseOne("embedders", []byte(body), Features{CompositeEmbedders: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.One("embedders")
	if err != nil {
		t.Fatal(err)
	}
	echo, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"all": s.JSON(Features{}), "one": one, "a task": echo} {
		if strings.Contains(string(text), "canary-of") || strings.Count(string(text), `"X-Token":"caXXXX..."`) != 3 {
			t.Errorf("%s: %s", what, text)
		}
	}
	for what, text := range map[string][]byte{"full": s.Full(), "stored": s.Encode(), "a task in full": u.Full()} {
		if strings.Count(string(text), "canary-of-a-header") != 3 {
			t.Errorf("%s: %s", what, text)
		}
	}
}
