package logs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Mode is how records are written.
type Mode uint8

const (
	Human   Mode = iota // a line each: time LEVEL span{fields}: target: message fields
	Colored             // Human, with the colour codes of terminals
	JSON                // an object a line: timestamp, level, fields, target, span, spans
	Profile             // objects that profilers read: call sites, spans and when they were entered and left
)

// record is a log record. A group among its attributes is a span, a timed operation: it has the name of the group and is described by
// its members. Every other attribute is a field.
type record struct {
	time    time.Time
	level   slog.Level
	message string
	*origin
	span   slog.Attr // its key is "" if there is none
	fields []slog.Attr
}

// busy is the field that tells how long a span took.
const busy = "time.busy"

func (r *record) add(group string, a slog.Attr) {
	a.Value = a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}):
	case a.Value.Kind() != slog.KindGroup:
		a.Key = group + a.Key
		r.fields = append(r.fields, a)
	case group == "" && a.Key != "" && r.span.Key == "":
		r.span = a
	default:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, member := range a.Value.Group() {
			r.add(group, member)
		}
	}
}

// form writes records one after the other.
type form interface {
	append(dst []byte, r *record) []byte
}

func newForm(m Mode, memory bool) form {
	switch m {
	case JSON:
		return jsonForm{}
	case Profile:
		return newProfile(memory)
	}
	return humanForm{colored: m == Colored}
}

const timeFormat = "2006-01-02T15:04:05.000000Z"

type humanForm struct{ colored bool }

var colors = map[string]string{"ERROR": "31", "WARN": "33", "INFO": "32", "DEBUG": "34", "TRACE": "35"}

func (f humanForm) paint(dst []byte, code, text string) []byte {
	if !f.colored {
		return append(dst, text...)
	}
	return fmt.Appendf(dst, "\x1b[%sm%s\x1b[0m", code, text)
}

func (f humanForm) append(dst []byte, r *record) []byte {
	dst = f.paint(dst, "2", r.time.UTC().Format(timeFormat))
	level := levelName(r.level)
	dst = append(dst, "  "[:max(0, 6-len(level))]...) // names end in one column
	dst = f.paint(dst, colors[level], level)
	dst = append(dst, ' ')
	if r.span.Key != "" {
		dst = f.paint(dst, "1", r.span.Key)
		dst = append(dst, '{')
		for i, a := range r.span.Value.Group() {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = appendPair(dst, a)
		}
		dst = append(dst, "}: "...)
	}
	dst = f.paint(dst, "2", r.target+":")
	dst = append(dst, ' ')
	dst = append(dst, oneLine(r.message)...)
	for _, a := range r.fields {
		dst = append(dst, ' ')
		dst = appendPair(dst, a)
	}
	return append(dst, '\n')
}

// oneLine keeps a message from being taken for several, and from commanding a terminal.
func oneLine(message string) string {
	if !strings.ContainsFunc(message, unicode.IsControl) {
		return message
	}
	quoted := strconv.Quote(message)
	return quoted[1 : len(quoted)-1]
}

// appendPair writes key=value, quoted where a reader could not see its end otherwise.
func appendPair(dst []byte, a slog.Attr) []byte {
	dst = append(dst, a.Key...)
	dst = append(dst, '=')
	text := textOf(a.Value)
	if text == "" || strings.ContainsFunc(text, func(c rune) bool {
		return c <= ' ' || c == '"' || c == '=' || c == '{' || c == '}' || c == unicode.ReplacementChar || !unicode.IsPrint(c)
	}) {
		return strconv.AppendQuote(dst, text)
	}
	return append(dst, text...)
}

// textOf writes a value as people read it.
func textOf(v slog.Value) string {
	v = v.Resolve()
	if err, ok := v.Any().(error); ok && v.Kind() == slog.KindAny {
		return err.Error()
	}
	if v.Kind() == slog.KindTime {
		return v.Time().Format(time.RFC3339Nano)
	}
	return v.String()
}

type jsonForm struct{}

func (jsonForm) append(dst []byte, r *record) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = r.time.UTC().AppendFormat(dst, timeFormat)
	dst = append(dst, `","level":"`...)
	dst = append(dst, levelName(r.level)...)
	dst = append(dst, `","fields":{"message":`...)
	dst = appendJSON(dst, r.message)
	dst = appendMembers(dst, r.fields)
	dst = append(dst, `},"target":`...)
	dst = appendJSON(dst, r.target)
	if r.span.Key != "" {
		var span []byte
		span = append(span, `{"name":`...)
		span = appendJSON(span, r.span.Key)
		span = appendMembers(span, r.span.Value.Group())
		span = append(span, '}')
		dst = append(dst, `,"span":`...)
		dst = append(dst, span...)
		dst = append(dst, `,"spans":[`...)
		dst = append(dst, span...)
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

// appendMembers writes ,"key":value for each attribute.
func appendMembers(dst []byte, attrs []slog.Attr) []byte {
	for _, a := range attrs {
		dst = append(dst, ',')
		dst = appendJSON(dst, a.Key)
		dst = append(dst, ':')
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindBool:
			dst = append(dst, v.String()...)
		default:
			dst = appendJSON(dst, textOf(v))
		}
	}
	return dst
}

// appendJSON writes a string. Invalid UTF-8 becomes U+FFFD.
func appendJSON(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...) // not for strings
	}
	return append(dst, b...)
}
