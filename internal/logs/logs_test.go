package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParseLevel(t *testing.T) {
	for text, want := range map[string]slog.Level{
		"off": LevelOff, "ERROR": slog.LevelError, "Warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": LevelTrace,
		"0": LevelOff, "1": slog.LevelError, "5": LevelTrace,
	} {
		if got, ok := ParseLevel(text); !ok || got != want {
			t.Errorf("%q: %v %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "6", "00", "loud", "infos", "-1"} {
		if _, ok := ParseLevel(text); ok {
			t.Errorf("%q is accepted as a level", text)
		}
	}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		filter, target string
		want           slog.Level
	}{
		{"info", "svc::task", slog.LevelInfo},
		{"OFF", "svc::task", LevelOff},
		{"task=debug", "svc::task", slog.LevelDebug},
		{"task=debug", "svc::index", LevelOff},
		{"warn,task=debug", "svc::index", slog.LevelWarn},
		{"svc=debug,http=off", "svc::index", slog.LevelDebug},
		{"svc=debug", "svc", slog.LevelDebug},
		{"svc=debug", "svcs::index", LevelOff},
		{"svc=error,svc::index=trace", "svc::index::mergeplan", LevelTrace},
		{"svc::index=trace,svc=error", "svc::index", LevelTrace},
		{"mergeplan=info", "svc::index::mergeplan", slog.LevelInfo},
		{"plan=info", "svc::index::mergeplan", LevelOff},
		{"task=info,task=error", "svc::task", slog.LevelError},
		{"info,warn", "svc::task", slog.LevelWarn},
		{"task=1", "svc::task", slog.LevelError},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
			continue
		}
		if got := f.level(tt.target); got != tt.want {
			t.Errorf("%s lets %s through from %v, want %v", tt.filter, tt.target, got, tt.want)
		}
		if f.lowest() > f.level(tt.target) {
			t.Errorf("%s: the lowest level is %v", tt.filter, f.lowest())
		}
	}
	for _, text := range []string{"", "a=b=c", "x=loud", "loud", "x=", "=info", "info,", ",", "info, warn"} {
		if _, err := ParseFilter(text); err == nil {
			t.Errorf("%q is accepted as a filter", text)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{"info", "warn,a::b=trace", "=", "a=5,a=0", ",,", "\xff=info"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := ParseFilter(text)
		if err != nil {
			return
		}
		for piece := range strings.SplitSeq(text, ",") {
			name, _, _ := strings.Cut(piece, "=")
			if filter.level(name) < filter.lowest() {
				t.Fatalf("%q: %q passes below the lowest level", text, name)
			}
		}
	})
}

func TestTarget(t *testing.T) {
	for function, want := range map[string]string{
		"svc/internal/task.(*Queue).run": "svc::task", "svc/fastapi.New.func1": "svc::fastapi", "main.main": "svc", "": "svc",
		"svc/internal/index/mergeplan.Plan": "svc::index::mergeplan", "github.com/valyala/fasthttp.(*Server).Serve": "github.com::valyala::fasthttp",
	} {
		if got := target(function); got != want {
			t.Errorf("%q: %q, want %q", function, got, want)
		}
	}
}

var moving = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|"(secs|nanos|resident|line)":\d+|"file":"[^"]*"`)

// said returns what a log in a mode writes for three records.
func said(mode Mode, memory bool) string {
	l := New(io.Discard, AtLeast(LevelOff), Human)
	n, err := l.Listen(AtLeast(LevelTrace), mode, memory)
	if err != nil {
		return err.Error()
	}
	log := l.Logger()
	log.Warn("cannot\nread", "error", errors.New(`bad "file"`), "at", time.Unix(0, 0).UTC(), "n", 3, "", "")
	log.Info("close", slog.Group("request", "method", "GET", "query", "a=\x1b\xff", "status", 200, "empty", ""), busy, 1500*time.Microsecond)
	log.With("a", 1).WithGroup("g").With("b", true).Debug("deep", "c", 2.5, slog.Group("d", "e", "f"))
	var b bytes.Buffer
	for range len(n.Lines()) {
		b.Write(<-n.Lines())
	}
	return moving.ReplaceAllString(b.String(), "~")
}

