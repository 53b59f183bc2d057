package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"svc/internal/jsontext"
)

// A chunk is a piece of an answer, as the provider sent it. The members that svc reads must match the API. Others are forwarded
// unchanged.
type chunk struct {
	members map[string]json.RawMessage
	choices []choice
	usage   *Usage // nil: none
}

// choice is an element of choices.
type choice struct {
	members map[string]json.RawMessage
	delta   map[string]json.RawMessage
	content string // of the delta, if that is text
	speaks  bool   // the delta has content of any kind
	calls   []callPiece
	finish  string // "" stands for null
}

// callPiece is an element of tool_calls: a piece of a call.
type callPiece struct {
	Index    *int    `json:"index"`
	ID       *string `json:"id"`
	Function *struct {
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// Usage counts tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (u *Usage) add(o *Usage) {
	u.Prompt, u.Completion, u.Total = u.Prompt+o.Prompt, u.Completion+o.Completion, u.Total+o.Total
}

// parseChunk reads the data of an event. An error that the provider reports in the middle of its answer is a *failure. Any other
// error says why the data is not a chunk.
func parseChunk(data []byte) (*chunk, error) {
	c := &chunk{}
	if err := json.Unmarshal(data, &c.members); err != nil {
		return nil, err
	}
	if c.members == nil {
		return nil, errors.New("it is null")
	}
	if f := readFailure(data); f != nil && c.members["choices"] == nil {
		return nil, f
	}
	var choices []json.RawMessage
	if err := member(c.members, "choices", &choices); err != nil {
		return nil, err
	}
	_ = member(c.members, "usage", &c.usage) // what cannot be counted is not counted
	for _, raw := range choices {
		var ch choice
		if err := json.Unmarshal(raw, &ch.members); err != nil {
			return nil, fmt.Errorf("choices: %w", err)
		}
		if ch.members == nil {
			return nil, errors.New("choices: one is null")
		}
		if err := errors.Join(member(ch.members, "finish_reason", &ch.finish), member(ch.members, "delta", &ch.delta)); err != nil {
			return nil, err
		}
		if err := member(ch.delta, "tool_calls", &ch.calls); err != nil {
			return nil, err
		}
		// Models that show their thoughts send parts in the place of text.
		_ = member(ch.delta, "content", &ch.content)
		content := string(ch.delta["content"])
		ch.speaks = content != "" && content != "null" && content != `""`
		c.choices = append(c.choices, ch)
	}
	return c, nil
}

// member reads a member, which may be missing or null, into dst.
func member(of map[string]json.RawMessage, name string, dst any) error {
	raw := of[name]
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// The members that chunks, choices and deltas always have.
var (
	chunkMembers  = []string{"id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage"}
	choiceMembers = []string{"index", "delta", "finish_reason", "logprobs"}
	deltaMembers  = []string{"role", "content", "refusal", "function_call", "tool_calls"}
)

// appendJSON appends the chunk as clients get it: with null for missing members, and unknown members at the end. Only an empty delta
// is an empty object.
func (c *chunk) appendJSON(dst []byte) []byte {
	choices := []byte{'['}
	for i := range c.choices {
		if i > 0 {
			choices = append(choices, ',')
		}
		ch := &c.choices[i]
		ch.members["delta"] = []byte("{}")
		maps.DeleteFunc(ch.delta, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
		if len(ch.delta) > 0 {
			ch.members["delta"] = appendMembers(nil, ch.delta, deltaMembers)
		}
		choices = appendMembers(choices, ch.members, choiceMembers)
	}
	c.members["choices"] = append(choices, ']')
	return appendMembers(dst, c.members, chunkMembers)
}

// appendMembers appends an object.
func appendMembers(dst []byte, members map[string]json.RawMessage, known []string) []byte {
	dst = append(dst, '{')
	put := func(name string, v json.RawMessage) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuoted(dst, name), ':')
		dst = appendCompact(dst, v)
	}
	for _, name := range known {
		v := members[name]
		if v == nil {
			v = json.RawMessage("null")
		}
		put(name, v)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			put(name, members[name])
		}
	}
	return append(dst, '}')
}

// appendCompact appends valid JSON, on one line.
func appendCompact(dst, v []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return append(dst, "null"...)
	}
	return append(dst, b.Bytes()...)
}

// A call is a tool call of the model.
type call struct {
	ID, Name  string
	Arguments string // JSON, hopefully
}

const (
	maxCalls     = 64      // in one answer
	maxCallBytes = 1 << 20 // of the arguments of one answer's calls
)

var errManyCalls = errors.New("it asks for too many or too long tool calls")

// gathering are the calls of an answer on their way.
type gathering struct {
	calls   []*gathered
	current *gathered // the one that the last piece belongs to
	bytes   int
}

type gathered struct {
	index           int
	id              string
	name, arguments strings.Builder
}

// add takes a piece. Pieces belong together by their index; but where one brings another id it begins a call of its
// own: some providers give all calls the index 0.
func (g *gathering) add(p *callPiece) error {
	index, id := 0, ""
	if p.Index != nil {
		index = *p.Index
	} else if g.current != nil {
		index = g.current.index
	}
	if p.ID != nil {
		id = *p.ID
	}
	at := -1
	for i := len(g.calls) - 1; i >= 0 && at < 0; i-- {
		if g.calls[i].index == index {
			at = i
		}
	}
	begins := at < 0 || id != "" && g.calls[at].id != "" && id != g.calls[at].id
	if begins {
		if len(g.calls) == maxCalls {
			return errManyCalls
		}
		g.calls = append(g.calls, &gathered{index: index})
		at = len(g.calls) - 1
	}
	c := g.calls[at]
	g.current = c
	if id != "" {
		c.id = id
	}
	if p.Function == nil {
		return nil
	}
	name, arguments := p.Function.Name, p.Function.Arguments
	// Some providers repeat the name with each piece.
	if name != nil && (begins || *name != c.name.String()) {
		c.name.WriteString(*name)
		g.bytes += len(*name)
	}
	if arguments != nil {
		c.arguments.WriteString(*arguments)
		g.bytes += len(*arguments)
	}
	if g.bytes > maxCallBytes {
		return errManyCalls
	}
	return nil
}

// complete reports whether there are calls, all with their whole arguments. Some providers end an answer with calls without saying so.
func (g *gathering) complete() bool {
	for _, c := range g.calls {
		if !json.Valid([]byte(c.arguments.String())) {
			return false
		}
	}
	return len(g.calls) > 0
}

// whole returns the calls.
func (g *gathering) whole() []call {
	calls := make([]call, len(g.calls))
	for i := range g.calls {
		c := g.calls[i]
		calls[i] = call{c.id, c.name.String(), c.arguments.String()}
		if c.id == "" {
			calls[i].ID = newCallID()
		}
	}
	return calls
}
