package fastapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// spoiled calls f with copies of a JSON value in which one place is replaced, and with the place and the kind of replacement; see places.
func spoiled(v any, others map[string]any, f func(place, what string, v any)) {
	places(v, "", func(place string, old any, put func(any)) {
		for what, other := range others {
			put(other)
			f(place, what, v)
		}
		put(old)
	}, f)
}

// places calls visit for every place in a value, and f with the value without each member of its objects, and with one more.
func places(root any, at string, visit func(place string, old any, put func(any)), f func(place, what string, v any)) {
	var walk func(v any, at string)
	walk = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				old, place := v[name], at+"."+name
				visit(place, old, func(x any) { v[name] = x })
				delete(v, name)
				f(place, "missing", root)
				v[name] = old
				walk(old, place)
			}
			v["unheardOf"] = 1
			f(at+".unheardOf", "unknown", root)
			delete(v, "unheardOf")
		case []any:
			for i := range v {
				old, place := v[i], fmt.Sprintf("%s[%d]", at, i)
				visit(place, old, func(x any) { v[i] = x })
				walk(old, place)
			}
		}
	}
	walk(root, at)
}

// kindOf names the JSON type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// TestBadInput sends bodies of rules, chats and templates with each place replaced by every other type, removed, or too long. Another type
// must be refused with its own code, and nothing may cause a server error.
func TestBadInput(t *testing.T) {
	c, _ := newTalking(t, Options{})
	c.json("PATCH", "/experimental-features", `{"dynamicSearchRules": true, "chatCompletions": true, "multimodal": true}`)
	c.key = "any"
	var deep any = "x"
	for range 100 {
		deep = []any{deep}
	}
	others := map[string]any{
		"null": nil, "true": true, "a number": 7.0, "a negative": -1.0, "a fraction": 1.5, "a huge number": 1e300, "a string": "x", "an empty string": "", "an array": []any{}, "numbers": []any{1.0},
		"an object": map[string]any{}, "another object": map[string]any{"x": 1.0}, "nested arrays": deep, "a long string": strings.Repeat("y", 100<<10), "NUL": "\x00\u202e\ufffd",
		"a long array": slices.Repeat([]any{"x"}, 20_000),
	}
	for _, tt := range []struct {
		name, method, path, body string
		also                     map[string]string // other types that a place may have besides null
		open                     []string          // places that may contain anything, because providers or templates get it
	}{
		{"rule", "PATCH", "/dynamic-search-rules/r", `{"description": "d", "priority": 3, "active": true,
			"conditions": [{"scope": "query", "contains": "w"}, {"scope": "query", "isEmpty": true}, {"scope": "time", "start": "2030-01-01T00:00:00Z", "end": "2031-01-01T00:00:00Z"}, {"scope": "filter", "values": {"kind": "soup"}}],
			"actions": [{"selector": {"indexUid": "recipes", "id": "1"}, "action": {"type": "pin", "position": 0}},
				{"selector": {"indexUid": "recipes", "filter": "kind = soup"}, "action": {"type": "scale", "factor": 2}}]}`,
			map[string]string{".conditions[3].values.kind": "number boolean", ".actions[1].selector.filter": "array"},
			[]string{".conditions[3].values.", ".conditions[0].unheardOf", ".conditions[1].unheardOf", ".conditions[2].unheardOf", ".conditions[3].unheardOf"}},
		{"newer rule", "PATCH", "/dynamic-search-rules/n", `{"description": "d", "precedence": 3, "active": true,
			"conditions": {"query": {"isEmpty": false, "words": "w", "contains": "c"}, "time": {"start": "2030-01-01T00:00:00Z", "end": "2031-01-01T00:00:00Z"}, "filter": {"values": {"kind": "soup"}}},
			"actions": {"pin": [{"id": "1", "position": 0, "indexUid": "recipes"}], "scale": [{"weight": 2, "ids": ["1"], "filter": "kind = soup", "indexUid": "recipes"}]}}`,
			map[string]string{".conditions.filter.values.kind": "number boolean array object", ".actions.scale[0].filter": "array", ".actions": "array"}, []string{".conditions.filter.values."}},
		{"rules", "POST", "/dynamic-search-rules", `{"offset": 0, "limit": 3, "filter": {"attributePatterns": ["r*"], "query": "x", "active": true}}`, nil, nil},
		{"workspace", "PATCH", "/chats/other/settings", `{"source": "vLlm", "orgId": "o", "projectId": "p", "apiVersion": "v", "deploymentId": "d", "baseUrl": "http://localhost:1/v1",
			"prompts": {"system": "s", "searchDescription": "d", "searchQParam": "q", "searchFilterParam": "f", "searchIndexUidParam": "i"}}`, nil, nil},
		{"conversation", "POST", completions, `{"model": "m", "stream": true, "n": 1, "messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "hello"}],
			"tools": [{"type": "function", "function": {"name": "_svcSearchSources", "description": "d", "parameters": {}}}]}`,
			map[string]string{".messages[0].content": "array", ".messages[1].content": "array"}, []string{".tools[0].function.", ".messages[0].unheardOf", ".messages[1].unheardOf", ".unheardOf", ".tools[0].unheardOf"}},
		{"chat of an index", "PATCH", "/indexes/recipes/settings", `{"chat": {"description": "d", "documentTemplate": "{{doc.title}}", "documentTemplateMaxBytes": 100, "searchParameters": {"limit": 3, "sort": ["time:asc"],
			"distinct": "kind", "matchingStrategy": "all", "attributesToSearchOn": ["title"], "rankingScoreThreshold": 0.5, "hybrid": {"embedder": "e", "semanticRatio": 0.5}}}}`, nil, nil},
		{"template", "POST", "/render-template", `{"template": {"kind": "inlineDocumentTemplate", "inline": "{{doc.a}}", "documentTemplateMaxBytes": 10}, "input": {"kind": "inlineDocument", "inline": {"a": "b"}}}`,
			nil, []string{".input.inline."}},
		{"template of an index", "POST", "/render-template", `{"template": {"kind": "chatDocumentTemplate", "indexUid": "recipes"}, "input": {"kind": "indexDocument", "indexUid": "recipes", "id": "1"}}`, nil, nil},
		{"fragment", "POST", "/render-template", `{"template": {"kind": "inlineFragment", "inline": {"a": "{{q}}"}}, "input": {"kind": "inlineSearch", "inline": {"q": "x", "media": {"a": 1}}}}`,
			map[string]string{".template.inline": "string number boolean array"}, []string{".template.inline.", ".input.inline.media."}},
		{"comparison", "POST", "/indexes/recipes/compare", `{"search": {"q": "x", "limit": 3}, "other": {"search": {"matchingStrategy": "all"}, "settings": {"rankingRules": ["words"], "typoTolerance": {"enabled": false}}}}`, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sample any
			if err := json.Unmarshal([]byte(tt.body), &sample); err != nil {
				t.Fatal(err)
			}
			kinds := map[string]string{}
			places(sample, "", func(place string, old any, _ func(any)) { kinds[place] = kindOf(old) }, func(string, string, any) {})
			if r := c.json(tt.method, tt.path, tt.body); r.status >= 300 {
				t.Fatalf("the sample: %d %s", r.status, r.body)
			}
			spoiled(sample, others, func(place, what string, v any) {
				b, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				r := c.json(tt.method, tt.path, string(b))
				if r.status >= 500 && r.status != 501 || r.status >= 400 && (r.code() == "" || r.code() == "internal") {
					t.Errorf("%s is %s: %d %.300s", place, what, r.status, r.body)
				}
				if len(r.body) > 4<<10 && r.status >= 400 {
					t.Errorf("%s is %s: an error of %d bytes", place, what, len(r.body))
				}
				inside := func(p string) bool { return strings.HasPrefix(place, p) }
				other, isOther := others[what]
				if r.status >= 400 || slices.ContainsFunc(tt.open, inside) || what == "missing" {
					return
				}
				kind := kindOf(other)
				if !isOther || kind != "null" && kind != kinds[place] && !strings.Contains(tt.also[place], kind) {
					t.Errorf("%s is %s but accepted: %d %.300s", place, what, r.status, r.body)
				}
			})
			if r := c.json(tt.method, tt.path, strings.Repeat(" ", 3<<20)+tt.body); r.status != 413 {
				t.Errorf("a body of 3 MiB: %d %.300s", r.status, r.body)
			}
		})
	}
	if r := c.get("/health"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestInvalidUTF8 sends every route short and long paths and parameters of invalid UTF-8. They must be refused or not found, and the
// answers must be valid text.
func TestInvalidUTF8(t *testing.T) {
	o := Options{}
	openInstance(t, &o)
	c := newClient(t, o)
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for _, r := range routes() {
		if strings.Contains(r.path, "stream") {
			continue // its answers do not end
		}
		for _, n := range []int{1, 79, 80, 81, 200, 3000} {
			odd := strings.Repeat("%80", n)
			paths := []string{r.path + "?" + odd + "=1", r.path + "?limit=" + odd + "&filter=" + odd}
			if parameter.MatchString(r.path) {
				paths = append(paths, parameter.ReplaceAllString(r.path, odd))
			}
			for _, path := range paths {
				a := c.send(r.method, parameter.ReplaceAllString(path, "none"), strings.NewReader("{}"), "Content-Type", "application/json")
				if a.status >= 500 || !utf8.ValidString(a.body) && a.status >= 400 || a.status >= 400 && len(a.body) > 5000 {
					t.Errorf("%s %.60s (%d bytes): %d %.200q", r.method, path, n, a.status, a.body)
				}
			}
		}
	}
}
