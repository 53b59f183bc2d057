package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync"
	"time"

	"github.com/dop251/goja"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/pace"
)

// Function is a compiled edit function. It is safe for concurrent use.
type Function struct {
	program  func() (*goja.Program, error) // compiled for the first document: there may be none
	context  []byte                        // compact JSON, or nil
	machines sync.Pool                     // of *machine
	// The limits of a run. Tests lower them.
	operations int
	deadline   time.Duration
}

// Compile compiles a function (the error is bad_request if this fails) that is called with context, a JSON object or nil
// (invalid_document_edition_context). The first Edit does the slowest part, which takes up to a second of a processor.
func Compile(source string, context []byte) (*Function, error) {
	js, err := translate(source)
	if err != nil {
		return nil, refused(err)
	}
	f := &Function{operations: budget, deadline: deadline}
	f.program = sync.OnceValues(func() (*goja.Program, error) { return goja.Compile("function", js, false) })
	if len(context) > 0 {
		var compact bytes.Buffer
		if n, err := document.Convert(&compact, bytes.NewReader(context), document.NDJSON, 0); err != nil || n != 1 {
			return nil, apierr.New("invalid_document_edition_context", "The context is not a JSON object.")
		}
		f.context = bytes.TrimSpace(compact.Bytes())
	}
	return f, nil
}

// Check refuses functions with a syntax error, or too long ones (bad_request), in time linear in the source. Compile may still refuse
// what Check accepts.
func Check(source string) error {
	if err := check(source); err != nil {
		return refused(err)
	}
	return nil
}

func refused(err error) error {
	return apierr.New("bad_request", "The function does not compile: %v.", err)
}

// deadline is the time limit of a run: several times as long as a run that uses up its operations takes.
const deadline = 20 * time.Second

var errDeadline = errors.New("the run of an edit function takes too long")

// Edit runs the function on a document. It returns the changed document, doc itself if it did not change, or nil if the function
// removed it. Unchanged fields keep their order and spelling. Errors of the function, including a timeout, have the code
// edit_documents_by_function_error. Once ctx is done, Edit soon returns its error. It yields to searches as ctx says.
//
// Edit does not know the primary key: the caller compares the external ids before and after.
func (f *Function) Edit(ctx context.Context, doc []byte) ([]byte, error) {
	m, _ := f.machines.Get().(*machine)
	if m == nil {
		program, err := f.program()
		if err != nil {
			return nil, fmt.Errorf("cannot compile the translation of an edit function: %w", err)
		}
		if m, err = newMachine(program); err != nil {
			return nil, err
		}
		pace.Of(ctx).Yield()
	}
	m.worker, m.end = pace.Of(ctx), time.Now().Add(f.deadline)
	m.timer = time.AfterFunc(f.deadline, func() { m.js.Interrupt(errDeadline) })
	stop := context.AfterFunc(ctx, func() { m.js.Interrupt(ctx.Err()) })
	out, err := m.edit(doc, f.context, f.operations)
	if m.timer.Stop() && stop() { // else an interruption may hit the next run: the machine is given up
		m.reset()
		f.machines.Put(m)
	}
	return out, err
}

// callStack is the maximum depth of function calls. Walking a value takes up to three for each level.
const callStack = 1024

// budget is how many operations a run has. Allocations cost operations in advance, about one per 64 bytes, so that the budget limits
// both time and memory.
const budget = 1_000_000

var runtimeProgram = sync.OnceValues(func() (*goja.Program, error) {
	return goja.Compile("runtime", operationsJS, false)
})

// A machine is a JavaScript runtime with one function loaded. A run leaves nothing in it that the next run could see.
type machine struct {
	js            *goja.Runtime
	main          goja.Value
	run           goja.Callable // (main, names of fields, is there a context, operations left) → list of fields
	failure, line goja.Callable
	names         [][]byte // of the document's fields, as they stand in JSON
	values        [][]byte
	context       []byte // compact

	worker *pace.Worker // nil: the run does not make way for searches
	end    time.Time    // when the run has taken too long
	timer  *time.Timer  // that interrupts it then
}

// rest yields to searches. The run is not charged for that time.
func (m *machine) rest() {
	if m.worker == nil || !m.timer.Stop() {
		return
	}
	m.end = m.end.Add(m.worker.Yield())
	m.timer.Reset(time.Until(m.end))
}

// newMachine loads the runtime and one function into a new JavaScript interpreter.
func newMachine(program *goja.Program) (*machine, error) {
	runtime, err := runtimeProgram()
	if err != nil {
		return nil, fmt.Errorf("cannot compile the runtime of edit functions: %w", err)
	}
	m := &machine{js: goja.New()}
	m.js.SetMaxCallStackSize(callStack)
	object, err := m.load(runtime, m.js.ToValue(m.host()))
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
	m.worker, m.timer = nil, nil
}

