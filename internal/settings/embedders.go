package settings

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"svc/internal/template"
)

// Embedder is the configuration of one embedder, as set; Complete fills in the rest. Values are immutable once they are in Settings.
type Embedder struct {
	Source                   string                     `json:"source"`
	Model                    string                     `json:"model,omitempty"`
	Revision                 string                     `json:"revision,omitempty"`
	Pooling                  string                     `json:"pooling,omitempty"`
	APIKey                   string                     `json:"apiKey,omitempty"`
	Dimensions               int                        `json:"dimensions,omitempty"` // 0: to be inferred
	BinaryQuantized          *bool                      `json:"binaryQuantized,omitempty"`
	HalfPrecision            *bool                      `json:"halfPrecision,omitempty"`
	DocumentTemplate         *string                    `json:"documentTemplate,omitempty"` // nil: the default; "" renders to nothing
	DocumentTemplateMaxBytes *int                       `json:"documentTemplateMaxBytes,omitempty"`
	URL                      string                     `json:"url,omitempty"`
	Request                  json.RawMessage            `json:"request,omitempty"`
	Response                 json.RawMessage            `json:"response,omitempty"`
	Headers                  map[string]string          `json:"headers,omitzero"`
	IndexingFragments        map[string]json.RawMessage `json:"indexingFragments,omitempty"` // name → the fragment's value
	SearchFragments          map[string]json.RawMessage `json:"searchFragments,omitempty"`
	SearchEmbedder           *Embedder                  `json:"searchEmbedder,omitempty"`
	IndexingEmbedder         *Embedder                  `json:"indexingEmbedder,omitempty"`
	Distribution             *Distribution              `json:"distribution,omitempty"`
}

// Distribution shifts similarities so that those around Mean use the whole scale.
type Distribution struct {
	Mean  json.Number `json:"mean"`  // from 0 to 1, as it was written
	Sigma json.Number `json:"sigma"` // above 0, at most 1
}

const (
	maxEmbedders = 255
	maxFragments = 256
)

var poolings = []string{"useModel", "forceCls", "forceMean"}

// embedderFields are the fields that some sources accept and others refuse: see embedderSource. A payload is checked in this order.
var embedderFields = []struct {
	name string
	set  func(e *Embedder) bool
}{
	{"model", func(e *Embedder) bool { return e.Model != "" }},
	{"revision", func(e *Embedder) bool { return e.Revision != "" }},
	{"pooling", func(e *Embedder) bool { return e.Pooling != "" }},
	{"dimensions", func(e *Embedder) bool { return e.Dimensions != 0 }},
	{"apiKey", func(e *Embedder) bool { return e.APIKey != "" }},
	{"url", func(e *Embedder) bool { return e.URL != "" }},
	{"indexingFragments", func(e *Embedder) bool { return len(e.IndexingFragments) > 0 }},
	{"searchFragments", func(e *Embedder) bool { return len(e.SearchFragments) > 0 }},
	{"request", func(e *Embedder) bool { return e.Request != nil }},
	{"response", func(e *Embedder) bool { return e.Response != nil }},
	{"documentTemplate", func(e *Embedder) bool { return e.DocumentTemplate != nil }},
	{"documentTemplateMaxBytes", func(e *Embedder) bool { return e.DocumentTemplateMaxBytes != nil }},
	{"headers", func(e *Embedder) bool { return e.Headers != nil }},
	{"searchEmbedder", func(e *Embedder) bool { return e.SearchEmbedder != nil }},
	{"indexingEmbedder", func(e *Embedder) bool { return e.IndexingEmbedder != nil }},
}

// role is the role of an embedder: a plain one, or a half of a composite one.
type role uint8

const (
	alone role = iota
	forSearch
	forIndexing
)

