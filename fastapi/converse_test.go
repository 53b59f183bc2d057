package fastapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/logs"
	"svc/internal/logs/logstest"
)

// model is a provider whose model obeys: "search INDEX for WORDS where FILTER" makes it search and then repeat what it read. It repeats
// any other text.
type model struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	left   chan struct{} // a call of "wait" was canceled
}

var wish = regexp.MustCompile(`^search (\S+) for (.*?)(?: where (.*))?$`)

func newModel(t testing.TB) *model {
	t.Helper()
	m := &model{left: make(chan struct{}, 300)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return // the server was stopped
		}
		m.mu.Lock()
		m.bodies = append(m.bodies, string(b))
		m.mu.Unlock()
		var asked struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(b, &asked); err != nil { // it accepts plain texts only
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(delta string, finish string) {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
			w.(http.Flusher).Flush()
		}
		last := asked.Messages[len(asked.Messages)-1]
		text := func(s string) string { return string(appendString(nil, s)) }
		if in := wish.FindStringSubmatch(last.Content); in != nil && last.Role == "user" {
			arguments := fmt.Sprintf(`{"index_uid":%s,"q":%s,"filter":%s}`, text(in[1]), text(in[2]), text(in[3]))
			say(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"_svcSearchInIndex","arguments":`+text(arguments)+`}}]}`, `"tool_calls"`)
		} else {
			if last.Role == "tool" {
				last.Content = "I read: " + last.Content
			}
			say(`{"role":"assistant","content":`+text(last.Content)+`}`, "null")
			if last.Content == "wait" {
				<-r.Context().Done()
				m.left <- struct{}{}
				return
			}
			for last.Content == "talk" && r.Context().Err() == nil {
				say(`{"content":"`+strings.Repeat("x", 4000)+`"}`, "null")
			}
			say(`{}`, `"stop"`)
			io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`+"\n\n")
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *model) sent() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bodies)
}

// newTalking starts a server with recipes, wines and a workspace, and returns its model.
func newTalking(t testing.TB, o Options) (*client, *model) {
	t.Helper()
	openInstance(t, &o)
	m := newModel(t)
	c := newTCPClient(t, o)
	if o.Keys != nil {
		c = c.as(masterKey)
	}
	c.json("PATCH", "/experimental-features", `{"chatCompletions": true, "metrics": true}`)
	c.json("PATCH", "/indexes/recipes/settings", `{"filterableAttributes":["kind","time"],"chat":{"description":"Soups and tarts."}}`)
	c.json("POST", "/indexes/recipes/documents", `[{"id":1,"title":"onion soup","kind":"soup","time":40},{"id":2,"title":"onion tart","kind":"tart","time":60},{"id":3,"title":"apple tart","kind":"tart","time":55}]`)
	c.wait(c.json("POST", "/indexes/wines/documents", `[{"id":1,"title":"red wine"}]`))
	if r := c.json("PATCH", "/chats/kitchen/settings", `{"source":"vLlm","baseUrl":"`+m.URL+`","apiKey":"sk-secret-of-the-provider","prompts":{"system":"S"}}`); r.status != 200 {
		t.Fatal(r.body)
	}
	return c, m
}

func question(text string) string {
	return `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + text + `"}],"tools":[{"type":"function","function":{"name":"_svcSearchSources"}}]}`
}

const completions = "/chats/kitchen/chat/completions"

// ask sends a request and returns the text of the answer, sources, and codes of failures.
func (c *client) ask(text string) string {
	c.t.Helper()
	r := c.json("POST", completions, question(text))
	if r.status != 200 {
		return r.code()
	}
	var out strings.Builder
	for event := range strings.SplitSeq(r.body, "\n\n") {
		data, ok := strings.CutPrefix(strings.TrimPrefix(event, "retry: 10000\n"), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Error   *struct{ Type, Code, Message string }
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			c.t.Fatalf("%s: %v", data, err)
		}
		if e.Error != nil {
			out.WriteString("<" + e.Error.Type + " " + e.Error.Code + "> ")
		}
		for _, ch := range e.Choices {
			for _, call := range ch.Delta.ToolCalls {
				out.WriteString(call.Function.Arguments + " ")
			}
			out.WriteString(ch.Delta.Content)
		}
	}
	if !strings.HasPrefix(r.body, "retry: 10000\ndata: ") || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		c.t.Errorf("incomplete stream: %q", r.body)
	}
	return out.String()
}

