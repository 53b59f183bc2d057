package template

import (
	"bytes"
	"encoding/json"

	"svc/internal/document"
	"svc/internal/jsontext"
)

// JSON is a JSON value whose strings are templates. It is safe for concurrent use.
type JSON struct {
	parts []jsonPart
	tail  []byte
}

// jsonPart is a stretch of JSON and the templated string after it.
type jsonPart struct {
	before   []byte
	template *Template
}

// ParseJSON reads a value. The error is a *ParseError, that of the first invalid template, or the one that ended w. The account stays
// charged.
func ParseJSON(w Work, raw json.RawMessage) (*JSON, error) {
	if len(raw) > MaxSource {
		return nil, errLong
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, &ParseError{err.Error()}
	}
	j := &JSON{}
	if err := j.read(newParseMeter(w), compact.Bytes()); err != nil {
		return nil, err
	}
	return j, nil
}

// read splits a value into the strings, which are templates, and the text around them.
func (j *JSON) read(m *meter, raw []byte) error {
	bytes := nodeBytes
	if raw[0] == '"' {
		bytes += 5 * len(raw) // its text, which is copied, and growing containers
	}
	if err := m.make(bytes); err != nil {
		return err
	}
	switch raw[0] {
	case '"':
		t, err := parse(m, string(jsontext.AppendUnquoted(nil, raw)))
		if err != nil {
			return err
		}
		j.parts = append(j.parts, jsonPart{j.tail, t})
		j.tail = nil
		return nil
	case '[':
		first := true
		j.tail = append(j.tail, '[')
		err := document.Elements(raw, func(item []byte) error {
			j.comma(&first)
			return j.read(m, item)
		})
		j.tail = append(j.tail, ']')
		return err
	case '{':
		first := true
		j.tail = append(j.tail, '{')
		err := document.Fields(raw, func(name, item []byte) error {
			j.comma(&first)
			j.tail = append(jsontext.AppendQuoted(j.tail, name), ':')
			return j.read(m, item)
		})
		j.tail = append(j.tail, '}')
		return err
	}
	j.tail = append(j.tail, raw...)
	return nil
}

func (j *JSON) comma(first *bool) {
	if !*first {
		j.tail = append(j.tail, ',')
	}
	*first = false
}

// RenderDocument renders the value for a document, a compact JSON object, under the variable doc. The error is a *RenderError, or what
// ended w.
func (j *JSON) RenderDocument(w Work, doc []byte) ([]byte, error) {
	m := newMeter(w, len(doc))
	o, err := readDocument(m, doc)
	if err != nil {
		return nil, m.failed(err)
	}
	globals := &object{}
	globals.set("doc", value{kind: kindObject, object: o})
	return j.render(m, globals)
}

// Render renders the value under variables. The error is a *RenderError, or what ended w.
func (j *JSON) Render(w Work, variables ...Variable) ([]byte, error) {
	size := 0
	globals := &object{}
	for _, v := range variables {
		size += len(v.Value)
		globals.set(v.Name, lazy(v.Value))
	}
	return j.render(newMeter(w, size), globals)
}

// render renders all strings within the limits of one rendering.
func (j *JSON) render(m *meter, globals *object) ([]byte, error) {
	var out []byte
	for _, p := range j.parts {
		out = m.appendBytes(out, p.before)
		s, err := p.template.run(m, globals, 0)
		if err != nil {
			return nil, m.failed(err)
		}
		out = m.appendQuoted(out, s)
	}
	out = m.appendBytes(out, j.tail)
	if err := m.end(len(out)); err != nil {
		return nil, m.failed(err)
	}
	return out, nil
}
