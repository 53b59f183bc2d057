package document

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync"

	"github.com/dop251/goja"

	"svc/internal/apierr"
	"svc/internal/document/script"
)

// Script is a compiled edit function. It may be used by several goroutines at once.
type Script struct {
	program  *goja.Program
	machines sync.Pool // of *machine
}

// Compile compiles the script dialect of documents/edit; bad_request when it does not.
// What the dialect is, package script says.
func Compile(source string) (*Script, error) {
	js, err := script.Translate(source)
	if err != nil {
		return nil, apierr.New("bad_request", "The function does not compile: %v.", err)
	}
	program, err := goja.Compile("function", js, false)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the translation of an edit function: %w", err)
	}
	return &Script{program: program}, nil
}

// Edit runs the script on doc with context (JSON or nil). It returns the changed document,
// doc itself when it stayed the same, or nil when the script removed it. Fields that the script left alone keep their
// place and spelling. Errors of the script, running for too long among them, have code edit_documents_by_function_error.
//
// Edit does not know the primary key: the caller compares the external ids before and after.
func (s *Script) Edit(doc, context []byte) ([]byte, error) {
	m, _ := s.machines.Get().(*machine)
	if m == nil {
		var err error
		if m, err = newMachine(s.program); err != nil {
			return nil, err
		}
	}
	defer s.machines.Put(m)
	defer m.reset()
	return m.edit(doc, context)
}

// callStack is how many calls of functions may be open at once; walking a value takes up to three for each level.
const callStack = 1024

var runtimeProgram = sync.OnceValues(func() (*goja.Program, error) {
	return goja.Compile("runtime", script.Runtime, false)
})

// A machine is a JavaScript runtime with one script loaded. Nothing of a run is left in it
// that the next could see.
type machine struct {
	js            *goja.Runtime
	main          goja.Value
	run           goja.Callable // (main, names of fields, is there a context) → list of fields
	failure, line goja.Callable
	names         [][]byte // of the document's fields, as they stand in JSON
	values        [][]byte
	context       []byte // compact
}

func newMachine(program *goja.Program) (*machine, error) {
	runtime, err := runtimeProgram()
	if err != nil {
		return nil, fmt.Errorf("cannot compile the runtime of edit functions: %w", err)
	}
	m := &machine{js: goja.New()}
	m.js.SetMaxCallStackSize(callStack)
	object, err := m.load(runtime, m.js.ToValue(map[string]any{
		"parse": func(call goja.FunctionCall) goja.Value {
			raw := m.context
			if place := call.Argument(0).ToInteger(); place >= 0 {
				raw = m.values[place]
			}
			return m.value(raw, call.Argument(1))
		},
		"float": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(string(appendFloat(nil, call.Argument(0).ToFloat())))
		},
	}))
	if err != nil {
		return nil, err
	}
	for name, f := range map[string]*goja.Callable{"run": &m.run, "failure": &m.failure, "lineOf": &m.line} {
		*f, _ = goja.AssertFunction(object.ToObject(m.js).Get(name))
	}
	m.main, err = m.load(program, object)
	return m, err
}

// load runs a program that is a function, and calls this with an argument.
func (m *machine) load(program *goja.Program, arg goja.Value) (goja.Value, error) {
	v, err := m.js.RunProgram(program)
	if err != nil {
		return nil, fmt.Errorf("cannot load an edit function: %w", err)
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errors.New("cannot load an edit function: it is no function")
	}
	if v, err = f(goja.Undefined(), arg); err != nil {
		return nil, fmt.Errorf("cannot load an edit function: %w", err)
	}
	return v, nil
}

// reset lets go of the document.
func (m *machine) reset() {
	clear(m.names)
	clear(m.values)
	m.names, m.values, m.context = m.names[:0], m.values[:0], nil
}

func (m *machine) edit(doc, context []byte) ([]byte, error) {
	fields, err := membersOf(doc)
	if err != nil {
		return nil, err
	}
	var names []any
	for fields.next() {
		names = append(names, string(fields.name()))
		m.names = append(m.names, fields.raw)
		m.values = append(m.values, fields.value)
	}
	if fields.err != nil {
		return nil, fields.err
	}
	if len(context) > 0 {
		var compact bytes.Buffer
		if n, err := Convert(&compact, bytes.NewReader(context), NDJSON, 0); err != nil || n != 1 {
			return nil, apierr.New("invalid_document_edition_context", "The context is not a JSON object.")
		}
		m.context = bytes.TrimSpace(compact.Bytes())
	}
	list, err := m.run(goja.Undefined(), m.main, m.js.NewArray(names...), m.js.ToValue(m.context != nil))
	if err != nil {
		return nil, m.explain(err)
	}
	if goja.IsUndefined(list) {
		return nil, nil
	}
	out, err := m.assemble(list.ToObject(m.js), len(doc))
	if err != nil || bytes.Equal(out, doc) {
		return doc, err
	}
	return out, nil
}

// explain turns what a run threw into the error for the user.
func (m *machine) explain(err error) error {
	message := "it nests calls or values too deeply, or gives a function the wrong arguments"
	if thrown := (*goja.Exception)(nil); errors.As(err, &thrown) {
		if v, err := m.failure(goja.Undefined(), thrown.Value()); err == nil && !goja.IsUndefined(v) {
			message = v.String()
		}
	}
	line := int64(0)
	if v, err := m.line(goja.Undefined()); err == nil {
		line = v.ToInteger()
	}
	return apierr.New("edit_documents_by_function_error", "The function failed in line %d: %s.", line, excerpt([]byte(message)))
}

// value makes the script's value of a compact JSON text, with objects as arrays that start with mark.
func (m *machine) value(raw []byte, mark goja.Value) goja.Value {
	switch raw[0] {
	case '{':
		fields, _ := membersOf(raw)
		items := []any{mark}
		for fields.next() {
			name := string(fields.name())
			items = append(items, name, m.value(fields.value, mark))
		}
		return m.js.NewArray(items...)
	case '[':
		var items []any
		for i := 1; i < len(raw)-1; {
			end := valueEnd(raw, i)
			items = append(items, m.value(raw[i:end], mark))
			if i = end; raw[i] == ',' {
				i++
			}
		}
		return m.js.NewArray(items...)
	case '"':
		return m.js.ToValue(string(AppendUnquoted(nil, raw)))
	case 't', 'f':
		return m.js.ToValue(raw[0] == 't')
	case 'n':
		return goja.Undefined()
	}
	if isInteger64(raw) {
		n, _ := new(big.Int).SetString(string(raw), 10)
		return m.js.ToValue(n)
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return m.js.ToValue(f)
}

// assemble writes the document that finish listed.
func (m *machine) assemble(list *goja.Object, size int) ([]byte, error) {
	out := make([]byte, 1, size+size/4+padding)
	out[0] = '{'
	n := int(list.Get("length").ToInteger())
	for i := 0; i < n; i += 2 {
		name := list.Get(strconv.Itoa(i)).String()
		what := list.Get(strconv.Itoa(i + 1))
		if text, ok := what.Export().(string); ok {
			quoted := AppendQuoted(nil, []byte(name))
			out = appendMember(out, quoted[1:len(quoted)-1], []byte(text))
			continue
		}
		place := what.ToInteger()
		out = appendMember(out, m.names[place], m.values[place])
	}
	out = append(out, '}')
	// A script can nest values deeper than a document may be.
	s := scanner{data: append(out, make([]byte, padding)...), end: len(out)}
	if s.document(0) < 0 {
		return nil, apierr.New("edit_documents_by_function_error", "The function made a document that cannot be stored: %s.", s.fail)
	}
	return out, nil
}
