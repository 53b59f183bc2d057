package chat

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// The service's tools are named after it, or after the engine whose API it implements. Each answer uses the name of the request.
var prefixes = []string{"_svc", "_meili"}

// What the names of the tools end in.
const (
	progressTool = "SearchProgress"
	sourcesTool  = "SearchSources"
	messageTool  = "AppendConversationMessage"
	searchTool   = "SearchInIndex"
)

// cutPrefix takes the service's name off a tool's.
func cutPrefix(name string) (prefix, tool string, ok bool) {
	for _, prefix := range prefixes {
		if tool, ok := strings.CutPrefix(name, prefix); ok {
			return prefix, tool, true
		}
	}
	return "", "", false
}

// declared are the tools of the service that a client declares to be notified of. If a field has two names, the client's declaration
// decides.
type declared struct {
	prefix   string // of the search tool
	progress *declaredTool
	sources  *declaredTool
	message  *declaredTool
}

type declaredTool struct {
	Name       string `json:"name"`
	Parameters struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"parameters"`
}

// field returns the name of an argument: usual, unless only the other one was declared.
func (d *declaredTool) field(usual, other string) string {
	_, hasUsual := d.Parameters.Properties[usual]
	if _, hasOther := d.Parameters.Properties[other]; hasOther && !hasUsual {
		return other
	}
	return usual
}

// parseTools reads the member tools of a request.
func parseTools(tools []json.RawMessage) (declared, error) {
	d := declared{prefix: prefixes[0]}
	for i, raw := range tools {
		var tool struct {
			Type     string        `json:"type"`
			Function *declaredTool `json:"function"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return d, bad("`tools[%d]` is not a tool. It must be an object with `type` and `function`, and the latter an object with `name`, such as `{\"type\": \"function\", \"function\": {\"name\": \"%s%s\"}}`.", i, prefixes[0], progressTool)
		}
		if tool.Type == "function" && (tool.Function == nil || tool.Function.Name == "") {
			return d, bad("`tools[%d]` has no `function` with a `name`.", i)
		}
		external := func() error {
			return apierr.New("unimplemented_external_function_calling", "`tools[%d]` is not one of the service's own tools, and other tools cannot be called. Declare some of `%s%s`, `%[2]s%[4]s` and `%[2]s%[5]s`.", i, prefixes[0], progressTool, sourcesTool, messageTool)
		}
		if tool.Type != "function" {
			if tool.Type == "" {
				return d, bad("`tools[%d]` has no `type`.", i)
			}
			return d, external()
		}
		prefix, name, ok := cutPrefix(tool.Function.Name)
		if !ok {
			return d, external()
		}
		switch name {
		case progressTool:
			d.progress = tool.Function
		case sourcesTool:
			d.sources = tool.Function
		case messageTool:
			d.message = tool.Function
		case searchTool:
			return d, bad("`tools[%d]` is `%s`, which the server declares to the model itself. Remove it.", i, tool.Function.Name)
		default:
			return d, external()
		}
		if i == 0 {
			d.prefix = prefix
		}
	}
	return d, nil
}

// Index is an index that the model may search.
type Index struct {
	UID         string
	Description string // "" for none
	Fields      []Field
}

// Field is a field that filters may use.
type Field struct {
	Name   string
	Values []string // some of its values, the most frequent first
}

// MaxHintBytes limits what the model learns about fields and their values.
const MaxHintBytes = 64 << 10

// searchDefinition is the tool that the model gets.
func searchDefinition(name string, p Prompts, indexes []Index) json.RawMessage {
	type object = map[string]any
	var description, filters strings.Builder
	description.WriteString(*p.SearchDescription)
	filters.WriteString(*p.SearchFilterParam)
	uid := object{"type": "string", "description": *p.SearchIndexUIDParam}
	var uids []string
	for i := range indexes {
		x := &indexes[i]
		uids = append(uids, x.UID)
		fmt.Fprintf(&description, "\n\n - %s: %s", x.UID, x.Description)
		if filters.Len() < MaxHintBytes {
			x.appendFilters(&filters)
		}
	}
	if len(uids) > 0 { // an empty list of choices is refused by providers
		uid["enum"] = uids
	}
	return marshal(object{"type": "function", "function": object{
		"name": name, "description": description.String(), "strict": true,
		"parameters": object{
			"type": "object", "additionalProperties": false,
			"required": []string{"index_uid", "q", "filter"},
			"properties": object{
				"index_uid": uid,
				"q":         object{"type": "string", "description": *p.SearchQParam},
				"filter":    object{"type": "string", "description": filters.String()},
			},
		},
	}})
}

