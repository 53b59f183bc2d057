package fastapi

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// browser returns the path of Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the page is not opened in a browser")
	return ""
}

// chromium is a headless browser, driven by the DevTools protocol over two pipes: messages are JSON followed by a zero byte.
type chromium struct {
	t       *testing.T
	in      *os.File
	mu      sync.Mutex
	last    int
	waiting map[int]chan devtools
	tabs    map[string]*tab
	gone    bool // the browser has ended
}

// devtools is a message of the protocol, in either direction.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// tab is a page of a browser.
type tab struct {
	*chromium
	session string
	events  chan devtools // requested by listen
	only    string
}

// startChromium starts a browser that ends with the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	cmd := exec.Command(browser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	theirs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs, theirOut} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	b := &chromium{t: t, in: in, waiting: map[int]chan devtools{}, tabs: map[string]*tab{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(out)
	}()
	t.Cleanup(func() {
		b.send("", "Browser.close", nil)
		in.Close()
		dead := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-read
		_ = cmd.Wait()
		dead.Stop()
		out.Close()
	})
	return b
}

// read delivers the messages of the browser until it ends.
func (b *chromium) read(out io.Reader) {
	for r := bufio.NewReaderSize(out, 1<<20); ; {
		line, err := r.ReadBytes(0)
		b.mu.Lock()
		if err != nil {
			b.gone = true
			for _, answer := range b.waiting {
				close(answer)
			}
			b.waiting = map[int]chan devtools{}
			b.mu.Unlock()
			return
		}
		var m struct {
			devtools
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) == nil {
			m.devtools.Params = m.Params
			if answer := b.waiting[m.ID]; answer != nil {
				delete(b.waiting, m.ID)
				answer <- m.devtools
			} else if tab := b.tabs[m.Session]; tab != nil && tab.only == m.Method && m.Method != "" {
				tab.events <- m.devtools
			}
		}
		b.mu.Unlock()
	}
}

// send sends a command and returns the channel of its answer, or nil if the browser is gone.
func (b *chromium) send(session, method string, params any) chan devtools {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return nil
	}
	b.last++
	line, err := json.Marshal(devtools{ID: b.last, Session: session, Method: method, Params: params})
	if err != nil {
		b.t.Error(err)
		return nil
	}
	answer := make(chan devtools, 1)
	b.waiting[b.last] = answer
	_, _ = b.in.Write(append(line, 0)) // without a sent command there is no answer
	return answer
}

// values is a JSON object.
type values = map[string]any

// call sends a command and decodes its answer into result, unless that is nil.
func (b *chromium) call(session, method string, params, result any) {
	b.t.Helper()
	if refused := b.try(session, method, params, result); refused != "" {
		b.t.Fatalf("%s: %s", method, refused)
	}
}

// try is call, but returns the error of the browser.
func (b *chromium) try(session, method string, params, result any) (refused string) {
	b.t.Helper()
	select {
	case answer, ok := <-b.send(session, method, params):
		switch {
		case !ok:
			b.t.Fatalf("%s: the browser is gone", method)
		case answer.Error != nil:
			return answer.Error.Message
		case result != nil:
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: no answer in a minute", method)
	}
	return ""
}

// reloads reloads a page if a style sheet or a classic script fails to load; the page itself does so for its modules. Chromium drops all
// requests in progress when the network interfaces of the machine change, which tests of cmd/svc do at the same time.
const reloads = `addEventListener("error", ({target}) => (target instanceof HTMLLinkElement || target instanceof HTMLScriptElement && target.type !== "module") && location.reload(), true)`

// open opens an empty page in its own context, without stored data.
func (b *chromium) open() *tab {
	b.t.Helper()
	var context struct{ BrowserContextID string }
	b.call("", "Target.createBrowserContext", values{}, &context)
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", values{"url": "about:blank", "browserContextId": context.BrowserContextID}, &target)
	var session struct{ SessionID string }
	b.call("", "Target.attachToTarget", values{"targetId": target.TargetID, "flatten": true}, &session)
	p := &tab{chromium: b, session: session.SessionID, events: make(chan devtools, 1000)}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	p.do("Page.enable", values{}, nil)
	p.do("Page.addScriptToEvaluateOnNewDocument", values{"source": reloads}, nil)
	return p
}

func (p *tab) do(method string, params, result any) {
	p.t.Helper()
	p.call(p.session, method, params, result)
}

// look sets the size of the page and its color scheme.
func (p *tab) look(width, height int, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do("Emulation.setDeviceMetricsOverride", values{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.do("Emulation.setEmulatedMedia", values{"features": []values{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// goTo opens an address, even if only its fragment changes.
func (p *tab) goTo(url string) {
	p.t.Helper()
	p.do("Page.navigate", values{"url": "about:blank"}, nil)
	p.do("Page.navigate", values{"url": url}, nil)
}

// eval returns the value of an expression, awaiting promises.
func (p *tab) eval(expression string, result any) {
	p.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.do("Runtime.evaluate", values{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		p.t.Fatalf("%.200s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		p.t.Fatalf("%.200s: %v in %s", expression, err, answer.Result.Value)
	}
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		// The page may not exist yet or may be reloading: then the browser returns an error or no value.
		var answer struct{ Result struct{ Value bool } }
		refused := p.try(p.session, "Runtime.evaluate", values{"expression": "(() => { try { return !!(" + expression + "); } catch { return false; } })()", "returnByValue": true}, &answer)
		if refused == "" && answer.Result.Value {
			return
		}
		if time.Now().After(end) {
			var text string
			p.eval(`location.href + " " + (document.body?.innerText ?? "").slice(0, 2000) +
				performance.getEntriesByType("resource").filter(e => !e.responseStatus).map(e => "\nnot loaded: " + e.name).join("")`, &text)
			p.t.Fatalf("not true within a minute: %s: %s %s", expression, refused, text)
		}
	}
}

// typeIn types a letter into the focused element.
func (p *tab) typeIn(letter string) {
	p.t.Helper()
	p.do("Input.dispatchKeyEvent", values{"type": "keyDown", "text": letter, "key": letter}, nil)
	p.do("Input.dispatchKeyEvent", values{"type": "keyUp", "key": letter}, nil)
}

// listen records events of a kind, which next returns one by one.
func (p *tab) listen(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.only = method
}

func (p *tab) next(params any) {
	p.t.Helper()
	select {
	case m := <-p.events:
		raw, _ := m.Params.(json.RawMessage)
		if err := json.Unmarshal(raw, params); err != nil {
			p.t.Fatal(err)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("no %s in a minute", p.only)
	}
}

// picture writes a screenshot of the page to a file.
func (p *tab) picture(name string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.do("Page.captureScreenshot", values{"format": "png"}, &shot)
	b, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(name, b, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// axe returns the source of axe-core, an accessibility checker.
func axe(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// complaints runs axe-core on the page, and returns its findings.
func (p *tab) complaints(axe string) []string {
	p.t.Helper()
	p.eval("window.axe ? 0 : (() => {"+axe+"})(), 0", nil)
	var found []struct {
		ID, Help string
		Nodes    []struct {
			HTML           string
			FailureSummary string
		}
	}
	p.eval(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations)`, &found)
	var lines []string
	for _, f := range found {
		for _, n := range f.Nodes {
			lines = append(lines, fmt.Sprintf("%s (%s): %.200s: %s", f.ID, f.Help, n.HTML, n.FailureSummary))
		}
	}
	return lines
}
