package fastapi

import (
	"strings"
	"testing"

	"svc/internal/template"
)

func TestRenderFragments(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.json("PATCH", "/experimental-features", `{"multimodal": true, "compositeEmbedders": true, "renderRoute": true}`)
	const fragments = `"source": "rest", "url": "http://127.0.0.1:1/", "dimensions": 1, "request": "{{fragment}}", "response": "{{embedding}}",
		"indexingFragments": {"poster": {"value": {"image": "{{doc.poster}}", "n": [1, "{{doc.id}}"]}}},
		"searchFragments": {"text": {"value": {"text": "query: {{q}}"}}, "picture": {"value": "{{media.url}}"}}`
	if end := c.wait(c.json("PATCH", "/indexes/i/settings", `{"embedders": {"m": {`+fragments+`}, "t": {"source": "userProvided", "dimensions": 1}}}`)); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	const doc = `"input": {"kind": "inlineDocument", "inline": {"id": 7, "poster": "a.png"}}`
	const query = `"input": {"kind": "inlineSearch", "inline": {"q": "a \"dog\"", "media": {"url": "b.png"}}}`
	fragment := func(kind, embedder, name string) string {
		return `"template": {"kind": "` + kind + `", "indexUid": "i", "embedder": "` + embedder + `", "fragment": "` + name + `"}`
	}
	many := `["` + strings.Repeat(`{% for i in (1..200000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}","`, 50) + `"]`
	for _, tt := range []struct{ body, want string }{ // the answer, or the error code
		{fragment("indexingFragment", "m", "poster"), `{"template":{"image":"{{doc.poster}}","n":[1,"{{doc.id}}"]},"rendered":null}`},
		{fragment("indexingFragment", "m", "poster") + `, ` + doc, `{"template":{"image":"{{doc.poster}}","n":[1,"{{doc.id}}"]},"rendered":{"image":"a.png","n":[1,"7"]}}`},
		{fragment("searchFragment", "m", "text") + `, ` + query, `{"template":{"text":"query: {{q}}"},"rendered":{"text":"query: a \"dog\""}}`},
		{fragment("searchFragment", "m", "picture") + `, ` + query, `{"template":"{{media.url}}","rendered":"b.png"}`},
		{`"template": {"kind": "inlineFragment", "inline": {"a": "{{doc.id}}"}}, ` + doc, `{"template":{"a": "{{doc.id}}"},"rendered":{"a":"7"}}`},
		{`"template": {"kind": "inlineFragment", "inline": ["{{q}}"]}, "input": {"kind": "inlineSearch", "inline": {"q": "x", "media": null}}`, `{"template":["{{q}}"],"rendered":["x"]}`},
		{fragment("indexingFragment", "m", "poster") + `, ` + query, "invalid_render_input"},
		{fragment("searchFragment", "m", "text") + `, ` + doc, "invalid_render_input"},
		{`"template": {"kind": "inlineDocumentTemplate", "inline": "{{q}}"}, ` + query, "invalid_render_input"},
		{fragment("searchFragment", "m", "picture") + `, "input": {"kind": "inlineSearch", "inline": {"q": "x"}}`, "invalid_render_template"},
		{fragment("searchFragment", "m", "poster"), "invalid_render_template"},
		{fragment("indexingFragment", "m", "text"), "invalid_render_template"},
		{fragment("indexingFragment", "t", "text"), "invalid_render_template"},
		{fragment("indexingFragment", "x", "text"), "invalid_render_template"},
		{`"template": {"kind": "inlineFragment"}`, "invalid_render_template"},
		{`"template": {"kind": "inlineFragment", "inline": {"a": "{{"}}`, "invalid_render_template"},
		{`"template": {"kind": "inlineFragment", "inline": ` + many + `}, ` + doc, "invalid_render_template"}, // both would fit
		{fragment("searchFragment", "m", "text") + `, "input": {"kind": "inlineSearch", "inline": {"q": 1}}`, "invalid_render_input"},
		{fragment("searchFragment", "m", "text") + `, "input": {"kind": "inlineSearch", "inline": {"media": []}}`, "invalid_render_input"},
		{fragment("searchFragment", "m", "text") + `, "input": {"kind": "inlineSearch", "inline": {"vector": [1]}}`, "invalid_render_input"},
		{fragment("searchFragment", "m", "text") + `, "input": {"kind": "inlineSearch"}`, "invalid_render_input"},
	} {
		r := c.json("POST", "/render-template", `{`+tt.body+`}`)
		if r.status == 200 && r.body != tt.want || r.status != 200 && r.code() != tt.want {
			t.Errorf("%.300s: %d %.300s, want %s", tt.body, r.status, r.body, tt.want)
		}
	}
}