// refused reports whether a field cannot be set in the role, regardless of the source.
func (r role) refused(field string) bool {
	switch r {
	case forSearch:
		return slices.Contains([]string{"documentTemplate", "documentTemplateMaxBytes", "indexingFragments",
			"searchEmbedder", "indexingEmbedder", "binaryQuantized", "halfPrecision", "distribution"}, field)
	case forIndexing:
		return slices.Contains([]string{"searchFragments", "searchEmbedder", "indexingEmbedder", "binaryQuantized", "halfPrecision", "distribution"}, field)
	}
	return false
}

// readEmbedders changes the embedders that a body names; null removes one. The map is a copy, because the old
// settings are in use.
func readEmbedders(s *Settings, v value) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	embedders := maps.Clone(dict(s.Embedders))
	for _, m := range members {
		if m.null() {
			delete(embedders, m.key)
			continue
		}
		e, err := readEmbedder(embedders[m.key], m.value, alone)
		if err != nil {
			return err
		}
		embedders[m.key] = e
	}
	s.Embedders = embedders
	return nil
}

// readEmbedder returns old (nil: a new embedder) with the members of v laid over it.
func readEmbedder(old *Embedder, v value, r role) (*Embedder, error) {
	members, err := v.members()
	if err != nil {
		return nil, err
	}
	e := Embedder{Source: OpenAI}
	if old != nil {
		e = *old
	}
	if err := readSource(&e, members); err != nil {
		return nil, err
	}
	templated := false // sent, and not null
	err = v.fields(embedderReaders(&e, &templated))
	switch {
	case err != nil:
		return nil, err
	case r != alone && sourceOf(e.Source).whole():
		return nil, v.fail("cannot have the source %s: an embedder inside a composite one computes embeddings itself.", e.Source)
	case templated && e.DocumentTemplateMaxBytes != nil && *e.DocumentTemplateMaxBytes == 0:
		return nil, v.fail("cannot have documentTemplateMaxBytes 0: it is the maximum length of texts.")
	case old != nil && r == alone && old.Source == e.Source && isTrue(old.BinaryQuantized) && !isTrue(e.BinaryQuantized):
		return nil, v.fail("cannot disable binaryQuantized: the full vectors are gone. Add another embedder instead.")
	case templated && e.hasFragments():
		return nil, v.templateAndFragments()
	}
	if e.hasFragments() {
		e.DocumentTemplate, e.DocumentTemplateMaxBytes = nil, nil // the fragments replace the template
	}
	for _, m := range members {
		if r.refused(m.key) {
			return nil, m.fail("cannot be set for this part of a composite embedder.")
		}
	}
	e.restore(old)
	if err := keepSecrets(old, &e, v, members); err != nil {
		return nil, err
	}
	return &e, nil
}

// readSource sets the source that the members name. A new source starts from its own defaults. Only the template, which does not
// depend on the source, stays.
func readSource(e *Embedder, members []member) error {
	was := e.Source
	for _, m := range members {
		if m.key != "source" {
			continue
		}
		e.Source = OpenAI
		if !m.null() {
			n, err := m.choice(Sources()...)
			if err != nil {
				return err
			}
			e.Source = sources[n].name
		}
	}
	if e.Source != was {
		kept := *e
		*e = Embedder{Source: kept.Source}
		if sourceOf(e.Source).use("documentTemplate") != refused {
			e.DocumentTemplate, e.DocumentTemplateMaxBytes = kept.DocumentTemplate, kept.DocumentTemplateMaxBytes
		}
	}
	return nil
}

