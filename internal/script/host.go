package script

import (
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"svc/internal/jsontext"
)

// host provides functions to runtime.js: JSON, and string operations that JavaScript could only do character by character, or in time
// proportional to the product of two lengths. Positions count characters.
func (m *machine) host() map[string]any {
	text := func(call goja.FunctionCall, i int) string { return call.Argument(i).String() }
	number := func(call goja.FunctionCall, i int) int { return int(call.Argument(i).ToInteger()) }
	list := func(parts []string) goja.Value {
		values := make([]any, len(parts))
		for i, p := range parts {
			values[i] = p
		}
		return m.js.NewArray(values...)
	}
	return map[string]any{
		// parse(place of a field or −1 for the context, mark, operations left) → [value, operations left] or undefined
		"parse": func(call goja.FunctionCall) goja.Value {
			raw := m.context
			if place := number(call, 0); place >= 0 {
				raw = m.values[place]
			}
			r := reader{m.js, call.Argument(1), number(call, 2)}
			v := r.value(raw)
			if v == nil {
				return goja.Undefined()
			}
			return m.js.NewArray(v, r.left)
		},
		// pause lets searches go before; see machine.rest
		"pause": func(goja.FunctionCall) goja.Value { m.rest(); return goja.Undefined() },
		"float": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(string(jsontext.AppendFloat(nil, call.Argument(0).ToFloat()))) // finite: see runtime.js
		},
		"len":   func(call goja.FunctionCall) goja.Value { return m.js.ToValue(utf8.RuneCountInString(text(call, 0))) },
		"bytes": func(call goja.FunctionCall) goja.Value { return m.js.ToValue(len(text(call, 0))) },
		// slice(s, from, to)
		"slice": func(call goja.FunctionCall) goja.Value {
			s := text(call, 0)
			from := offset(s, number(call, 1))
			return m.js.ToValue(s[from : from+offset(s[from:], max(number(call, 2)-number(call, 1), 0))])
		},
		// index(s, x, from) → −1 when it is not there
		"index": func(call goja.FunctionCall) goja.Value {
			s, from := text(call, 0), number(call, 2)
			rest := s[offset(s, from):]
			at := strings.Index(rest, text(call, 1))
			if at < 0 {
				return m.js.ToValue(-1)
			}
			return m.js.ToValue(from + utf8.RuneCountInString(rest[:at]))
		},
		"contains": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(strings.Contains(text(call, 0), text(call, 1)))
		},
		"count": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(strings.Count(text(call, 0), text(call, 1)))
		},
		"split":  func(call goja.FunctionCall) goja.Value { return list(strings.Split(text(call, 0), text(call, 1))) },
		"fields": func(call goja.FunctionCall) goja.Value { return list(strings.Fields(text(call, 0))) },
		"replace": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(strings.ReplaceAll(text(call, 0), text(call, 1), text(call, 2)))
		},
		// compare orders by code points.
		"compare": func(call goja.FunctionCall) goja.Value {
			return m.js.ToValue(strings.Compare(text(call, 0), text(call, 1)))
		},
	}
}

// offset returns where the character after n others begins, or the end.
func offset(s string, n int) int {
	for i := range s {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(s)
}
