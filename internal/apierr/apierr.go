// Package apierr owns the errors that users see: the table of codes with
// their type and HTTP status, and the error value that carries one of them;
// and the mark of a damaged file, made where the damage is found and asked
// about by one function.
package apierr

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/bytedance/sonic/encoder"
)

// Code names one kind of error, as clients match on it.
type Code string

type entry struct {
	kind   string
	status int
}

// Type returns the family of the code: invalid_request, auth, internal or system.
func (c Code) Type() string { return c.entry().kind }

// Status returns the HTTP status that answers a request refused with c.
func (c Code) Status() int { return c.entry().status }

// Link returns the address of the page that explains the code. It names no host, so that it leads to the answering server through any
// proxy.
func (c Code) Link() string { return "/docs/errors#" + string(c) }

// Codes returns all codes, in the order of their names.
func Codes() []Code { return slices.Sorted(maps.Keys(table)) }

func (c Code) entry() entry {
	e, ok := table[c]
	if !ok {
		return table[Internal]
	}
	return e
}

// Internal is the code of a failure that is not the caller's fault.
const Internal Code = "internal"

// Error is an error for a user: a code, and a message in one sentence or two that says what to do.
type Error struct {
	Code    Code
	Message string

	// HTTP overrides the status of the code, unless it is 0. A code for a missing resource has the status 404, for a resource in the
	// path. If a body names several resources and one is missing, HTTP is 400.
	HTTP int

	cause error // of a failure of the machine; it names files of the server, so only the log shows it
}

func (e *Error) Error() string { return e.Message }

// LogValue implements slog.LogValuer: the log also shows what failed on the machine, with the names of its files.
func (e *Error) LogValue() slog.Value {
	if e.cause == nil {
		return slog.StringValue(e.Message)
	}
	return slog.StringValue(e.Message + " (" + e.cause.Error() + ")")
}

// HasCause reports whether the log shows more of e than its message.
func (e *Error) HasCause() bool { return e.cause != nil }

// Status returns the HTTP status of an answer with e.
func (e *Error) Status() int {
	if e.HTTP != 0 {
		return e.HTTP
	}
	return e.Code.Status()
}

// AppendJSON appends the object that clients get: message, code, type and link.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"message":`...)
	dst = append(dst, encoder.Quote(strings.ToValidUTF8(e.Message, "\uFFFD"))...)
	dst = append(dst, `,"code":"`...)
	dst = append(dst, e.Code...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, e.Code.Type()...)
	dst = append(dst, `","link":"`...)
	dst = append(dst, e.Code.Link()...)
	return append(dst, `"}`...)
}

// New makes an error with a message formatted as by fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// From returns the user error in err's chain. If there is none, it returns
// one with a system code and advice if the machine lacks something, and
// otherwise an internal one with err's text.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var c *Corruption
	if errors.As(err, &c) {
		return New("invalid_store_file", "A file of the store is damaged. %s. (%v)", c.Advice(), err)
	}
	for _, l := range lacks {
		if errors.Is(err, l.errno) {
			return &Error{Code: l.code, Message: l.advice, cause: err}
		}
	}
	return &Error{Code: Internal, Message: err.Error()}
}

// Corruption marks a damaged file. It is made once, where the damage is
// found, and wrapped on its way up.
type Corruption struct {
	File    string
	Section string // part of the file, or ""
	Offset  int64  // byte offset in the file, or -1 when unknown
	Reason  string // what was expected and what was found

	Fatal   bool // nothing of the file is to be used any more
	Derived bool // what the file says was made of documents that stand in another one
}

// Advice returns the sentence that says what helps, without its full stop.
func (c *Corruption) Advice() string {
	if c.Derived {
		return "The server rebuilds it from the documents in another file: try again in a moment"
	}
	return "Restore it from a snapshot, or delete the index and send its documents again"
}

func (c *Corruption) Error() string {
	s := c.File
	if c.Section != "" {
		s += ": section " + c.Section
	}
	if c.Offset >= 0 {
		s += fmt.Sprintf(": offset %d", c.Offset)
	}
	return s + ": damaged: " + c.Reason
}

// IsCorruption reports whether err says that a file is damaged.
func IsCorruption(err error) bool {
	var c *Corruption
	return errors.As(err, &c)
}