func TestConversations(t *testing.T) {
	c, m := newTalking(t, Options{})
	c.key = "any"
	const tart = `id: 2\ntitle: onion tart\nkind: tart\ntime: 60\n`
	for asked, want := range map[string]string{
		"hello": "hello",
		"search recipes for onion where kind = tart": `{"call_id":"call_1","documents":[{"id":2,"title":"onion tart","kind":"tart","time":60}]} I read: ` + strings.ReplaceAll(tart, `\n`, "\n"),
		"search recipes for nothing like this":       `{"call_id":"call_1","documents":[]} I read: `,
		"search nowhere for x":                       "<response_error 404> I read: The search failed: ",
		"search ../etc for x":                        "<response_error 400> I read: The search failed: ",
		"search recipes for x where kind =":          "<response_error 400> I read: The search failed: ",
		"search recipes for x where title = a":       `{"call_id":"call_1","documents":[]} I read: `,
		"search recipes for x where kind CONTAINS a": "<response_error 400> I read: The search failed: ",
	} {
		if got := c.ask(asked); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", asked, got)
		}
	}
	if got := c.ask("search recipes for x where title = a"); !strings.Contains(got, "filterable") {
		t.Errorf("the model does not get the error: %s", got)
	}
	first := m.sent()[0]
	for _, hint := range []string{`recipes: Soups and tarts.`, `kind: tart, soup.`, `time: 40, 55, 60.`, `"enum":["recipes","wines"]`} {
		if !strings.Contains(first, hint) {
			t.Errorf("the model does not get %s: %s", hint, first)
		}
	}
	metrics := c.get("/metrics").body
	for _, series := range []string{`svc_chat_searches_total{type="internal"} 8`, `svc_chat_prompt_tokens_total{model="m",workspace="kitchen"} 27`, `svc_chat_completion_tokens_total{model="m",workspace="kitchen"} 18`, `svc_chat_tokens_total{model="m",workspace="kitchen"} 45`} {
		if !strings.Contains(metrics, series) {
			t.Errorf("no %s in\n%s", series, metrics)
		}
	}
	if size, running, waiting := c.server.slots.now(); running != 0 || waiting != 0 {
		t.Errorf("slots: %d %d %d", size, running, waiting)
	}
}

