package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/outbound"
)

// answers sends an answer that is not a stream.
func answers(status int, kind, body string, headers ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hangs sends a text, and then nothing until the caller is gone.
func hangs(sent string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		if sent != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, sent)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// breaks sends a text and closes the connection.
func breaks(sent string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		io.WriteString(conn, sent)
		conn.Close()
	}
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// TestProvidersThatFail checks that the client gets one event about a failure, that the key is not shown, and that the stream ends.
func TestProvidersThatFail(t *testing.T) {
	begun := chunks("", `{"content":"so "}`)
	for name, tt := range map[string]struct {
		reply   reply
		want    string // start of the failure
		content string
	}{
		"an error of OpenAI":      {answers(401, "application/json", `{"error":{"message":"Incorrect API key provided: sk-secret-of-the-provider","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`), "invalid_request_error invalid_api_key Incorrect API key provided: XXX...", ""},
		"a code that is a number": {answers(400, "application/json", `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`), "BadRequestError 400 no", ""},
		"an error of Mistral":     {answers(422, "application/json", `{"object":"error","message":"no","type":"invalid_request","param":null,"code":"1500"}`), "invalid_request 1500 no", ""},
		"an error without a code": {answers(500, "application/json", `{"error":{"message":"no","type":"server_error"}}`), "server_error null no", ""},
		"an error that is a text": {answers(404, "application/json", `{"error":"not found"}`), "reqwest_error null The provider", ""},
		"a page":                  {answers(502, "text/html", "<h1>Bad sk-secret-of-the-provider gateway</h1>"), "reqwest_error null The provider", ""},
		"nothing at all":          {answers(503, "", ""), "reqwest_error null The provider", ""},
		"a redirect":              {answers(307, "", "", "Location", "/elsewhere"), "reqwest_error null The provider", ""},
		"no stream":               {answers(200, "application/json", `{"choices":[{"message":{"content":"hello"}}]}`), "json_deserialize_error internal The provider", ""},
		"a portal":                {answers(200, "text/html", `<html>log in</html>`), "json_deserialize_error internal The provider", ""},
		"garbage":                 {says("data: hello there\n\n", 9), "json_deserialize_error internal The provider", ""},
		"garbage in the middle":   {says(begun+"data: {\"choices\":3}\n\n", 50), "json_deserialize_error internal The provider", "so "},
		"a choice that is null":   {says("data: {\"choices\":[null]}\n\n", 50), "json_deserialize_error internal The provider", ""},
		"null":                    {says("data: null\n\n", 50), "json_deserialize_error internal The provider", ""},
		"arguments are an object": {says(chunks("", `{"tool_calls":[{"index":0,"function":{"arguments":{"q":1}}}]}`), 50), "json_deserialize_error internal The provider", ""},
		"half an event":           {says(begun+"data: {\"choi", 50), "json_deserialize_error internal The provider", "so "},
		"an event without end":    {says(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100), 1<<20), "json_deserialize_error internal The provider", ""},
		"calls without end":       {says(chunks("", `{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("x", 600<<10)+`"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"`+strings.Repeat("x", 600<<10)+`"}}]}`), 1<<20), "json_deserialize_error internal The provider", ""},
		"calls without number":    {says(chunks("", `{"tool_calls":[`+strings.TrimSuffix(strings.Repeat(`{"index":0,"id":"A"},{"index":0,"id":"B"},`, maxCalls), ",")+`]}`), 1<<20), "json_deserialize_error internal The provider", ""},
		"an error with an address": {func(w http.ResponseWriter, r *http.Request) {
			answers(502, "application/json", `{"error":{"message":"no upstream behind `+r.Host+`","type":"proxy"}}`)(w, r)
		}, "proxy null no upstream behind XXX...", ""},
		"an error in the stream":    {says(begun+`data: {"error":{"message":"overloaded","type":"server_error","code":"x"}}`+"\n\n", 50), "server_error x overloaded", "so "},
		"an error event":            {says(begun+"event: error\n"+`data: {"error":{"message":"overloaded","type":"server_error","param":"p"}}`+"\n\n", 50), "server_error null overloaded", "so "},
		"an error event of others":  {says(begun+"event: error\n"+`data: {"detail":"overloaded"}`+"\n\n", 50), "json_deserialize_error internal The provider", "so "},
		"an early end":              {says(begun, 50), "transport_error null The provider", "so "},
		"an end within a call":      {says(chunks("", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"_svcSearchInIndex","arguments":"{\"index_uid\":"}}]}`), 50), "transport_error null The provider", ""},
		"an empty answer":           {says("", 50), "transport_error null The provider", ""},
		"a broken connection":       {breaks(""), "transport_error null The provider", ""},
		"a broken stream":           {breaks(streamHead + "100\r\n" + begun[:40]), "transport_error null The provider", ""},
		"no HTTP":                   {breaks("SSH-2.0-x\r\n"), "transport_error null The provider", ""},
		"silence":                   {hangs(""), "transport_error null The provider", ""},
		"silence in the middle":     {hangs(begun), "transport_error null The provider", "so "},
		"silence instead of an end": {hangs(strings.TrimSuffix(hello, done)), "", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.reply)
			all := newProviders(t)
			switch {
			case tt.want == "":
				all.linger = 50 * time.Millisecond
			case strings.HasPrefix(name, "silence"):
				all.silence = 50 * time.Millisecond // the text before it may be incomplete
			}
			events, report := all.talk(t, t.Context(), vllm(p), ask+"}", soup())
			heard := listen(t, events)
			if tt.want == "" {
				if report.Err != nil || len(heard.failures) > 0 || heard.content != tt.content {
					t.Errorf("%+v %v", heard, report.Err)
				}
				return
			}
			if len(heard.failures) != 1 || !strings.HasPrefix(heard.failures[0], tt.want) || heard.content != tt.content && all.silence == time.Minute || report.Err == nil {
				t.Errorf("%+v %v", heard, report.Err)
			}
			if all := strings.Join(events, "") + report.Err.Error(); strings.Contains(all, "sk-secret") {
				t.Errorf("the key is shown: %s", all)
			}
			if address := strings.TrimPrefix(p.URL, "http://"); strings.Contains(strings.Join(events, ""), address) {
				t.Errorf("the client gets the address of the provider: %s", events)
			} else if strings.Contains(heard.failures[0], " The provider ") && !strings.Contains(report.Err.Error(), address) {
				t.Errorf("the log lacks the address of the provider: %v", report.Err)
			}
			if n := p.calls.Load(); n > 1 || n < 1 && all.silence == time.Minute {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestFailureInALaterRound fails a conversation after its first round.
func TestFailureInALaterRound(t *testing.T) {
	p := newProvider(t, says(asks(findSoup, 1000), 1000), answers(500, "application/json", `{"error":{"message":"no","type":"t"}}`))
	events, _ := talk(t, t.Context(), vllm(p), ask+allTools+"}", soup())
	if heard := listen(t, events); len(heard.tools) != 4 || len(heard.failures) != 1 || heard.failures[0] != "t null no" {
		t.Errorf("%+v", heard)
	}
}

func TestAddressesThatCannotBeCalled(t *testing.T) {
	const closedAddress = "127.0.0.1:9" // nothing listens there; the address of a closed server may belong to another by now
	for base, want := range map[string]string{
		"http://" + closedAddress: "refused", "ftp://x": "baseUrl", "": "baseUrl", "x": "baseUrl", "http://": "baseUrl", "http://[::1": "baseUrl", "https://sk-user:sk-password@" + closedAddress + "/?key=sk-query": "refused",
	} {
		w := &Settings{Source: VLLM, BaseURL: text(base)}
		events, report := talk(t, t.Context(), w, ask+"}", soup())
		if heard := listen(t, events); len(heard.failures) != 1 || !strings.HasPrefix(heard.failures[0], "transport_error null ") || !strings.Contains(report.Err.Error(), want) {
			t.Errorf("%q: %+v, %v", base, heard, report.Err)
		}
		if all := strings.Join(events, ""); strings.Contains(all, closedAddress) {
			t.Errorf("%q: the client gets the address of the provider: %s", base, all)
		}
		if all := strings.Join(events, "") + report.Err.Error(); strings.Contains(all, "sk-") {
			t.Errorf("%q: a secret is shown: %s", base, all)
		}
	}
	// The policy of allowed addresses.
	p := newProvider(t, says(hello, 1000))
	w := vllm(p)
	report := NewProviders(outbound.Policy{}).Converse(t.Context(), w, parse(t, ask+"}"), nil, soup(), func([]byte) error { return nil })
	if report.Err == nil || !strings.Contains(report.Err.Error(), "allowed-ip-networks") || p.calls.Load() != 0 {
		t.Errorf("%v, %d calls", report.Err, p.calls.Load())
	}
}

func TestRetryAfter(t *testing.T) {
	busy := func(after string) reply {
		return answers(429, "application/json", `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, "Retry-After", after)
	}
	past := time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)
	for name, tt := range map[string]struct {
		replies []reply
		calls   int32
		content string
	}{
		"soon":           {[]reply{busy("0.05"), says(hello, 1000)}, 2, "hello"},
		"at once":        {[]reply{busy("0"), busy("0"), says(hello, 1000)}, 3, "hello"},
		"a date":         {[]reply{busy(past), says(hello, 1000)}, 2, "hello"},
		"too often":      {[]reply{busy("0"), busy("0"), busy("0"), says(hello, 1000)}, 3, ""},
		"too late":       {[]reply{busy("60"), says(hello, 1000)}, 1, ""},
		"too late twice": {[]reply{busy("0.06"), busy("0.06"), says(hello, 1000)}, 2, ""},
		"never":          {[]reply{busy(""), says(hello, 1000)}, 1, ""},
		"nonsense":       {[]reply{busy("-1"), says(hello, 1000)}, 1, ""},
		"another status": {[]reply{answers(500, "text/plain", "x", "Retry-After", "0"), says(hello, 1000)}, 1, ""},
		"not available":  {[]reply{answers(503, "text/plain", "x", "Retry-After", "0"), says(hello, 1000)}, 2, "hello"},
	} {
		p := newProvider(t, tt.replies...)
		events, report := talk(t, t.Context(), vllm(p), ask+"}", soup())
		if heard := listen(t, events); heard.content != tt.content || p.calls.Load() != tt.calls || (report.Err == nil) != (tt.content != "") {
			t.Errorf("%s: %d calls, %+v %v", name, p.calls.Load(), heard, report.Err)
		}
	}
}

