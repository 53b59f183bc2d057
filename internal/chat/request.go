package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"svc/internal/apierr"
)

// Request is a client's request: messages, and how the model should continue.
type Request struct {
	Model    string
	members  map[string]json.RawMessage // that are passed on as they are
	messages []json.RawMessage
	declared declared
}

// ParseRequest reads the body of a request, which is valid JSON. Errors are *apierr.Error.
func ParseRequest(body []byte) (*Request, error) {
	r := &Request{}
	if err := json.Unmarshal(body, &r.members); err != nil || r.members == nil {
		return nil, bad("The body must be a JSON object with `model`, `messages` and `stream`.")
	}
	var (
		stream *bool
		n      *int
		tools  []json.RawMessage
		model  *string
		asked  []map[string]json.RawMessage
	)
	for _, m := range []struct {
		name, want string
		dst        any
	}{
		{"model", "a string", &model}, {"messages", "an array of objects", &asked}, {"stream", "`true` or `false`", &stream},
		{"n", "a whole number", &n}, {"tools", "an array", &tools},
	} {
		if member(r.members, m.name, m.dst) != nil {
			return nil, bad("`%s` must be %s.", m.name, m.want)
		}
	}
	switch {
	case model == nil:
		return nil, bad("`model` is missing. It is a model of the provider.")
	case asked == nil:
		return nil, bad("`messages` is missing. It is the conversation so far.")
	}
	r.Model = *model
	for i, m := range asked {
		message, err := cleanMessage(i, m)
		if err != nil {
			return nil, err
		}
		r.messages = append(r.messages, message)
	}
	switch {
	case n != nil && *n != 1:
		return nil, apierr.New("unimplemented_multi_choice_chat_completions", "`n` is %d, but there is only one answer. Remove `n`.", *n)
	case stream == nil || !*stream:
		return nil, apierr.New("unimplemented_non_streaming_chat_completions", "Answers are always streamed. Send `\"stream\": true`.")
	}
	if f := r.members["functions"]; f != nil && string(f) != "null" && string(f) != "[]" {
		return nil, apierr.New("unimplemented_external_function_calling", "`functions` cannot be called. Leave them out.")
	}
	var err error
	if r.declared, err = parseTools(tools); err != nil {
		return nil, err
	}
	for _, name := range []string{"messages", "tools", "stream", "functions", "function_call"} {
		delete(r.members, name)
	}
	return r, nil
}

var roles = []string{"developer", "system", "user", "assistant", "tool", "function"}

// cleanMessage checks a message, and removes members that are null. Messages that clients were asked to append have such members,
// which providers refuse.
func cleanMessage(i int, m map[string]json.RawMessage) (json.RawMessage, error) {
	var (
		role    string
		content any
		calls   []call
		id      *string
	)
	for _, f := range []struct {
		name, want string
		dst        any
	}{
		{"role", "a string", &role}, {"content", "a string, an array of parts or null", &content},
		{"tool_calls", "an array of calls or null", &calls}, {"tool_call_id", "a string or null", &id},
	} {
		if member(m, f.name, f.dst) != nil {
			return nil, bad("`messages[%d].%s` must be %s.", i, f.name, f.want)
		}
	}
	if !slices.Contains(roles, role) {
		return nil, bad("`messages[%d].role` must be one of `%s`.", i, strings.Join(roles, "`, `"))
	}
	switch content.(type) {
	case nil, string, []any:
	default:
		return nil, bad("`messages[%d].content` must be a string, an array of parts or null.", i)
	}
	for name, v := range m {
		if string(v) == "null" && name != "content" || name == "tool_calls" && len(calls) == 0 {
			delete(m, name)
		}
	}
	return marshal(m), nil
}

// body is the request to the provider, for the messages so far. A forced choice of a tool applies to the first answer only, because
// otherwise the model could never finish. In the last round it may not search any more.
func (r *Request) body(w *Settings, messages []json.RawMessage, tool json.RawMessage, round int) json.RawMessage {
	members := make(map[string]any, len(r.members)+5)
	for name, v := range r.members {
		members[name] = v
	}
	members["messages"] = messages
	members["tools"] = []json.RawMessage{tool}
	members["stream"] = true
	if choice := string(r.members["tool_choice"]); choice != "" && (choice != `"auto"` && choice != `"none"` && (choice != `"required"` || round > 1)) {
		delete(members, "tool_choice")
	}
	if round == maxRounds {
		members["tool_choice"] = "none"
	}
	if w.Source == OpenAI || w.Source == Azure {
		options := map[string]json.RawMessage{}
		if member(r.members, "stream_options", &options) != nil || options == nil {
			options = map[string]json.RawMessage{}
		}
		options["include_usage"] = json.RawMessage("true")
		members["stream_options"] = options
	}
	return marshal(members)
}

// systemMessage is the first message, which the client does not see.
func (r *Request) systemMessage(w *Settings, prompt string) json.RawMessage {
	role := "system"
	if (w.Source == OpenAI || w.Source == Azure) && !olderModel(r.Model) {
		role = "developer"
	}
	return marshal(map[string]string{"role": role, "content": prompt})
}

// olderModels do not know the role `developer`.
var olderModels = []string{"gpt-3.5", "gpt-4", "gpt-4.1", "gpt-4.5", "gpt-4o", "chatgpt-4o"}

func olderModel(name string) bool {
	return slices.ContainsFunc(olderModels, func(m string) bool { return name == m || strings.HasPrefix(name, m+"-") })
}