func TestRenderTemplate(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"searchableAttributes": ["name"], "embedders": {"r": {"source": "rest", "url": "http://127.0.0.1:1/", "dimensions": 1, "documentTemplate": "{{doc.name}}, {% for field in fields %}{% if field.is_searchable %}{{field.name}}{% endif %}{% endfor %}", "request": "{{text}}", "response": "{{embedding}}"},
		"u": {"source": "userProvided", "dimensions": 1}}}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "name": "Iko", "breed": "x", "_vectors": {"r": [1], "u": [1]}}]`))
	const inline = `"template": {"kind": "inlineDocumentTemplate", "inline": "A {{doc.breed}} called \"{{doc.name}}\""}`
	const dog = `"input": {"kind": "inlineDocument", "inline": {"breed": "pug", "name": "Iko"}}`
	for _, tt := range []struct{ body, want string }{ // the answer, or the error code
		{`{` + inline + `, ` + dog + `}`, `{"template":"A {{doc.breed}} called \"{{doc.name}}\"","rendered":"A pug called \"Iko\""}`},
		{`{` + inline + `}`, `{"template":"A {{doc.breed}} called \"{{doc.name}}\"","rendered":null}`},
		{`{` + inline + `, "input": null}`, `{"template":"A {{doc.breed}} called \"{{doc.name}}\"","rendered":null}`},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.name}}", "documentTemplateMaxBytes": 2}, ` + dog + `}`, `{"template":"{{doc.name}}","rendered":"Ik"}`},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.name}}"}, "input": {"kind": "indexDocument", "indexUid": "i", "id": "1"}}`, `{"template":"{{doc.name}}","rendered":"Iko"}`},
		{`{"template": {"kind": "documentTemplate", "indexUid": "i", "embedder": "r"}, "input": {"kind": "indexDocument", "indexUid": "i", "id": "1"}}`,
			`{"template":"{{doc.name}}, {% for field in fields %}{% if field.is_searchable %}{{field.name}}{% endif %}{% endfor %}","rendered":"Iko, name"}`},
		{`{}`, "invalid_render_template"},
		{`{"template": "x"}`, "invalid_render_template"},
		{`{"template": {"kind": "x"}}`, "invalid_render_template"},
		{`{"template": {"kind": 3}}`, "invalid_render_template"},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": 3}}`, "invalid_render_template"},
		{`{"template": {"kind": "inlineDocumentTemplate"}}`, "invalid_render_template"},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc."}}`, "invalid_render_template"},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": "x", "y": 1}}`, "invalid_render_template"},
		{`{"template": {"kind": "documentTemplate", "indexUid": "i", "embedder": "none"}}`, "invalid_render_template"},
		{`{"template": {"kind": "documentTemplate", "indexUid": "i", "embedder": "u"}}`, "invalid_render_template"},
		{`{"template": {"kind": "documentTemplate", "indexUid": "none", "embedder": "u"}}`, "index_not_found"},
		{`{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.none}}"}, ` + dog + `}`, "invalid_render_template"},
		{`{` + inline + `, "input": {"kind": "x"}}`, "invalid_render_input"},
		{`{` + inline + `, "input": []}`, "invalid_render_input"},
		{`{` + inline + `, "input": {"kind": "inlineDocument", "inline": []}}`, "invalid_render_input"},
		{`{` + inline + `, "input": {"kind": "indexDocument", "indexUid": "none", "id": "1"}}`, "index_not_found"},
		{`{` + inline + `, "input": {"kind": "indexDocument", "indexUid": "i", "id": "2"}}`, "render_document_not_found"},
		{`{` + inline + `, "x": 1}`, "bad_request"},
	} {
		r := c.json("POST", "/render-template", tt.body)
		if r.status == 200 && r.body != tt.want || r.status != 200 && r.code() != tt.want {
			t.Errorf("%s: %d %s, want %s", tt.body, r.status, r.body, tt.want)
		}
	}
	c = newProtected(t)
	c.wait(c.json("POST", "/indexes/mine/documents", `[{"id": 1}]`))
	for _, tt := range []struct {
		key, body string
		status    int
	}{
		{c.makeKey(`["search"]`, `["*"]`), `{` + inline + `}`, 403},
		{c.makeKey(`["settings.get"]`, `["mine"]`), `{` + inline + `, ` + dog + `}`, 200},
		{c.makeKey(`["settings.get"]`, `["mine"]`), `{` + inline + `, "input": {"kind": "indexDocument", "indexUid": "mine", "id": "1"}}`, 403},
		{c.makeKey(`["settings.get", "documents.get"]`, `["mine"]`), `{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.id}}"}, "input": {"kind": "indexDocument", "indexUid": "mine", "id": "1"}}`, 200},
		{c.makeKey(`["settings.get", "documents.get"]`, `["mine"]`), `{` + inline + `, "input": {"kind": "indexDocument", "indexUid": "theirs", "id": "1"}}`, 403},
		{c.makeKey(`["settings.get"]`, `["mine"]`), `{"template": {"kind": "chatDocumentTemplate", "indexUid": "theirs"}}`, 403},
	} {
		if r := c.as(tt.key).json("POST", "/render-template", tt.body); r.status != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.body, r.status, r.body, tt.status)
		}
	}
}

// TestRenderingsAreCharged renders more than all requests may hold, and then less.
func TestRenderingsAreCharged(t *testing.T) {
	c, _ := newInstance(t, Options{Memory: 4 << 20})
	c.json("PATCH", "/experimental-features", `{"renderRoute": true}`)
	long := strings.Repeat("{{1}}", (template.MaxSource-2)/5)
	for what, tt := range map[string]struct{ source, want string }{
		"a list":     {"{% assign a = 'x,y' | split: ',' %}" + strings.Repeat("{% assign a = a | concat: a %}", 16), "too_many_search_requests"},
		"a text":     {"{% assign a = 'x' %}" + strings.Repeat("{% assign a = a | append: a %}", 23), "too_many_search_requests"},
		"a template": {long, "too_many_search_requests"},
		"little":     {"{{ doc.id }}", `"rendered":"1"`},
	} {
		for _, kind := range []string{"inlineDocumentTemplate", "inlineFragment"} {
			got := c.json("POST", "/render-template", `{"template":{"kind":"`+kind+`","inline":"`+tt.source+`"},"input":{"kind":"inlineDocument","inline":{"id":1}}}`)
			if !strings.Contains(got.body, tt.want) {
				t.Errorf("%s, %s: %.200s", what, kind, got.body)
			}
		}
	}
	if used := heldAtEnd(c.server); used != 0 {
		t.Errorf("%d bytes are held at the end", used)
	}
}
