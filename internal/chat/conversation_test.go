package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/outbound"
)

// provider is a scripted provider: each call gets the next of its answers, and the last one repeats.
type provider struct {
	*httptest.Server
	t       *testing.T
	calls   atomic.Int32
	bodies  chan string
	headers chan http.Header
	paths   chan string
}

type reply func(w http.ResponseWriter, r *http.Request)

func newProvider(t *testing.T, replies ...reply) *provider {
	t.Helper()
	p := &provider{t: t, bodies: make(chan string, 50), headers: make(chan http.Header, 50), paths: make(chan string, 50)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		p.bodies <- string(b)
		p.headers <- r.Header
		p.paths <- r.URL.RequestURI()
		n := int(p.calls.Add(1)) - 1
		replies[min(n, len(replies)-1)](w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// says streams text unchanged, in pieces of size bytes.
func says(stream string, size int) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for at := 0; at < len(stream); at += size {
			io.WriteString(w, stream[at:min(at+size, len(stream))])
			w.(http.Flusher).Flush()
		}
	}
}

// chunks returns a stream of deltas; the last has the finish reason.
func chunks(finish string, deltas ...string) string {
	var b strings.Builder
	for i, d := range deltas {
		reason := "null"
		if i == len(deltas)-1 && finish != "" {
			reason = `"` + finish + `"`
		}
		fmt.Fprintf(&b, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", d, reason)
	}
	return b.String()
}

const done = "data: [DONE]\n\n"

var hello = chunks("stop", `{"role":"assistant","content":""}`, `{"content":"hello"}`, `{}`) + done

// asks returns a stream that calls the search tool, with its arguments in pieces of size bytes.
func asks(arguments string, size int) string {
	deltas := []string{`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"_svcSearchInIndex","arguments":""}}]}`}
	for ; len(arguments) > 0; arguments = arguments[min(size, len(arguments)):] {
		deltas = append(deltas, fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, marshal(arguments[:min(size, len(arguments))])))
	}
	return chunks("tool_calls", append(deltas, `{}`)...) + done
}

const findSoup = `{"index_uid":"recipes","q":"soup","filter":null}`

// search is a Searcher that finds the same documents for every query.
type search struct {
	queries []Query
	found   Found
	err     error
}

func (s *search) Search(_ context.Context, q Query) (*Found, error) {
	s.queries = append(s.queries, q)
	if s.err != nil {
		return nil, s.err
	}
	return &s.found, nil
}

func soup() *search { return &search{found: Found{"title: soup", []byte(`[{"id":1,"title":"soup"}]`)}} }

// newProviders returns a caller with timeouts long enough for a busy machine.
func newProviders(t *testing.T) *Providers {
	t.Helper()
	p := NewProviders(outbound.Any())
	p.silence, p.linger, p.retry = time.Minute, time.Minute, 100*time.Millisecond
	t.Cleanup(func() { p.Close() })
	return p
}

func vllm(p *provider) *Settings {
	return &Settings{Source: VLLM, BaseURL: text(p.URL + "/v1"), APIKey: text("sk-secret-of-the-provider"), Prompts: Prompts{System: text("Be brief.")}}
}

const ask = `{"model":"m","stream":true,"messages":[{"role":"user","content":"?"}]`

const allTools = `,"tools":[{"type":"function","function":{"name":"_svcSearchProgress"}},{"type":"function","function":{"name":"_svcSearchSources"}},{"type":"function","function":{"name":"_svcAppendConversationMessage"}}]`

func parse(t *testing.T, body string) *Request {
	t.Helper()
	r, err := ParseRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// talk holds a conversation and returns its events.
func talk(t *testing.T, ctx context.Context, w *Settings, body string, s Searcher) ([]string, Report) {
	t.Helper()
	return newProviders(t).talk(t, ctx, w, body, s)
}

func (p *Providers) talk(t *testing.T, ctx context.Context, w *Settings, body string, s Searcher) ([]string, Report) {
	t.Helper()
	var events []string
	report := p.Converse(ctx, w, parse(t, body), []Index{{UID: "recipes", Description: "Soups.", Fields: []Field{{"kind", []string{"tart", "soup"}}}}}, s, func(b []byte) error {
		if strings.ContainsAny(string(b), "\r\n") {
			t.Errorf("an event of several lines: %q", b)
		}
		events = append(events, string(b))
		return nil
	})
	if len(events) == 0 || events[len(events)-1] != "[DONE]" {
		t.Errorf("the stream does not end properly: %q", events)
	}
	return events, report
}

// said is what a client reads from events.
type said struct {
	content, finish string
	tools           []string // name and arguments
	failures        []string // type, code and message
	doneAt          int
}

func listen(t *testing.T, events []string) (s said) {
	t.Helper()
	for i, e := range events {
		if e == "[DONE]" {
			s.doneAt = i
			continue
		}
		var c struct {
			ID, Object, Model string
			Created           int
			Type              string
			EventID           string `json:"event_id"`
			Error             *struct {
				Type, Message string
				Code, Param   *string
				EventID       *string `json:"event_id"`
			}
			Choices []struct {
				Index *int
				Delta *struct {
					Content   *string
					ToolCalls []struct {
						Index    *int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(e), &c); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if c.Error != nil {
			code := "null"
			if c.Error.Code != nil {
				code = *c.Error.Code
			}
			if c.Type != "error" || len(c.EventID) != 36 || c.Error.Message == "" {
				t.Errorf("%s", e)
			}
			s.failures = append(s.failures, c.Error.Type+" "+code+" "+c.Error.Message)
			continue
		}
		if c.ID == "" || c.Object != "chat.completion.chunk" || c.Created == 0 || c.Model == "" {
			t.Errorf("incomplete chunk: %s", e)
		}
		for _, ch := range c.Choices {
			if ch.Index == nil || ch.Delta == nil {
				t.Errorf("incomplete chunk: %s", e)
				continue
			}
			if ch.Delta.Content != nil {
				s.content += *ch.Delta.Content
			}
			if ch.FinishReason != nil {
				s.finish = *ch.FinishReason
			}
			for _, call := range ch.Delta.ToolCalls {
				if *call.Index != 0 || len(call.ID) != 36 || call.Type != "function" || ch.FinishReason != nil {
					t.Errorf("%s", e)
				}
				s.tools = append(s.tools, call.Function.Name+" "+call.Function.Arguments)
			}
		}
	}
	return s
}

// TestPlainAnswer checks what clients get, byte by byte.
func TestPlainAnswer(t *testing.T) {
	p := newProvider(t, says(": hi\r\n\r\n"+
		`data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Grüß 🍎","reasoning_content":"x"},"finish_reason":null}],"extra": {"a": 1}}`+"\r\n\r\n"+
		`data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":{"content":null},"finish_reason":"stop"}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1"}`+"\n\n"+done, 1))
	events, report := talk(t, t.Context(), vllm(p), ask+"}", soup())
	want := []string{
		`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Grüß 🍎","refusal":null,"function_call":null,"tool_calls":null,"reasoning_content":"x"},"finish_reason":null,"logprobs":null}],"service_tier":null,"system_fingerprint":null,"usage":null,"extra":{"a":1}}`,
		`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop","logprobs":null}],"service_tier":null,"system_fingerprint":null,"usage":null}`,
		`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[],"service_tier":null,"system_fingerprint":null,"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		"[DONE]",
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(events, "\n     "), strings.Join(want, "\n     "))
	}
	if report.Err != nil || report.Rounds != 1 || report.Usage != (Usage{3, 2, 5}) {
		t.Errorf("%+v", report)
	}
}

// TestParts passes on content that is not text, as models send it that show their thoughts.
func TestParts(t *testing.T) {
	p := newProvider(t, says(chunks("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `{"content":"yes"}`)+
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"total_tokens":1.5}}`+"\n\n"+done, 1000))
	events, report := talk(t, t.Context(), vllm(p), ask+"}", soup())
	if report.Err != nil || len(events) != 4 || !strings.Contains(events[0], `"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`) || !strings.Contains(events[1], `"content":"yes"`) {
		t.Errorf("%q %v", events, report.Err)
	}
}

// TestSearch has the model search, with its call in pieces of one byte, and checks both sides of the conversation.
func TestSearch(t *testing.T) {
	p := newProvider(t, says(asks(findSoup, 1), 1000), says(hello, 1000))
	s := soup()
	events, report := talk(t, t.Context(), vllm(p), ask+allTools+"}", s)
	heard := listen(t, events)
	want := said{content: "hello", finish: "stop", doneAt: len(events) - 1, tools: []string{
		`_svcSearchProgress {"call_id":"call_1","function_name":"_svcSearchInIndex","function_parameters":` + string(marshal(findSoup)) + `}`,
		`_svcAppendConversationMessage {"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"_svcSearchInIndex","arguments":` + string(marshal(findSoup)) + `}}],"tool_call_id":null}`,
		`_svcSearchSources {"call_id":"call_1","documents":[{"id":1,"title":"soup"}]}`,
		`_svcAppendConversationMessage {"role":"tool","content":"title: soup","tool_calls":null,"tool_call_id":"call_1"}`,
	}}
	if !reflect.DeepEqual(heard, want) {
		t.Errorf("got  %+v\nwant %+v", heard, want)
	}
	if !reflect.DeepEqual(s.queries, []Query{{"recipes", "soup", ""}}) || report.Rounds != 2 || report.Searches != 1 || report.Err != nil {
		t.Errorf("%+v %+v", s.queries, report)
	}
	var first, second struct {
		Messages []json.RawMessage
		Tools    []json.RawMessage
	}
	if err := errors.Join(json.Unmarshal([]byte(<-p.bodies), &first), json.Unmarshal([]byte(<-p.bodies), &second)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", second.Messages); got != `[{"content":"Be brief.","role":"system"} {"content":"?","role":"user"}`+
		` {"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"_svcSearchInIndex","arguments":`+string(marshal(findSoup))+`}}]}`+
		` {"role":"tool","tool_call_id":"call_1","content":"title: soup"}]` {
		t.Errorf("%s", got)
	}
	def := DefaultPrompts()
	wantTool := string(marshal(map[string]any{"type": "function", "function": map[string]any{
		"name": "_svcSearchInIndex", "strict": true, "description": *def.SearchDescription + "\n\n - recipes: Soups.",
		"parameters": map[string]any{"type": "object", "additionalProperties": false, "required": []string{"index_uid", "q", "filter"}, "properties": map[string]any{
			"index_uid": map[string]any{"type": "string", "enum": []string{"recipes"}, "description": *def.SearchIndexUIDParam},
			"q":         map[string]any{"type": "string", "description": *def.SearchQParam},
			"filter":    map[string]any{"type": "string", "description": *def.SearchFilterParam + "\n## Fields of recipes\nkind: tart, soup.\n"},
		}},
	}}))
	if len(first.Tools) != 1 || string(first.Tools[0]) != wantTool || len(second.Tools) != 1 {
		t.Errorf("got  %s\nwant %s", first.Tools, wantTool)
	}
}

// TestToolsSwitchEventsOn declares each tool alone, under both names.
func TestToolsSwitchEventsOn(t *testing.T) {
	for tools, want := range map[string][]string{
		``:                              nil,
		`{"name":"_svcSearchProgress"}`: {`_svcSearchProgress {"call_id":"call_1","function_name":"_svcSearchInIndex","function_parameters":`},
		`{"name":"_svcSearchSources"}`:  {`_svcSearchSources {"call_id":"call_1","documents":[`},
		`{"name":"_svcAppendConversationMessage"}`:                                                 {`_svcAppendConversationMessage {"role":"assistant"`, `_svcAppendConversationMessage {"role":"tool"`},
		`{"name":"_meiliSearchProgress"}`:                                                          {`_meiliSearchProgress {"call_id":"call_1","function_name":"_svcSearchInIndex","function_parameters":`},
		`{"name":"_meiliSearchProgress","parameters":{"properties":{"function_arguments":{}}}}`:    {`_meiliSearchProgress {"call_id":"call_1","function_name":"_svcSearchInIndex","function_arguments":`},
		`{"name":"_meiliSearchSources","parameters":{"properties":{"sources":{},"call_id":{}}}}`:   {`_meiliSearchSources {"call_id":"call_1","sources":[`},
		`{"name":"_meiliSearchSources","parameters":{"properties":{"documents":{},"sources":{}}}}`: {`_meiliSearchSources {"call_id":"call_1","documents":[`},
		`{"name":"_meiliAppendConversationMessage"}`:                                               {`_meiliAppendConversationMessage {"role":"assistant"`, `_meiliAppendConversationMessage {"role":"tool"`},
	} {
		p := newProvider(t, says(asks(findSoup, 9), 1000), says(hello, 1000))
		body := ask + `,"tools":[`
		if tools != "" {
			body += `{"type":"function","function":` + tools + `}`
		}
		events, _ := talk(t, t.Context(), vllm(p), body+"]}", soup())
		heard := listen(t, events)
		if heard.content != "hello" || len(heard.tools) != len(want) {
			t.Errorf("%s: %+v", tools, heard)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(heard.tools[i], want[i]) {
				t.Errorf("%s: %s", tools, heard.tools[i])
			}
		}
		sent := <-p.bodies
		for _, tool := range []string{progressTool, sourcesTool, messageTool} {
			if strings.Contains(sent, tool) {
				t.Errorf("%s is sent to the provider: %s", tools, sent)
			}
		}
		if name := "_meiliSearchInIndex"; strings.Contains(tools, "_meili") && !strings.Contains(sent, name) {
			t.Errorf("%s: the search tool has another name", tools)
		}
	}
}

// TestOddCalls has models call tools in unusual forms that some providers use.
func TestOddCalls(t *testing.T) {
	const piece = `{"tool_calls":[%s]}`
	whole := func(index, id, q string) string {
		return fmt.Sprintf(`{"index":%s,"id":%s,"type":"function","function":{"name":"_svcSearchInIndex","arguments":"{\"index_uid\":\"recipes\",\"q\":\"%s\"}"}}`, index, id, q)
	}
	for name, tt := range map[string]struct {
		stream  string
		queries string
	}{
		"two calls":               {chunks("tool_calls", fmt.Sprintf(piece, whole("0", `"a"`, "x")), fmt.Sprintf(piece, whole("1", `"b"`, "y")), `{}`) + done, "x y"},
		"two in one":              {chunks("tool_calls", fmt.Sprintf(piece, whole("0", `"a"`, "x")+","+whole("1", `"b"`, "y"))) + done, "x y"},
		"all with index 0":        {chunks("tool_calls", fmt.Sprintf(piece, whole("0", `"a"`, "x")), fmt.Sprintf(piece, whole("0", `"b"`, "y"))) + done, "x y"},
		"no index":                {chunks("tool_calls", fmt.Sprintf(piece, whole("null", `"a"`, "x")), fmt.Sprintf(piece, whole("null", `"b"`, "y"))) + done, "x y"},
		"no id":                   {chunks("tool_calls", fmt.Sprintf(piece, whole("0", `null`, "x"))) + done, "x"},
		"finish stop":             {chunks("stop", fmt.Sprintf(piece, whole("0", `"a"`, "x")), `{}`) + done, "x"},
		"no finish":               {chunks("", fmt.Sprintf(piece, whole("0", `"a"`, "x"))) + done, "x"},
		"no done":                 {chunks("tool_calls", fmt.Sprintf(piece, whole("0", `"a"`, "x")), `{}`), "x"},
		"no finish, no done":      {chunks("", fmt.Sprintf(piece, whole("0", `"a"`, "x"))), "x"},
		"interleaved":             {chunks("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"_svcSearchInIndex","arguments":"{\"index_uid\":\"recipes\","}},{"index":1,"id":"b","function":{"name":"_svcSearchInIndex","arguments":"{\"index_uid\":\"recipes\","}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"\"q\":\"x\"}"}},{"index":1,"function":{"arguments":"\"q\":\"y\"}"}}]}`) + done, "x y"},
		"the name with each":      {chunks("tool_calls", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"_svcSearchInIndex","arguments":"{\"index_uid\":\"recipes\","}}]}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"_svcSearchInIndex","arguments":"\"q\":\"x\"}"}}]}`) + done, "x"},
		"the other name":          {chunks("tool_calls", strings.ReplaceAll(fmt.Sprintf(piece, whole("0", `"a"`, "x")), "_svc", "_meili")) + done, "x"},
		"with words before them":  {chunks("tool_calls", `{"content":"Let me see. "}`, fmt.Sprintf(piece, whole("0", `"a"`, "x"))) + done, "x"},
		"with words among them":   {chunks("tool_calls", `{"content":"Let me see. ","tool_calls":[`+whole("0", `"a"`, "x")+`]}`, `{}`) + done, "x"},
		"cut off by its length":   {chunks("length", fmt.Sprintf(piece, whole("0", `"a"`, "x")), `{}`) + done, ""},
		"an end without any call": {chunks("tool_calls", `{"content":"hm"}`, `{}`) + done, ""},
	} {
		p := newProvider(t, says(tt.stream, 1000), says(hello, 1000))
		s := soup()
		events, report := talk(t, t.Context(), vllm(p), ask+allTools+"}", s)
		heard := listen(t, events)
		var queries []string
		for _, q := range s.queries {
			queries = append(queries, q.Q)
		}
		if strings.Join(queries, " ") != tt.queries || report.Err != nil {
			t.Errorf("%s: %q %v", name, queries, report.Err)
		}
		wantContent := "hello"
		switch {
		case strings.Contains(name, "words"):
			wantContent = "Let me see. hello"
		case strings.HasPrefix(name, "an end"):
			wantContent = "hm"
		case tt.queries == "":
			wantContent = ""
		}
		if heard.content != wantContent || tt.queries != "" && heard.finish != "stop" {
			t.Errorf("%s: %+v", name, heard)
		}
		if strings.Contains(name, "words") {
			<-p.bodies
			if sent := <-p.bodies; !strings.Contains(sent, `"content":"Let me see. ","tool_calls"`) {
				t.Errorf("%s: the model does not get its own words back: %s", name, sent)
			}
		}
	}
}

func TestSearchesThatFail(t *testing.T) {
	for name, tt := range map[string]struct {
		arguments string
		err       error
		tool      string // start of the text for the model
		failures  int
		sources   bool
	}{
		"refused for the data": {findSoup, nil, "title: soup", 0, true},
		"unknown index":        {findSoup, apierr.New("index_not_found", "There is no index."), "The search failed: There is no index.", 1, false},
		"not JSON":             {`{"index_uid":`, nil, "the arguments are not those of the tool", 0, false},
		"not an object":        {`[1]`, nil, "the arguments are not those of the tool: they must be an object with the strings", 0, false},
		"no index":             {`{"q":"x"}`, nil, "the arguments are not those of the tool", 0, false},
		"wrong type":           {`{"index_uid":"recipes","q":3}`, nil, "the arguments are not those of the tool: they must be an object with the strings", 0, false},
		"nothing":              {``, nil, "the arguments are not those of the tool", 0, false},
	} {
		p := newProvider(t, says(asks(tt.arguments, 1000), 1000), says(hello, 1000))
		s := soup()
		s.err = tt.err
		events, report := talk(t, t.Context(), vllm(p), ask+allTools+"}", s)
		heard := listen(t, events)
		if heard.content != "hello" || report.Err != nil || len(heard.failures) != tt.failures {
			t.Errorf("%s: %+v %v", name, heard, report.Err)
		}
		if tt.failures > 0 && heard.failures[0] != "response_error 404 There is no index." {
			t.Errorf("%s: %q", name, heard.failures)
		}
		if last := heard.tools[len(heard.tools)-1]; !strings.Contains(last, `"content":"`+tt.tool) {
			t.Errorf("%s: %s", name, last)
		}
		if tt.sources != strings.Contains(strings.Join(heard.tools, "\n"), "_svcSearchSources") {
			t.Errorf("%s: %q", name, heard.tools)
		}
	}
	// A tool that was not declared.
	p := newProvider(t, says(strings.ReplaceAll(asks(findSoup, 1000), "_svcSearchInIndex", "rm_rf"), 1000), says(hello, 1000))
	s := soup()
	events, _ := talk(t, t.Context(), vllm(p), ask+allTools+"}", s)
	if heard := listen(t, events); heard.content != "hello" || len(s.queries) > 0 || !strings.Contains(heard.tools[len(heard.tools)-1], "there is no tool") {
		t.Errorf("%+v %+v", heard, s.queries)
	}
}

func TestRoundsHaveAnEnd(t *testing.T) {
	p := newProvider(t, says(asks(findSoup, 1000), 1000))
	s := soup()
	events, report := talk(t, t.Context(), vllm(p), ask+`,"tool_choice":"required"}`, s)
	heard := listen(t, events)
	if p.calls.Load() != maxRounds || len(s.queries) != maxRounds-1 || len(heard.failures) != 1 || report.Err == nil {
		t.Fatalf("%d calls, %d searches, %+v", p.calls.Load(), len(s.queries), heard)
	}
	for round := 1; round <= maxRounds; round++ {
		want := ""
		if round == 1 {
			want = "required"
		} else if round == maxRounds {
			want = "none"
		}
		var body struct {
			Choice string `json:"tool_choice"`
		}
		if err := json.Unmarshal([]byte(<-p.bodies), &body); err != nil || body.Choice != want {
			t.Errorf("round %d: %q %v", round, body.Choice, err)
		}
	}
}

// TestSearchResultsAreBounded has searches find much: every round sends the results of all searches to the provider.
func TestSearchResultsAreBounded(t *testing.T) {
	p := newProvider(t, says(asks(findSoup, 1000), 1000))
	s := &search{found: Found{strings.Repeat("x", 1<<20), []byte("[]")}}
	events, _ := talk(t, t.Context(), vllm(p), ask+allTools+"}", s)
	heard := listen(t, events)
	if p.calls.Load() != maxRounds || len(s.queries) != maxFoundBytes>>20 || !strings.Contains(heard.tools[len(heard.tools)-1], errFound.Error()) {
		t.Errorf("%d calls, %d searches", p.calls.Load(), len(s.queries))
	}
}
