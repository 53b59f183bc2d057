package restform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func quoted(texts ...string) [][]byte {
	var inputs [][]byte
	for _, t := range texts {
		b, _ := json.Marshal(t)
		inputs = append(inputs, b)
	}
	return inputs
}

func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		template string
		texts    []string
		body     string
	}{
		{`{"in": "{{text}}"}`, []string{"a\"b"}, `{"in":"a\"b"}`},
		{`"{{text}}"`, []string{"a"}, `"a"`},
		{`{"in": ["{{text}}", "{{..}}"]}`, []string{"a", "b", "c"}, `{"in":["a","b","c"]}`},
		{`{"in": ["{{text}}", "{{..}}"]}`, []string{"a"}, `{"in":["a"]}`},
		{`{"parts": [{"x": 1, "t": ["{{text}}", 2]}, "{{..}}", "more"], "m": {"é\n": [1.50, null]}}`, []string{"a", "b"},
			`{"parts":[{"x":1,"t":["a",2]},{"x":1,"t":["b",2]}],"m":{"é\n":[1.50,null]}}`},
		{`{"in": ["{{text}}"]}`, []string{"a"}, `{"in":["a"]}`},
		{`["{{text}}", "{{..}}"]`, []string{"a", "b"}, `["a","b"]`},
		{`{"a": [], "b": {}, "c": "{{text}}", "d": "x {{text}}"}`, []string{"a"}, `{"a":[],"b":{},"c":"a","d":"x {{text}}"}`},
	} {
		r, err := ParseRequest([]byte(tt.template), Text)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		if got := string(r.Body(quoted(tt.texts...)...)); got != tt.body || r.Batch() != strings.Contains(tt.template, Repeat) {
			t.Errorf("%s: %s, batch %t", tt.template, got, r.Batch())
		}
	}
	for _, template := range []string{`{"in": ["x", "{{text}}", "{{..}}"]}`, `{"in": "x {{text}}"}`, `{"in": ["{{text}}", "{{..}}"], "o": "{{text}}"}`, `{}`, `["{{..}}"]`, `"{{..}}"`,
		`{"in": ["{{..}}", "{{text}}"]}`, `{"in": ["{{text}}", "x", "{{..}}"]}`, `{"in": ["x", "{{..}}"], "o": "{{text}}"}`, `{"in": {"a": "{{text}}", "b": "{{..}}"}}`,
		`{"in": [["{{text}}", "{{..}}"], "{{..}}"]}`, `{"in": "{{fragment}}"}`, `{"in": `, ``} {
		if _, err := ParseRequest([]byte(template), Text); err == nil {
			t.Errorf("%s is read", template)
		}
	}
}

func TestResponse(t *testing.T) {
	for _, tt := range []struct{ template, answer, want string }{
		{`{"out": "{{embedding}}"}`, `{"x":[],"out":[1,-2.5,3e-1]}`, `[[1 -2.5 0.3]]`},
		{`"{{embedding}}"`, `[1]`, `[[1]]`},
		{`{"data": [{"e": "{{embedding}}"}, "{{..}}"]}`, `{"data":[{"e":[1]},{"f":0,"e":[2]}]}`, `[[1] [2]]`},
		{`["{{embedding}}", "{{..}}"]`, `[[1,2],[3,4]]`, `[[1 2] [3 4]]`},
		{`{"a": [0, {"b": "{{embedding}}"}]}`, `{"a":[7,{"b":[1]},8]}`, `[[1]]`},
		{`{"out": "{{embedding}}"}`, `{"out":[]}`, `[[]]`},
		{`{"embedding": "{{embedding}}"}`, `{"embeddings":[1],"x":2}`, "did you mean `embeddings`?"},
		{`{"out": "{{embedding}}"}`, `{"out":{"e":[1]}}`, "must be an array of numbers"},
		{`{"out": "{{embedding}}"}`, `{"out":[1,"2"]}`, "must be an array of numbers"},
		{`{"out": "{{embedding}}"}`, `{"out":[1,[2]]}`, "must be an array of numbers"},
		{`{"out": "{{embedding}}"}`, `{"out":[1e40]}`, "beyond 32 bits"},
		{`{"out": "{{embedding}}"}`, `[1]`, "answer must be an object"},
		{`{"a": [0, {"b": "{{embedding}}"}]}`, `{"a":[7]}`, "answer.a has 1 items, and none at index 1"},
		{`{"a": [0, "{{embedding}}"]}`, `{"a":{"b":1}}`, "answer.a must be an array"},
		{`["{{embedding}}", "{{..}}"]`, `[[1,2]]`, "must have 2 items"},
		{`["{{embedding}}", "{{..}}"]`, `[[1],[2],[3]]`, "must have 2 items"},
		{`["{{embedding}}", "{{..}}"]`, `[{"e":[1]},[2]]`, "answer[0] must be an array of numbers"},
		{`["{{embedding}}", "{{..}}"]`, `7`, "answer must be an array"},
	} {
		r, err := ParseResponse([]byte(tt.template))
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		got, err := r.Vectors([]byte(tt.answer), 2)
		if s := fmt.Sprint(got); s != tt.want && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s of %s: %s, %v", tt.template, tt.answer, s, err)
		}
	}
}

// FuzzForm parses any templates and answers. A body built from a template must read back as the template says.
func FuzzForm(f *testing.F) {
	for _, s := range []string{`{"in": "{{text}}"}`, `[{"a":"{{text}}"},"{{..}}"]`, `{"a":[1,["{{text}}"]],"b":"{{..}}"}`, `"{{text}}"`} {
		f.Add([]byte(s), []byte(`{"in":[1]}`))
	}
	f.Fuzz(func(t *testing.T, template, answer []byte) {
		if r, err := ParseResponse(bytes.ReplaceAll(template, []byte(Text), []byte(Embedding))); err == nil && json.Valid(answer) {
			var compact bytes.Buffer
			json.Compact(&compact, answer)
			vectors, err := r.Vectors(compact.Bytes(), 1)
			if err == nil && len(vectors) != 1 {
				t.Fatalf("%d vectors", len(vectors))
			}
		}
		r, err := ParseRequest(template, Text)
		if err != nil {
			return
		}
		body := r.Body([]byte(`[1,2]`))
		response, err := ParseResponse(bytes.ReplaceAll(template, []byte(Text), []byte(Embedding)))
		if err != nil {
			return // the template has {{embedding}} in it too
		}
		if vectors, err := response.Vectors(body, 1); err == nil && fmt.Sprint(vectors) != "[[1 2]]" {
			t.Fatalf("%s: %s: %v", template, body, vectors)
		}
	})
}
