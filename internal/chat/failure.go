package chat

import (
	"encoding/json"
	"fmt"

	"svc/internal/jsontext"
)

// failure is what an error event tells of.
type failure struct {
	kind    string  // type
	code    *string // nil stands for null
	message string
	param   *string
	detail  string // for the log only, after the message: the address of the provider, and its response if that is no error object
}

// Kinds of failures that are not the provider's own.
const (
	transportKind   = "transport_error"        // the provider cannot be reached, or breaks off
	unreadableKind  = "reqwest_error"          // it refuses, but not in its own words
	unparsableKind  = "json_deserialize_error" // its answer is not what the API says
	searchKind      = "response_error"         // a search failed, or the conversation did
	internalFailure = "internal"               // code
)

// Error is the text for the log.
func (f *failure) Error() string { return f.message + f.detail }

// at adds the address of the provider to the detail.
func (f *failure) at(e *endpoint) *failure { return f.because("provider %s", e.name()) }

func (f *failure) because(format string, args ...any) *failure {
	f.detail += " (" + fmt.Sprintf(format, args...) + ")"
	return f
}

func transportFailure(format string, args ...any) *failure {
	return &failure{kind: transportKind, message: fmt.Sprintf(format, args...)}
}

func unparsable(format string, args ...any) *failure {
	code := internalFailure
	return &failure{kind: unparsableKind, code: &code, message: fmt.Sprintf(format, args...)}
}

// providerError is an error in the form of providers. Its members may be of any type.
type providerError struct {
	Object  any `json:"object"`
	Type    any `json:"type"`
	Code    any `json:"code"`
	Message any `json:"message"`
	Param   any `json:"param"`
}

// readFailure reads the error object of a provider: {"error": {…}}, or only its members. It returns nil for other bodies.
func readFailure(body []byte) *failure {
	var wrapped struct {
		Error json.RawMessage `json:"error"`
		providerError
	}
	if json.Unmarshal(body, &wrapped) != nil {
		return nil
	}
	e := wrapped.providerError
	if wrapped.Error != nil && string(wrapped.Error) != "null" {
		e = providerError{Object: "error"}
		if json.Unmarshal(wrapped.Error, &e) != nil {
			return nil
		}
	} else if e.Object != "error" && e.Type == nil {
		return nil
	}
	message, ok := e.Message.(string)
	if !ok {
		return nil
	}
	f := &failure{kind: searchKind, code: textOf(e.Code), message: message, param: textOf(e.Param)}
	if kind := textOf(e.Type); kind != nil {
		f.kind = *kind
	}
	return f
}

// textOf returns what a member says; nil for nothing.
func textOf(v any) *string {
	var s string
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		s = v
	default:
		s = string(marshal(v))
	}
	return &s
}

// event is the failure as clients get it.
func (f *failure) event() []byte {
	b := arguments{}.text("event_id", newEventID()).text("type", "error")
	e := arguments{}.text("type", f.kind)
	for _, m := range []struct {
		name string
		text *string
	}{{"code", f.code}, {"message", &f.message}, {"param", f.param}} {
		if m.text == nil {
			e = e.json(m.name, null)
		} else {
			e = e.text(m.name, *m.text)
		}
	}
	return b.json("error", e.json("event_id", null).end()).end()
}

// toolEvent is a chunk with one whole call of a tool of the service. about is the chunk of the provider that it was derived from.
func toolEvent(about *chunk, tool string, arguments []byte) []byte {
	call := jsontext.AppendQuoted(append([]byte(nil), `{"index":0,"id":`...), newEventID())
	call = jsontext.AppendQuoted(append(call, `,"type":"function","function":{"name":`...), tool)
	call = append(jsontext.AppendQuoted(append(call, `,"arguments":`...), string(arguments)), "}}"...)
	delta := appendMembers(nil, map[string]json.RawMessage{
		"role": json.RawMessage(`"assistant"`), "tool_calls": append(append([]byte{'['}, call...), ']'),
	}, deltaMembers)
	choice := appendMembers(nil, map[string]json.RawMessage{"index": json.RawMessage("0"), "delta": delta}, choiceMembers)
	members := map[string]json.RawMessage{"choices": append(append([]byte{'['}, choice...), ']')}
	for _, name := range []string{"id", "object", "created", "model", "service_tier", "system_fingerprint"} {
		members[name] = about.members[name]
	}
	return appendMembers(nil, members, chunkMembers)
}
