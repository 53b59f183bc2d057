package settings

import (
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestSecretsStayWithTheirHost changes embedders that have a stored key and headers.
func TestSecretsStayWithTheirHost(t *testing.T) {
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
	for _, tt := range []struct{ stored, change, want string }{ // want: what must be sent again
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
		{open, `{"e": {"source": "rest", "url": "https://b.test/embed", ` + form + `}}`, ""}, // another source starts without secrets
		{llm, `{"e": {"url": "http://b.test:11434/api/embed"}}`, "`apiKey`"},
		{llm, `{"e": {"url": null}}`, "`apiKey`"},
		{both, `{"e": {"indexingEmbedder": {"source": "rest", "url": "https://b.test", ` + form + `}}}`, "`apiKey`"},
		{both, `{"e": {"searchEmbedder": {"source": "rest", "url": "https://b.test", ` + form + `}}}`, ""}, // the search half is always stored as sent
	} {
		s, err := update(Default(), tt.stored)
		if err != nil {
			t.Fatal(err)
		}
		s, err = update(s, tt.change)
		if tt.want != "" {
			if apierr.From(err).Code != "invalid_settings_embedders" || !strings.Contains(err.Error(), "Send "+tt.want+" again") {
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

// TestHeadersAreRedacted checks that settings never show the values of headers.
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

// TestURLsAreRedacted redacts URLs, and restores them when they are sent back.
func TestURLsAreRedacted(t *testing.T) {
	for address, shown := range map[string]string{
		"https://a.test/embed":                                "https://a.test/embed",
		"https://user:canary@a.test/embed?x=y#z":              "https://user:XXX...@a.test/embed?x=y#z",
		"https://a.test/e?Access_Token=canary&code=canary":    "https://a.test/e?Access_Token=XXX...&code=XXX...",
		"https://a.test/e?model=small&dimensions=3":           "https://a.test/e?model=small&dimensions=3",
		"https://canary@a.test":                               "https://XXX...@a.test",
		"https://a.test/e?api-version=2024-02-01&key=canary":  "https://a.test/e?api-version=2024-02-01&key=XXX...",
		"https://a.test?canary":                               "https://a.test?XXX...",
		"https://a.test/e?key=canary&key=canary%402&other=&b": "https://a.test/e?key=XXX...&key=XXX...&other=&XXX...",
		"https://u:p@ss/word@a.test/":                         "https://u:XXX...@ss/word@a.test/",
		"no url":                                              "no url",
	} {
		got := RedactURL(address)
		if got != shown || strings.Contains(got, "canary") {
			t.Errorf("%s is shown as %s, want %s", address, got, shown)
		}
		if again := RedactURL(got); again != got {
			t.Errorf("%s is shown again as %s", got, again)
		}
		if back := restoreURL(got, address); back != address {
			t.Errorf("%s comes back as %s", address, back)
		}
	}
}

// TestShownEmbeddersCanBeSentBack sends embedders back as they are shown: secrets must stay, unless they would go to another host.
func TestShownEmbeddersCanBeSentBack(t *testing.T) {
	const one = `{"source": "rest", "url": "https://u:canary-1@a.test/embed?key=canary-2", "request": {"input": "{{text}}"}, "response": {"data": "{{embedding}}"},
		"apiKey": "canary-of-a-key", "headers": {"X-Token": "canary-of-a-header", "Y": "z"}}`
	apply := func(s *Settings, body string) *Settings {
		u, err := ParseOne("embedders", []byte(body), Features{CompositeEmbedders: true})
		if err != nil {
			t.Fatal(err)
		}
		echo, err := u.MarshalJSON()
		if err != nil || strings.Contains(string(echo), "canary") {
			t.Errorf("a task shows %s, %v", echo, err)
		}
		s, err = s.Apply(u)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stored := apply(Default(), `{"e": `+one+`, "both": {"source": "composite", "searchEmbedder": `+one+`, "indexingEmbedder": `+one+`}}`)
	shown, err := stored.One("embedders")
	if err != nil || strings.Contains(string(shown), "canary") {
		t.Fatalf("%s %v", shown, err)
	}
	again := apply(stored, string(shown))
	for _, secret := range []string{"canary-1", "canary-2", "canary-of-a-key", "canary-of-a-header"} {
		if n := strings.Count(string(again.Encode()), secret); n != 3 {
			t.Errorf("%s occurs %d times: %s", secret, n, again.Encode())
		}
	}
	moved := apply(stored, strings.ReplaceAll(string(shown), "a.test", "b.test"))
	if text := string(moved.Encode()); strings.Contains(text, "canary") {
		t.Errorf("secrets go to another host: %s", text)
	}
}
