package fastapi

import "testing"

func TestRenderTemplate(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"searchableAttributes": ["name"], "embedders": {"r": {"source": "rest", "url": "http://127.0.0.1:1/", "dimensions": 1, "documentTemplate": "{{doc.name}}, {% for field in fields %}{% if field.is_searchable %}{{field.name}}{% endif %}{% endfor %}", "request": "{{text}}", "response": "{{embedding}}"},
		"u": {"source": "userProvided", "dimensions": 1}}}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "name": "Iko", "breed": "x", "_vectors": {"r": [1], "u": [1]}}]`))
	const inline = `"template": {"kind": "inlineDocumentTemplate", "inline": "A {{doc.breed}} called \"{{doc.name}}\""}`
	const dog = `"input": {"kind": "inlineDocument", "inline": {"breed": "pug", "name": "Iko"}}`
	for _, tt := range []struct{ body, want string }{ // the answer, or its code
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