func TestForms(t *testing.T) {
	const span = `{"name":"request","method":"GET","query":"a=\u001b\ufffd","status":200,"empty":""}`
	for name, tt := range map[string]struct {
		mode   Mode
		memory bool
		want   string
	}{
		"human": {Human, false, "" +
			`~  WARN svc::logs: cannot\nread error="bad \"file\"" at=1970-01-01T00:00:00Z n=3 =""` + "\n" +
			`~  INFO request{method=GET query="a=\x1b\xff" status=200 empty=""}: svc::logs: close time.busy=1.5ms` + "\n" +
			`~ DEBUG svc::logs: deep a=1 g.b=true g.c=2.5 g.d.e=f` + "\n"},
		"colored": {Colored, false, "" +
			"\x1b[2m~\x1b[0m  \x1b[33mWARN\x1b[0m \x1b[2msvc::logs:\x1b[0m cannot\\nread error=\"bad \\\"file\\\"\" at=1970-01-01T00:00:00Z n=3 =\"\"\n" +
			"\x1b[2m~\x1b[0m  \x1b[32mINFO\x1b[0m \x1b[1mrequest\x1b[0m{method=GET query=\"a=\\x1b\\xff\" status=200 empty=\"\"}: \x1b[2msvc::logs:\x1b[0m close time.busy=1.5ms\n" +
			"\x1b[2m~\x1b[0m \x1b[34mDEBUG\x1b[0m \x1b[2msvc::logs:\x1b[0m deep a=1 g.b=true g.c=2.5 g.d.e=f\n"},
		"json": {JSON, false, "" +
			`{"timestamp":"~","level":"WARN","fields":{"message":"cannot\nread","error":"bad \"file\"","at":"1970-01-01T00:00:00Z","n":3,"":""},"target":"svc::logs"}` + "\n" +
			`{"timestamp":"~","level":"INFO","fields":{"message":"close","time.busy":"1.5ms"},"target":"svc::logs","span":` + span + `,"spans":[` + span + `]}` + "\n" +
			`{"timestamp":"~","level":"DEBUG","fields":{"message":"deep","a":1,"g.b":true,"g.c":"2.5","g.d.e":"f"},"target":"svc::logs"}` + "\n"},
		"profile": {Profile, true, `{"NewThread":{"thread_id":1,"name":"svc"}}` +
			`{"NewCallsite":{"call_id":1,"name":"cannot\nread","module_path":"svc::logs",~,~,"target":"svc::logs"}}` +
			`{"Event":{"call_id":1,"thread_id":1,"parent_id":null,"time":{~,~},"memory":{~}}}` +
			`{"NewCallsite":{"call_id":2,"name":"request","module_path":"svc::logs",~,~,"target":"svc::logs"}}` +
			`{"NewSpan":{"id":1,"call_id":2,"parent_id":null,"thread_id":1}}{"SpanEnter":{"id":1,"time":{~,~},"memory":{~}}}` +
			`{"SpanExit":{"id":1,"time":{~,~},"memory":{~}}}{"SpanClose":{"id":1,"time":{~,~}}}` +
			`{"NewCallsite":{"call_id":3,"name":"deep","module_path":"svc::logs",~,~,"target":"svc::logs"}}` +
			`{"Event":{"call_id":3,"thread_id":1,"parent_id":null,"time":{~,~},"memory":{~}}}`},
	} {
		if got := said(tt.mode, tt.memory); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
	for line := range strings.Lines(said(JSON, false)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestConsole(t *testing.T) {
	var console bytes.Buffer
	l := New(&console, AtLeast(slog.LevelInfo), Human)
	log := l.Logger()
	log.Debug("one")
	log.Info("two")
	quiet, err := ParseFilter("warn,logs=debug")
	if err != nil {
		t.Fatal(err)
	}
	l.SetConsole(quiet)
	log.Debug("three")
	l.SetConsole(AtLeast(LevelOff))
	log.Error("four")
	if log.Enabled(t.Context(), slog.LevelError) {
		t.Error("off lets errors through")
	}
	got := regexp.MustCompile(`one|two|three|four`).FindAllString(console.String(), -1)
	if strings.Join(got, " ") != "two three" {
		t.Errorf("the console got %v", got)
	}
}

func TestListener(t *testing.T) {
	l := New(io.Discard, AtLeast(LevelOff), Human)
	log := l.Logger()
	n, err := l.Listen(AtLeast(slog.LevelInfo), JSON, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Listen(AtLeast(slog.LevelInfo), JSON, false); !errors.Is(err, ErrListener) {
		t.Errorf("a second listener: %v", err)
	}
	// Lines are not read: loggers must not block.
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range keptLines {
				log.Info("line")
			}
		})
	}
	writers.Wait()
	if len(n.Lines()) != keptLines {
		t.Errorf("%d lines are kept, want %d", len(n.Lines()), keptLines)
	}
	l.StopListening()
	select {
	case <-n.Done():
	default:
		t.Error("the listener is not closed")
	}
	n.Stop()
	l.StopListening()
	again, err := l.Listen(AtLeast(slog.LevelInfo), JSON, false)
	if err != nil {
		t.Fatal(err)
	}
	n.Stop() // stopping the former listener again does not stop the next
	log.Info("heard")
	if line := string(<-again.Lines()); !strings.Contains(line, "heard") {
		t.Errorf("got %s", line)
	}
}

func TestOneLine(t *testing.T) {
	for message, want := range map[string]string{
		"a \"plain\" one — ünd so": "a \"plain\" one — ünd so", "two\nlines": `two\nlines`, "back\rover": `back\rover`, "\x1b[2Jgone \"q\"": `\x1b[2Jgone \"q\"`, "\u009b31m": `\u009b31m`,
	} {
		if got := oneLine(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