// edit runs the function with a budget of operations.
func (m *machine) edit(doc, context []byte, left int) ([]byte, error) {
	m.context = context
	var names []any
	err := document.Members(doc, func(raw, name, value []byte) error {
		if left -= fieldCost + len(name)/perOperation; left < 0 {
			return apierr.New("edit_documents_by_function_error", "The document has too many fields to be edited by a function.")
		}
		names = append(names, string(name))
		m.names = append(m.names, raw)
		m.values = append(m.values, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list, err := m.run(goja.Undefined(), m.main, m.js.NewArray(names...), m.js.ToValue(m.context != nil), m.js.ToValue(left))
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
	if stopped := (*goja.InterruptedError)(nil); errors.As(err, &stopped) {
		cause, _ := stopped.Value().(error)
		if !errors.Is(cause, errDeadline) {
			return cause
		}
		message = fmt.Sprintf("it takes longer than %v for a document", deadline)
		m.js.ClearInterrupt()
	} else if thrown := (*goja.Exception)(nil); errors.As(err, &thrown) {
		if v, err := m.failure(goja.Undefined(), thrown.Value()); err == nil && !goja.IsUndefined(v) {
			message = v.String()
		}
	}
	line := int64(0)
	if v, err := m.line(goja.Undefined()); err == nil {
		line = v.ToInteger()
	}
	return apierr.New("edit_documents_by_function_error", "The function failed in line %d: %s.", line, document.Excerpt([]byte(message)))
}

// assemble writes the document that finish listed.
func (m *machine) assemble(list *goja.Object, size int) ([]byte, error) {
	out := make([]byte, 1, size+size/4+64)
	out[0] = '{'
	n := int(list.Get("length").ToInteger())
	for i := 0; i < n; i += 2 {
		name := list.Get(strconv.Itoa(i)).String()
		what := list.Get(strconv.Itoa(i + 1))
		if text, ok := what.Export().(string); ok {
			quoted := jsontext.AppendQuoted(nil, []byte(name))
			out = document.AppendMember(out, quoted[1:len(quoted)-1], []byte(text))
			continue
		}
		place := what.ToInteger()
		out = document.AppendMember(out, m.names[place], m.values[place])
	}
	out = append(out, '}')
	// A script can nest values deeper than a document may be.
	if fault := document.Fault(out); fault != "" {
		return nil, apierr.New("edit_documents_by_function_error", "The function made a document that cannot be stored: %s.", fault)
	}
	return out, nil
}

// What values cost of the budget; runtime.js counts the same.
const (
	perOperation = 16 // bytes or UTF-16 units of a string
	arrayCost    = 4  // and one for each element
	mapCost      = 8  // and two for each field
	fieldCost    = 8
)

// reader makes the function's values of JSON.
type reader struct {
	js   *goja.Runtime
	mark goja.Value // maps are arrays that start with it
	left int        // operations
}

// value makes the value of a compact JSON text; nil once the operations are used up.
func (r *reader) value(raw []byte) goja.Value {
	if r.left -= 1 + len(raw)/(4*perOperation); r.left < 0 {
		return nil
	}
	switch raw[0] {
	case '{':
		items := []any{r.mark}
		r.left -= mapCost
		err := document.Members(raw, func(_, name, value []byte) error {
			r.left -= 2 + len(name)/perOperation
			v := r.value(value)
			if v == nil {
				return errDeadline
			}
			items = append(items, string(name), v)
			return nil
		})
		if err != nil {
			return nil
		}
		return r.js.NewArray(items...)
	case '[':
		var items []any
		r.left -= arrayCost
		err := document.Elements(raw, func(value []byte) error {
			v := r.value(value)
			if v == nil {
				return errDeadline
			}
			items = append(items, v)
			return nil
		})
		if err != nil && len(raw) > 2 {
			return nil
		}
		return r.js.NewArray(items...)
	case '"':
		if r.left -= len(raw) / perOperation; r.left < 0 {
			return nil
		}
		return r.js.ToValue(string(jsontext.AppendUnquoted(nil, raw)))
	case 't', 'f':
		return r.js.ToValue(raw[0] == 't')
	case 'n':
		return goja.Undefined()
	}
	if document.IsInteger64(raw) {
		n, _ := new(big.Int).SetString(string(raw), 10)
		return r.js.ToValue(n)
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return r.js.ToValue(f)
}