// TestTheCallEndsWithTheClient has the client leave while the provider is silent, while the call waits for a retry, and while the
// provider sends.
func TestTheCallEndsWithTheClient(t *testing.T) {
	left := errors.New("left")
	for name, reply := range map[string]reply{
		"before the answer": hangs(""), "in the middle": hangs(chunks("", `{"content":"so "}`)),
	} {
		gone := make(chan struct{})
		entered := make(chan struct{}, 1)
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			reply(w, r)
			close(gone)
		})
		ctx, leave := context.WithCancelCause(t.Context())
		go func() { <-entered; leave(left) }()
		all := newProviders(t)
		all.silence = time.Minute
		report := all.Converse(ctx, vllm(p), parse(t, ask+"}"), nil, soup(), func([]byte) error { return nil })
		if !errors.Is(report.Err, left) {
			t.Errorf("%s: %v", name, report.Err)
		}
		<-gone
	}
	gone := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			io.WriteString(w, chunks("", `{"content":"so "}`))
			w.(http.Flusher).Flush()
		}
		close(gone)
	})
	report := newProviders(t).Converse(t.Context(), vllm(p), parse(t, ask+"}"), nil, soup(), func([]byte) error { return left })
	if !errors.Is(report.Err, left) {
		t.Errorf("%v", report.Err)
	}
	<-gone
}