// TestChatRights checks who may chat, which indexes the model is told about, and what it finds.
func TestChatRights(t *testing.T) {
	keys := openKeys(t, masterKey)
	c, m := newTalking(t, Options{Keys: keys})
	all := keys.List()
	chatKey := keys.Value(all[slices.IndexFunc(all, func(k *auth.Key) bool { return k.Name != nil && *k.Name == "Default Chat API Key" })])
	const onion, wine = "search recipes for onion", "search wines for red"
	for name, tt := range map[string]struct {
		key, recipes, wines string
		hears, hidden       []string
	}{
		"default chat key":      {chatKey, "12", "1", []string{`"recipes"`, `"wines"`, "kind: tart, soup."}, nil},
		"recipes only":          {c.makeKey(`["chatCompletions", "search"]`, `["recipes"]`), "12", "403", []string{`"recipes"`, "kind: tart, soup."}, []string{"wines"}},
		"without search":        {c.makeKey(`["chatCompletions"]`, `["*"]`), "403", "403", nil, []string{"wines", "recipes", "enum"}},
		"search key":            {c.makeKey(`["search"]`, `["*"]`), "invalid_api_key", "invalid_api_key", nil, nil},
		"admin key":             {c.makeKey(`["*"]`, `["*"]`), "invalid_api_key", "invalid_api_key", nil, nil},
		"master key":            {masterKey, "12", "1", []string{`"recipes"`, `"wines"`, "kind: tart, soup."}, nil},
		"unknown key":           {"x", "invalid_api_key", "invalid_api_key", nil, nil},
		"token":                 {c.tokenOf("Default Chat API Key", `{"searchRules": {"recipes": {"filter": "kind = soup"}}}`), "1", "403", []string{`"recipes"`, "kind: soup.", "time: 40."}, []string{"wines", "tart,", "55"}},
		"token of a search key": {c.tenantToken(`{"searchRules": ["*"]}`), "invalid_api_key", "invalid_api_key", nil, nil},
	} {
		before := len(m.sent())
		k := c.as(tt.key)
		for asked, want := range map[string]string{onion: tt.recipes, wine: tt.wines} {
			got := k.ask(asked)
			ids := ""
			for _, id := range []string{"1", "2", "3"} {
				if strings.Contains(got, `{"id":`+id+`,`) {
					ids += id
				}
			}
			if strings.Contains(got, "<response_error 403>") {
				ids = "403"
			}
			if ids == "" {
				ids = got
			}
			if ids != want {
				t.Errorf("%s: %s: %s", name, asked, got)
			}
		}
		for _, body := range m.sent()[before:] {
			_, tools, _ := strings.Cut(body, `"tools":`)
			for _, word := range tt.hears {
				if !strings.Contains(tools, word) {
					t.Errorf("%s: the model is not told about %s: %s", name, word, tools)
				}
			}
			for _, word := range tt.hidden {
				if strings.Contains(tools, word) {
					t.Errorf("%s: the model is told about %s: %s", name, word, tools)
				}
			}
		}
	}
	none := c.as("")
	if r := none.json("POST", completions, question("hello")); r.status != 401 || r.code() != "missing_authorization_header" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestChatDespiteAnIndexThatCannotBeSearched holds conversations while the filter of a token does not fit one of the indexes.
func TestChatDespiteAnIndexThatCannotBeSearched(t *testing.T) {
	c, m := newTalking(t, Options{Keys: openKeys(t, masterKey)})
	c.json("PATCH", "/experimental-features", `{"foreignKeys": true}`)
	foreign := c.as(c.tokenOf("Default Chat API Key", `{"searchRules": {"*": {"filter": "kind = soup"}, "wines": {"filter": "_foreign(maker, id = 1)"}}}`))
	if got := foreign.ask("search recipes for onion"); !strings.Contains(got, `{"id":1,`) {
		t.Errorf("a filter with a foreign key: %s", got)
	}
	k := c.as(c.tokenOf("Default Chat API Key", `{"searchRules": {"*": {"filter": "kind = soup"}}}`))
	if got := k.ask("search recipes for onion"); !strings.Contains(got, `{"id":1,`) || strings.Contains(got, `{"id":2,`) {
		t.Errorf("the index that the filter fits: %s", got)
	}
	if got := k.ask("search wines for red"); !strings.HasPrefix(got, "<response_error 400>") && !strings.Contains(got, "filterable") {
		t.Errorf("the index that it does not fit: %s", got)
	}
	for _, body := range m.sent() {
		if _, tools, _ := strings.Cut(body, `"tools":`); !strings.Contains(tools, `"recipes"`) || strings.Contains(tools, "wines") {
			t.Errorf("the model is told about %s", tools)
		}
	}
}

// TestChatDespiteADamagedIndex overwrites the segments of an index.
func TestChatDespiteADamagedIndex(t *testing.T) {
	c, m := newTalking(t, Options{})
	c.wait(c.json("PATCH", "/indexes/wines/settings", `{"filterableAttributes":["title"]}`))
	segments := func() []string {
		all, err := filepath.Glob(filepath.Join(filepath.Dir(t.TempDir()), "*", "indexes", "*", "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := segments()
	c.wait(c.json("POST", "/indexes/beers/documents", `[{"id":1,"title":"dark beer","brewer":"a"}]`))
	c.wait(c.json("PATCH", "/indexes/beers/settings", `{"filterableAttributes":["brewer"]}`))
	damaged := 0
	for _, name := range segments() {
		if slices.Contains(before, name) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(info.Size())-64), 64)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if got := c.as("x").ask("search wines for red"); damaged == 0 || !strings.Contains(got, `{"id":1,`) {
		t.Errorf("an intact index: %s, %d damaged segments", got, damaged)
	}
	if got := c.as("x").ask("search beers for dark"); !strings.HasPrefix(got, "<response_error 500>") {
		t.Errorf("a damaged index: %s", got)
	}
	for _, body := range m.sent() {
		if _, tools, _ := strings.Cut(body, `"tools":`); !strings.Contains(tools, "title: red wine.") || !strings.Contains(tools, "beers: ") {
			t.Errorf("the model is told about %s", tools)
		}
	}
}

// TestChatNeedsAKeyEverywhere sends chats to a server without a master key.
func TestChatNeedsAKeyEverywhere(t *testing.T) {
	c, _ := newTalking(t, Options{})
	if r := c.json("POST", completions, question("hello")); r.status != 401 || r.code() != "missing_authorization_header" {
		t.Errorf("%d %s", r.status, r.body)
	}
	for body, want := range map[string]string{
		``: "missing_payload", `{`: "malformed_payload", `{}`: "bad_request", `{"model":"m","messages":[]}`: "unimplemented_non_streaming_chat_completions",
	} {
		if r := c.as("x").json("POST", completions, body); r.code() != want {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := c.as("x").json("POST", "/chats/none/chat/completions", question("hello")); r.code() != "chat_not_found" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// begin starts a conversation and reads its first event.
func (c *client) begin(t testing.TB, text string) (*http.Response, *bufio.Reader) {
	t.Helper()
	req, err := http.NewRequest("POST", "http://svc"+completions, strings.NewReader(question(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer x")
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	r := bufio.NewReader(res.Body)
	for range 2 { // retry, and the start of an event
		if line, err := r.ReadString('\n'); err != nil {
			t.Fatalf("%q %v", line, err)
		}
	}
	return res, r
}

// TestReadersDoNotHoldSlots has clients that stop reading, while others search with the only slot.
func TestReadersDoNotHoldSlots(t *testing.T) {
	c, m := newTalking(t, Options{Searches: 1})
	c.begin(t, "talk") // and stop reading
	c.begin(t, "wait")
	for _, text := range []string{"search recipes for onion", "hello"} {
		if got := c.as("x").ask(text); !strings.Contains(got, "hello") && !strings.Contains(got, "I read: id: 1") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if r := c.get("/indexes/recipes/search"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	res, _ := c.begin(t, "wait")
	res.Body.Close()
	<-m.left // the provider's call ended with the client
}

// TestConversationsEndWithTheServer checks that a stop ends conversations with an event, and that the log has no secrets.
func TestConversationsEndWithTheServer(t *testing.T) {
	var log lockedLog
	o := Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	c, m := newTalking(t, o)
	c.server.log = o.Logger // the instance's own is silent
	_, body := c.begin(t, "wait")
	if err := c.server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(body)
	if err != nil || !bytes.HasSuffix(rest, []byte("data: [DONE]\n\n")) || !bytes.Contains(rest, []byte("the server stops")) {
		t.Errorf("%q %v", rest, err)
	}
	<-m.left
	if text := log.String(); !strings.Contains(text, `"conversation ended"`) || strings.Contains(text, "sk-secret") {
		t.Errorf("%s", text)
	}
}

// lockedLog is a log that several goroutines write to.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestManyConversations holds 200 conversations at once. The measured memory includes that of clients and provider.
func TestManyConversations(t *testing.T) {
	const many = 200
	c, m := newTalking(t, Options{})
	inUse := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapInuse + s.StackInuse
	}
	before := inUse()
	var answers []*http.Response
	for range many {
		res, _ := c.begin(t, "wait")
		answers = append(answers, res)
	}
	if n := c.server.conversations.Load(); n != many {
		t.Errorf("%d conversations", n)
	}
	after := inUse()
	const limit = 50 << 20
	if after > before+limit {
		t.Errorf("%d conversations take %d KiB", many, (after-before)>>10)
	}
	t.Logf("%d conversations take %d KiB, with their clients and their provider", many, (int64(after)-int64(before))>>10)
	for _, res := range answers {
		res.Body.Close()
	}
	for range many {
		<-m.left
	}
	for deadline := time.Now().Add(time.Minute); c.server.conversations.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d conversations do not end", c.server.conversations.Load())
		}
	}
}

func TestConversationsAreBounded(t *testing.T) {
	c, _ := newTalking(t, Options{})
	c.server.conversations.Add(maxConversations)
	if got := c.as("x").ask("hello"); got != "too_many_search_requests" {
		t.Error(got)
	}
	c.server.conversations.Add(-maxConversations)
	if got := c.as("x").ask("hello"); got != "hello" {
		t.Error(got)
	}
}

// TestConversationsThatFailBefore has the search for hints panic, as a damaged segment makes it. The conversation is not counted
// afterwards.
func TestConversationsThatFailBefore(t *testing.T) {
	c, _ := newTalking(t, Options{})
	failed := false
	disturb = func() {
		if c.server.conversations.Load() == 1 && !failed {
			failed = true
			panic("a damaged segment")
		}
	}
	defer func() { disturb = nil }()
	if got := c.as("x").ask("hello"); got != "internal" || !failed {
		t.Errorf("a conversation whose start panics: %s", got)
	}
	c.server.slots.release() // the panic came before
	c.server.searches.End()
	if n := c.server.conversations.Load(); n != 0 {
		t.Errorf("%d conversations are counted", n)
	}
	if got := c.as("x").ask("hello"); got != "hello" {
		t.Error(got)
	}
}

func TestChatSeriesAreBounded(t *testing.T) {
	var c chatSeries
	if got := c.label("w", strings.Repeat("m", maxModelBytes+1)); got != "other" || len(c.known) != 0 {
		t.Errorf("a long name: %.20s, %d are known", got, len(c.known))
	}
	for i := range maxChatSeries + 10 {
		name := fmt.Sprint("m", i)
		want := name
		if i >= maxChatSeries {
			want = "other"
		}
		if got := c.label("w", name); got != want {
			t.Fatalf("%s: %s", name, got)
		}
	}
	if got := c.label("w", "m3"); got != "m3" {
		t.Error(got)
	}
}

// TestSearchesOfClientsThatLeft cancels a conversation during a search: the log has no error for that.
func TestSearchesOfClientsThatLeft(t *testing.T) {
	var log logstest.Buffer
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/toys/documents", `[{"id": 1, "name": "doll"}]`))
	c.server.log = logs.New(&log, logs.AtLeast(slog.LevelDebug), logs.JSON).Logger()
	ctx, cancel := context.WithCancelCause(t.Context())
	searcher := &chatSearcher{s: c.server, workspace: "w"}
	if _, err := searcher.Search(ctx, chat.Query{Index: "toys", Q: "doll"}); err != nil {
		t.Fatal(err)
	}
	cancel(errLeft)
	if _, err := searcher.Search(ctx, chat.Query{Index: "toys", Q: "doll"}); !errors.Is(err, errLeft) {
		t.Errorf("the search of a client that has left: %v", err)
	}
	if strings.Contains(log.String(), `"ERROR"`) {
		t.Errorf("the log has an error:\n%s", log.String())
	}
}
