package template

import (
	"bytes"
	"encoding/json"

	"svc/internal/document"
	"svc/internal/jsontext"
)

// JSON is a JSON value whose strings are templates. It may be used from several goroutines.
type JSON struct {
	parts []jsonPart
	tail  []byte
}

// jsonPart is a stretch of JSON and the templated string after it.
type jsonPart struct {
	before   []byte
	template *Template
}

// ParseJSON reads a value. The error is that of the first string that is no template.
func ParseJSON(raw json.RawMessage) (*JSON, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, err
	}
	j := &JSON{}
	if err := j.read(compact.Bytes()); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *JSON) read(raw []byte) error {
	switch raw[0] {
	case '"':
		t, err := Parse(string(jsontext.AppendUnquoted(nil, raw)))
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
			return j.read(item)
		})
		j.tail = append(j.tail, ']')
		return err
	case '{':
		first := true
		j.tail = append(j.tail, '{')
		err := document.Fields(raw, func(name, item []byte) error {
			j.comma(&first)
			j.tail = append(jsontext.AppendQuoted(j.tail, name), ':')
			return j.read(item)
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

// RenderDocument renders the value for a document, a compact JSON object, under the variable doc.
// The error is a *RenderError.
func (j *JSON) RenderDocument(doc []byte) ([]byte, error) {
	o, err := readDocument(doc)
	if err != nil {
		return nil, err
	}
	globals := &object{}
	globals.set("doc", value{kind: kindObject, object: o})
	return j.render(globals, len(doc))
}

// Render renders the value under variables. The error is a *RenderError.
func (j *JSON) Render(variables ...Variable) ([]byte, error) {
	size := 0
	for _, v := range variables {
		size += len(v.Value)
	}
	return j.render(globalsOf(variables), size)
}

func (j *JSON) render(globals *object, size int) ([]byte, error) {
	var out []byte
	left := workLimit + size/workBytes // for all strings together
	for _, p := range j.parts {
		out = append(out, p.before...)
		s, err := p.template.runWithin(globals, &left, 0)
		if err != nil {
			return nil, err
		}
		out = jsontext.AppendQuoted(out, s)
	}
	return append(out, j.tail...), nil
}