func TestConversationsHaveALimit(t *testing.T) {
	p := newProvider(t, hangs(chunks("", `{"content":"so "}`)))
	all := newProviders(t)
	all.silence, all.conversation = time.Minute, 50*time.Millisecond
	var events []string
	report := all.Converse(t.Context(), vllm(p), parse(t, ask+"}"), nil, soup(), func(b []byte) error { events = append(events, string(b)); return nil })
	heard := listen(t, events)
	if report.Err == nil || len(heard.failures) != 1 || events[len(events)-1] != "[DONE]" {
		t.Errorf("%v %+v", report.Err, heard)
	}
}

// TestForms checks the requests that each source gets.
func TestForms(t *testing.T) {
	for name, tt := range map[string]struct {
		settings Settings
		model    string
		base     string
		path     string
		header   map[string]string // "": missing
		role     string
		usage    bool
	}{
		"openAi":          {Settings{Source: OpenAI, OrgID: text("o"), ProjectID: text("p"), APIKey: text("k")}, "gpt-5", "/v1", "/v1/chat/completions", map[string]string{"Authorization": "Bearer k", "Openai-Beta": "assistants=v2", "Openai-Organization": "o", "Openai-Project": "p", "Api-Key": ""}, "developer", true},
		"openAi, older":   {Settings{Source: OpenAI, APIKey: text("k")}, "gpt-4o-mini", "/v1/", "/v1/chat/completions", map[string]string{"Openai-Organization": "", "Openai-Project": ""}, "system", true},
		"openAi, similar": {Settings{Source: OpenAI}, "gpt-4o2", "", "/chat/completions", map[string]string{"Authorization": "Bearer"}, "developer", true},
		"mistral":         {Settings{Source: Mistral, APIKey: text("k"), OrgID: text("o")}, "m", "/v1", "/v1/chat/completions", map[string]string{"Authorization": "Bearer k", "Openai-Beta": "assistants=v2", "Openai-Organization": ""}, "system", false},
		"vLlm":            {Settings{Source: VLLM}, "m", "/a/b?x=1", "/a/b/chat/completions?x=1", map[string]string{"Authorization": "Bearer", "Openai-Beta": "assistants=v2"}, "system", false},
		"azureOpenAi":     {Settings{Source: Azure, APIKey: text("k"), DeploymentID: text("my/dep"), APIVersion: text("2024-10-21")}, "gpt-4.1", "", "/openai/deployments/my%2Fdep/chat/completions?api-version=2024-10-21", map[string]string{"Authorization": "", "Api-Key": "k", "Openai-Beta": ""}, "system", true},
	} {
		p := newProvider(t, says(hello, 1000))
		w := tt.settings
		w.BaseURL = text(p.URL + tt.base)
		w.Prompts.System = text("S")
		_, report := talk(t, t.Context(), &w, `{"model":"`+tt.model+`","stream":true,"temperature":0.5,"seed":12345678901234567890,"messages":[{"role":"user","content":[{"type":"text","text":"<?>"}],"tool_calls":null,"tool_call_id":null},{"role":"assistant","content":null,"tool_calls":[]}],"stream_options":{"include_obfuscation":false}}`, soup())
		if report.Err != nil {
			t.Errorf("%s: %v", name, report.Err)
			continue
		}
		if path := <-p.paths; path != tt.path {
			t.Errorf("%s: %s", name, path)
		}
		header := <-p.headers
		for h, want := range tt.header {
			if got := header.Get(h); got != want {
				t.Errorf("%s: %s: %q, want %q", name, h, got, want)
			}
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(<-p.bodies), &body); err != nil {
			t.Fatal(err)
		}
		options := `{"include_obfuscation":false}`
		if tt.usage {
			options = `{"include_obfuscation":false,"include_usage":true}`
		}
		for member, want := range map[string]string{
			"model": `"` + tt.model + `"`, "stream": "true", "temperature": "0.5", "seed": "12345678901234567890", "stream_options": options,
			"messages": `[{"content":"S","role":"` + tt.role + `"},{"content":[{"type":"text","text":"\u003c?\u003e"}],"role":"user"},{"content":null,"role":"assistant"}]`,
		} {
			if got := string(body[member]); got != want {
				t.Errorf("%s: %s: %s, want %s", name, member, got, want)
			}
		}
	}
}