// embedderReaders returns the functions that read the members of an embedder. templated is set if a template is sent that is not null.
func embedderReaders(e *Embedder, templated *bool) map[string]func(value) error {
	return map[string]func(value) error{
		"source": func(value) error { return nil },
		"model": orReset(func() { e.Model = "" }, func(v value) (err error) {
			if e.Model, err = v.text(); err == nil && e.Model == "" {
				err = v.wrong("the name of a model")
			}
			return err
		}),
		"revision": orReset(func() { e.Revision = "" }, func(v value) (err error) {
			e.Revision, err = v.text()
			return err
		}),
		"apiKey": orReset(func() { e.APIKey = "" }, func(v value) (err error) {
			if e.APIKey, err = v.text(); err != nil {
				err = v.fail("must be a string.") // it may hold the key: it is not shown
			}
			return err
		}),
		"pooling": orReset(func() { e.Pooling = "" }, func(v value) error {
			n, err := v.choice(poolings...)
			e.Pooling = poolings[n]
			return err
		}),
		"dimensions": orReset(func() { e.Dimensions = 0 }, func(v value) (err error) {
			if e.Dimensions, err = v.count(); err == nil && e.Dimensions == 0 {
				err = v.wrong("at least 1")
			}
			return err
		}),
		"binaryQuantized": orReset(func() { e.BinaryQuantized = nil }, func(v value) error {
			b, err := v.boolean()
			e.BinaryQuantized = &b
			return err
		}),
		"halfPrecision": orReset(func() { e.HalfPrecision = nil }, func(v value) error {
			b, err := v.boolean()
			e.HalfPrecision = &b
			return err
		}),
		"documentTemplate": orReset(func() { e.DocumentTemplate = nil }, func(v value) error {
			*templated = true
			source, err := v.text()
			if err != nil {
				return err
			}
			if _, err := template.Parse(template.Work{}, source); err != nil {
				return v.fail("is not a template: %v.", err)
			}
			e.DocumentTemplate = &source
			return nil
		}),
		"documentTemplateMaxBytes": optional(&e.DocumentTemplateMaxBytes, value.count),
		"url": orReset(func() { e.URL = "" }, func(v value) (err error) {
			if e.URL, err = v.text(); err != nil {
				return err
			}
			if u, err := url.Parse(e.URL); err != nil || u.Scheme == "" || u.Host == "" {
				return v.fail("must be an absolute URL, such as https://example.com/embed.") // it may hold a secret: it is not shown
			}
			return nil
		}),
		"request":  orReset(func() { e.Request = nil }, func(v value) error { e.Request = slices.Clone(v.raw); return nil }),
		"response": orReset(func() { e.Response = nil }, func(v value) error { e.Response = slices.Clone(v.raw); return nil }),
		"headers": orReset(func() { e.Headers = nil }, func(v value) error {
			members, err := v.members()
			if err != nil {
				return err
			}
			e.Headers = make(map[string]string, len(members))
			for _, m := range members {
				if e.Headers[m.key], err = m.text(); err != nil {
					return err
				}
			}
			return nil
		}),
		"indexingFragments": readFragments(&e.IndexingFragments),
		"searchFragments":   readFragments(&e.SearchFragments),
		"searchEmbedder": orReset(func() { e.SearchEmbedder = nil }, func(v value) error {
			search, err := readEmbedder(nil, v, forSearch)
			if err == nil {
				search.restore(e.SearchEmbedder)
			}
			e.SearchEmbedder = search
			return err
		}),
		"indexingEmbedder": orReset(func() { e.IndexingEmbedder = nil }, func(v value) (err error) {
			e.IndexingEmbedder, err = readEmbedder(e.IndexingEmbedder, v, forIndexing)
			return err
		}),
		"distribution": orReset(func() { e.Distribution = nil }, func(v value) (err error) {
			e.Distribution, err = readDistribution(v)
			return err
		}),
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// readFragments merges named fragments; a null one goes.
func readFragments(dst *map[string]json.RawMessage) func(value) error {
	return orReset(func() { *dst = nil }, func(v value) error {
		members, err := v.members()
		if err != nil {
			return err
		}
		fragments := maps.Clone(*dst)
		if fragments == nil {
			fragments = map[string]json.RawMessage{}
		}
		for _, m := range members {
			if m.null() {
				delete(fragments, m.key)
				continue
			}
			var content json.RawMessage
			err := m.fields(map[string]func(value) error{
				"value": func(v value) error { content = slices.Clone(v.raw); return nil },
			})
			if err == nil && content == nil {
				err = m.fail("needs a `value`.")
			}
			if err != nil {
				return err
			}
			fragments[m.key] = encode(object{{"value", content}})
		}
		if len(fragments) > maxFragments {
			return v.fail("has %d fragments, but an embedder can have at most %d.", len(fragments), maxFragments)
		}
		*dst = fragments
		return nil
	})
}

func readDistribution(v value) (*Distribution, error) {
	var d Distribution
	err := v.fields(map[string]func(value) error{
		"mean": func(v value) error {
			d.Mean = json.Number(v.raw)
			_, err := v.ratio()
			return err
		},
		"sigma": func(v value) error {
			d.Sigma = json.Number(v.raw)
			x, err := v.ratio()
			if err == nil && x == 0 {
				err = v.wrong("above 0")
			}
			return err
		},
	})
	if err == nil && (d.Mean == "" || d.Sigma == "") {
		err = v.fail("needs both mean and sigma.")
	}
	return &d, err
}

// Complete returns e with the defaults of its source filled in, where it has any.
func (e *Embedder) Complete() *Embedder {
	c := *e
	of := sourceOf(c.Source)
	if of.complete != nil {
		of.complete(&c)
	}
	if of.use("documentTemplate") != refused && !c.hasFragments() {
		if c.DocumentTemplate == nil {
			c.DocumentTemplate = new(defaultTemplate)
		}
		if c.DocumentTemplateMaxBytes == nil {
			n := defaultTemplateBytes
			c.DocumentTemplateMaxBytes = &n
		}
	}
	return &c
}

func showEmbedders(embedders map[string]*Embedder, secrets bool) any {
	shown := make(map[string]*Embedder, len(embedders))
	for name, e := range embedders {
		shown[name] = e.show(alone, secrets)
	}
	return shown
}

// show returns the embedder as the API shows it, with defaults, and without secrets unless they are asked
// for.
func (e *Embedder) show(r role, secrets bool) *Embedder {
	c := e.Complete()
	if r == forSearch {
		c.DocumentTemplate, c.DocumentTemplateMaxBytes = nil, nil
	}
	if !secrets {
		if c.APIKey != "" {
			c.APIKey = Redact(c.APIKey)
		}
		c.Headers = redactAll(c.Headers)
		c.URL = RedactURL(c.URL)
	}
	if c.SearchEmbedder != nil {
		c.SearchEmbedder = c.SearchEmbedder.show(forSearch, secrets)
	}
	if c.IndexingEmbedder != nil {
		c.IndexingEmbedder = c.IndexingEmbedder.show(forIndexing, secrets)
	}
	return c
}

// echoEmbedders shows embedders as sent, with their keys and headers redacted at every depth.
func echoEmbedders(v value, secrets bool) any {
	members, err := v.members()
	if err != nil || secrets {
		return v.raw
	}
	o := make(object, len(members))
	for i, m := range members {
		o[i] = pair{m.key, echoEmbedder(m.value)}
	}
	return o
}

// echoEmbedder shows an embedder as it was sent, for tasks, with its secrets masked.
func echoEmbedder(v value) any {
	members, err := v.members()
	if err != nil {
		return v.raw
	}
	o := make(object, len(members))
	for i, m := range members {
		o[i] = pair{m.key, m.raw}
		switch m.key {
		case "apiKey":
			if key, err := m.text(); err == nil {
				o[i].value = Redact(key)
			}
		case "url":
			if address, err := m.text(); err == nil {
				o[i].value = RedactURL(address)
			}
		case "headers":
			o[i].value = echoHeaders(m.value)
		case "searchEmbedder", "indexingEmbedder":
			o[i].value = echoEmbedder(m.value)
		}
	}
	return o
}
