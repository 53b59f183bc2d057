// Package template renders texts about documents: the templates that
// embedders and chats are configured with, in the Liquid language.
//
// It is strict where Liquid is lenient, so that a misspelt field is found at
// once and not embedded as nothing: an unknown tag or filter is an error when
// the template is parsed, and so is a variable that a document lacks when it
// is rendered, unless it is asked for as a bare condition. Every rendering is
// bounded in steps and in memory, whatever the template.
//
// The language is implemented here and not taken from a library: the Go
// library of note, osteele/liquid, does not tell a field that is null from one
// that is missing, looks filters up only when they run, and runs loops over
// any range without a bound.
package template

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"svc/internal/document"
)

// Default is the template of an embedder that has none: the searchable fields of the document.
const Default = "{% for field in fields %}{% if field.is_searchable and field.value != nil %}{{ field.name }}: {{ field.value }}\n{% endif %}{% endfor %}"

// DefaultMaxBytes is the length at which texts are cut unless something else is said.
const DefaultMaxBytes = 400

// Template is a parsed template. It may be used from several goroutines.
type Template struct {
	body      []node
	isDefault bool
	fields    bool // it reads the variable fields
}

// Parse reads a template. The error says what is wrong in which line.
func Parse(source string) (*Template, error) {
	p := parser{pieces: split(source)}
	body, err := p.template()
	if err != nil {
		return nil, err
	}
	return &Template{body: body, isDefault: source == Default, fields: p.fields}, nil
}

// UsesSearchable reports whether what it renders may change with the fields that are searchable.
func (t *Template) UsesSearchable() bool { return t.fields }

// Render renders a document, a compact JSON object, under the variables doc and fields. searchable says which
// top-level fields are searched; maxBytes is the length at which the text is cut, on a
// character boundary; 0 for no cut. The error is a *RenderError.
func (t *Template) Render(doc []byte, searchable func(name string) bool, maxBytes int) (string, error) {
	if t.isDefault {
		return renderDefault(doc, searchable, maxBytes)
	}
	o, err := readDocument(doc)
	if err != nil {
		return "", err
	}
	globals := &object{}
	globals.set("doc", value{kind: kindObject, object: o})
	if t.fields {
		globals.set("fields", fieldsOf(o, searchable))
	}
	text, err := t.run(globals, len(doc), maxBytes)
	return cut(text, maxBytes), err
}

// Variable is a named JSON value that a template can read.
type Variable struct {
	Name  string
	Value json.RawMessage // compact
}

func globalsOf(variables []Variable) *object {
	globals := &object{}
	for _, v := range variables {
		globals.set(v.Name, fromJSON(v.Value))
	}
	return globals
}

func (t *Template) run(globals *object, size, maxBytes int) (string, error) {
	left := workLimit + size/workBytes
	return t.runWithin(globals, &left, maxBytes)
}

// runWithin renders with what is left of some work, and takes what it does off it.
func (t *Template) runWithin(globals *object, left *int, maxBytes int) (string, error) {
	r := renderer{globals: globals, limit: maxBytes, left: *left}
	err := r.block(t.body)
	*left = r.left
	switch err {
	case nil, errBreak, errContinue: // outside of a loop, the latter end the template
		return string(r.out), nil
	case errWork:
		return "", r.fail("%v", err)
	default:
		return "", err
	}
}

// RenderError says why a template does not fit what it is rendered for.
type RenderError struct {
	Line   int    // in the template, from 1
	Reason string // a sentence without its full stop
}

func (e *RenderError) Error() string { return e.Reason }

// readDocument gives a document's fields as an object. Its vectors are no part of it.
func readDocument(doc []byte) (*object, error) {
	o := &object{}
	err := document.Fields(doc, func(name, raw []byte) error {
		if string(name) != "_vectors" {
			o.set(string(name), lazy(raw))
		}
		return nil
	})
	if err != nil {
		return nil, &RenderError{Line: 1, Reason: err.Error()}
	}
	return o, nil
}

// shown reports whether a field is among those of the variable fields.
func shown(name string) bool { return name != "_geo" && name != "_vectors" }

func fieldsOf(doc *object, searchable func(string) bool) value {
	var list []value
	for _, m := range doc.members {
		if !shown(m.name) {
			continue
		}
		field := &object{}
		field.set("name", text(m.name))
		field.set("value", m.value)
		field.set("is_searchable", boolean(searchable(m.name)))
		list = append(list, value{kind: kindObject, object: field})
	}
	return value{kind: kindArray, list: list}
}

// renderDefault is Render of the default template, which is by far the most common, in one pass over the document.
func renderDefault(doc []byte, searchable func(string) bool, maxBytes int) (string, error) {
	out := make([]byte, 0, 256)
	full := errors.New("full")
	err := document.Fields(doc, func(name, raw []byte) error {
		if raw[0] == 'n' || !shown(string(name)) || !searchable(string(name)) {
			return nil
		}
		out = append(out, name...)
		out = append(out, ": "...)
		out = appendJSON(out, raw)
		out = append(out, '\n')
		if maxBytes > 0 && len(out) > maxBytes {
			return full
		}
		return nil
	})
	if err != nil && err != full {
		return "", &RenderError{Line: 1, Reason: err.Error()}
	}
	return cut(string(out), maxBytes), nil
}

// cut shortens text to at most limit bytes, whole characters.
func cut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