// appendFilters says which fields filters on the index may use.
func (x *Index) appendFilters(b *strings.Builder) {
	if len(x.Fields) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Fields of %s\n", x.UID)
	for _, f := range x.Fields {
		if b.Len() >= MaxHintBytes {
			return
		}
		fmt.Fprintf(b, "%s: %s.\n", f.Name, strings.Join(f.Values, ", "))
	}
}

// Query is a search that the model asks for.
type Query struct {
	Index  string
	Q      string
	Filter string // "" for none
}

func parseQuery(arguments string) (q Query, err error) {
	var p struct {
		Index  *string `json:"index_uid"`
		Q      *string `json:"q"`
		Filter *string `json:"filter"`
	}
	err = json.Unmarshal([]byte(arguments), &p)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) { // its text names types of Go
		return q, errors.New("the arguments are not those of the tool: they must be an object with the strings index_uid, q and filter")
	}
	if err != nil {
		return q, fmt.Errorf("the arguments are not those of the tool: %w", err)
	}
	if p.Index == nil {
		return q, fmt.Errorf("the arguments are not those of the tool: index_uid is missing")
	}
	q.Index = *p.Index
	if p.Q != nil {
		q.Q = *p.Q
	}
	if p.Filter != nil {
		q.Filter = strings.TrimSpace(*p.Filter)
	}
	return q, nil
}

// arguments builds the arguments of an event.
type arguments []byte

func (a arguments) json(name string, v []byte) arguments {
	if len(a) == 0 {
		a = append(a, '{')
	} else {
		a = append(a, ',')
	}
	return append(append(jsontext.AppendQuoted(a, name), ':'), v...)
}

func (a arguments) text(name, v string) arguments { return a.json(name, jsontext.AppendQuoted(nil, v)) }

func (a arguments) end() []byte { return append(a, '}') }

// appendCall appends a call as messages have it.
func appendCall(dst []byte, c *call) []byte {
	dst = jsontext.AppendQuoted(append(dst, `{"id":`...), c.ID)
	dst = jsontext.AppendQuoted(append(dst, `,"type":"function","function":{"name":`...), c.Name)
	dst = jsontext.AppendQuoted(append(dst, `,"arguments":`...), c.Arguments)
	return append(dst, "}}"...)
}

// progressArguments tell of a search that begins.
func (d *declared) progressArguments(c *call) []byte {
	return arguments{}.text("call_id", c.ID).text("function_name", c.Name).
		text(d.progress.field("function_parameters", "function_arguments"), c.Arguments).end()
}

// sourcesArguments tell what a search found.
func (d *declared) sourcesArguments(c *call, documents []byte) []byte {
	return arguments{}.text("call_id", c.ID).json(d.sources.field("documents", "sources"), documents).end()
}

var null = []byte("null")

// askedArguments are the message by which the model made a call.
func askedArguments(c *call) []byte {
	return arguments{}.text("role", "assistant").text("content", "").
		json("tool_calls", append(appendCall([]byte{'['}, c), ']')).json("tool_call_id", null).end()
}

// answeredArguments are the message that answers a call.
func answeredArguments(c *call, content string) []byte {
	return arguments{}.text("role", "tool").text("content", content).
		json("tool_calls", null).text("tool_call_id", c.ID).end()
}

// newCallID makes an id for a call without one: nine letters and digits, which the strictest provider requires.
func newCallID() string { return rand.Text()[:9] }

// newEventID makes the id of an event.
func newEventID() string { return uuid.New().String() }

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("chat: " + err.Error()) // nothing that is marshalled can fail
	}
	return b
}
