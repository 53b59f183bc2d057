package template

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"svc/internal/document"
)

// Default is the template of an embedder that has none: the searchable fields of the document.
const Default = "{% for field in fields %}{% if field.is_searchable and field.value != nil %}{{ field.name }}: {{ field.value }}\n{% endif %}{% endfor %}"

// DefaultMaxBytes is the length at which texts are truncated by default.
const DefaultMaxBytes = 400

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	body      []node
	isDefault bool
	fields    bool // it reads the variable fields
}

// MaxSource is the maximum size in bytes of a template, or of a value with templates in it. Parsed, it takes many times as much
// memory.
const MaxSource = 64 << 10

// ParseError describes what is wrong with a template, and in which line.
type ParseError struct{ reason string }

func (e *ParseError) Error() string { return e.reason }

var errLong = &ParseError{fmt.Sprintf("it is longer than %d bytes", MaxSource)}

// Parse reads a template. The error is a *ParseError, or the error that ended w. Bytes charged to the account stay charged.
func Parse(w Work, source string) (*Template, error) {
	if len(source) > MaxSource {
		return nil, errLong
	}
	return parse(newParseMeter(w), source)
}

func parse(m *meter, source string) (*Template, error) {
	p := parser{meter: m, pieces: split(m, source)}
	body, err := p.template()
	switch {
	case m.err != nil:
		return nil, m.err
	case err != nil:
		return nil, &ParseError{err.Error()}
	}
	return &Template{body: body, isDefault: source == Default, fields: p.fields}, nil
}

// UsesSearchable reports whether the output may depend on which fields are searchable.
func (t *Template) UsesSearchable() bool { return t.fields }

// Render renders a document, a compact JSON object, under the variables doc and fields. searchable says which
// top-level fields are searched; maxBytes is the length at which the text is cut, on a
// character boundary; 0 for no cut. The error is a *RenderError, or what ended w.
func (t *Template) Render(w Work, doc []byte, searchable func(name string) bool, maxBytes int) (string, error) {
	m := newMeter(w, len(doc))
	if t.isDefault {
		return renderDefault(m, doc, searchable, maxBytes)
	}
	o, err := readDocument(m, doc)
	if err != nil {
		return "", m.failed(err)
	}
	globals := &object{}
	globals.set("doc", value{kind: kindObject, object: o})
	if t.fields {
		globals.set("fields", fieldsOf(m, o, searchable))
	}
	text, err := t.run(m, globals, maxBytes)
	if err != nil {
		return "", m.failed(err)
	}
	return text, m.end(len(text))
}

// Variable is a named JSON value that a template can read.
type Variable struct {
	Name  string
	Value json.RawMessage // compact
}

// run renders within the rest of a meter. The error is a *RenderError if the meter has none, else errWork.
func (t *Template) run(m *meter, globals *object, maxBytes int) (string, error) {
	r := renderer{meter: m, globals: globals, limit: maxBytes}
	err := r.block(t.body)
	text := r.string(r.out[:cutAt(r.out, maxBytes)])
	switch {
	case m.err == errWork:
		return "", r.fail("%v", errWork)
	case m.err != nil:
		return "", m.err
	case err == nil, err == errBreak, err == errContinue: // outside of a loop, the latter end the template
		return text, nil
	}
	return "", err
}

// RenderError says why a template does not fit its input.
type RenderError struct {
	Line   int    // in the template, from 1
	Reason string // a sentence without its full stop
}

func (e *RenderError) Error() string { return e.Reason }

// readDocument returns a document's fields as an object, without its vectors.
func readDocument(m *meter, doc []byte) (*object, error) {
	o, err := m.readObject(doc, "_vectors")
	switch {
	case m.err == errWork, m.err == nil && err != nil:
		return nil, &RenderError{Line: 1, Reason: err.Error()}
	}
	return o, m.err
}

// shown reports whether a field is among those of the variable fields.
func shown(name string) bool { return name != "_geo" && name != "_vectors" }

// fieldsOf returns the variable fields: the top-level fields with their names and values, and whether they
// are searched.
func fieldsOf(m *meter, doc *object, searchable func(string) bool) value {
	list := m.makeList(len(doc.members))
	for _, of := range doc.members {
		if !shown(of.name) {
			continue
		}
		field := m.makeObject(3)
		if m.err != nil {
			return value{}
		}
		field.set("name", text(of.name))
		field.set("value", of.value)
		field.set("is_searchable", boolean(searchable(of.name)))
		list = append(list, value{kind: kindObject, object: field})
	}
	return array(list)
}

// renderDefault is Render of the default template, which is by far the most common, in one pass over the document.
func renderDefault(m *meter, doc []byte, searchable func(string) bool, maxBytes int) (string, error) {
	out, _ := m.room(nil, 256)
	err := document.Fields(doc, func(name, raw []byte) error {
		if raw[0] == 'n' || !shown(string(name)) || !searchable(string(name)) {
			return nil
		}
		out = m.appendText(m.appendBytes(out, name), ": ")
		out = m.appendText(m.appendJSON(out, raw, maxBytes), "\n")
		return m.enough(out, maxBytes)
	})
	if err != nil && err != errEnough {
		if m.err == nil || m.err == errWork {
			err = &RenderError{Line: 1, Reason: err.Error()}
		}
		return "", m.failed(err)
	}
	text := m.string(out[:cutAt(out, maxBytes)])
	if err := m.end(len(text)); err != nil {
		return "", m.failed(err)
	}
	return text, nil
}

// cut shortens text to at most limit bytes, whole characters.
func cut(text string, limit int) string {
	return text[:cutAt(text, limit)]
}

// cutAt returns where a text is cut.
func cutAt[T string | []byte](text T, limit int) int {
	if limit <= 0 || len(text) <= limit {
		return len(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return limit
}
