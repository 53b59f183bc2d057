package chat

import (
	"bytes"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads all events of a stream. Events of the type error begin with "!".
func readAll(r io.Reader) (events []string, err error) {
	e := newEventReader(r)
	for {
		data, failed, err := e.next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return events, err
		}
		s := string(data)
		if failed {
			s = "!" + s
		}
		events = append(events, s)
	}
}

func TestEventReader(t *testing.T) {
	for stream, want := range map[string][]string{
		"":                                               nil,
		"\n\n\n":                                         nil,
		"data: a\n\ndata: b\n\n":                         {"a", "b"},
		"data: a\r\n\r\ndata: b\r\n\r\n":                 {"a", "b"},
		"data: a\r\rdata: b\r\r":                         {"a", "b"},
		"data: a\n\r\ndata: b\r\n\n":                     {"a", "b"},
		"\xEF\xBB\xBFdata: a\n\n":                        {"a"},
		"data: \xEF\xBB\xBFa\n\n":                        {"\xEF\xBB\xBFa"},
		"data:a\n\n":                                     {"a"},
		"data:  a\n\n":                                   {" a"},
		"data: a\ndata: b\n\n":                           {"a\nb"},
		"data\n\n":                                       {""},
		"data:\n\n":                                      {""},
		": comment\ndata: a\n: another\n\n":              {"a"},
		": ping\n\n: ping\n\ndata: a\n\n":                {"a"},
		"retry: 10\nid: 3\ndata: a\n\n":                  {"a"},
		"Data: a\ndatax: b\n\n":                          nil,
		"event: error\ndata: a\n\ndata: b\n\n":           {"!a", "b"},
		"event: error\n\ndata: b\n\n":                    {"b"},
		"event: message\ndata: a\n\n":                    {"a"},
		"data: a":                                        {"a"},
		"data: a\n\ndata: [DONE]":                        {"a", "[DONE]"},
		"data: a\n\ndata: [DONE]\r":                      {"a", "[DONE]"},
		"data: \xff\xfe\n\n":                             {"\uFFFD"},
		"data: {\"t\":\"\xc3\xa4\xf0\x9f\x8d\x8e\"}\n\n": {`{"t":"ä🍎"}`},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(stream), "byte by byte": iotest.OneByteReader(strings.NewReader(stream))} {
			if got, err := readAll(r); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q %s: %q %v, want %q", stream, name, got, err, want)
			}
		}
	}
	for _, stream := range []string{"data: " + strings.Repeat("x", maxEventBytes), strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100), ": " + strings.Repeat("x", maxEventBytes)} {
		if _, err := readAll(strings.NewReader(stream)); err != errLongEvent {
			t.Errorf("%d bytes: %v", len(stream), err)
		}
	}
	cut := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, err := readAll(cut); err != io.ErrUnexpectedEOF || !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q %v", got, err)
	}
}

// TestEventsAreNotDelayed reads an event that ends in CRs without waiting for the next bytes.
func TestEventsAreNotDelayed(t *testing.T) {
	r, w := io.Pipe()
	e := newEventReader(r)
	go w.Write([]byte("data: a\r\r"))
	if data, _, err := e.next(); err != nil || string(data) != "a" {
		t.Fatalf("%q %v", data, err)
	}
	go func() { w.Write([]byte("\ndata: b\r\n\r")); w.Write([]byte("\n")); w.Close() }()
	if data, _, err := e.next(); err != nil || string(data) != "b" {
		t.Fatalf("%q %v", data, err)
	}
}

var lineEnds = regexp.MustCompile("\r\n|\r|\n")

// slowEvents is the reference implementation: the algorithm of the standard, except for an event at the end.
func slowEvents(stream string) (events []string) {
	lines := lineEnds.Split(strings.TrimPrefix(stream, "\xEF\xBB\xBF"), -1)
	var data []string
	failed := false
	end := func() {
		if data != nil {
			s := strings.ToValidUTF8(strings.Join(data, "\n"), "\uFFFD")
			if failed {
				s = "!" + s
			}
			events = append(events, s)
		}
		data, failed = nil, false
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			end()
		case name == "data":
			data = append(data, value)
		case name == "event":
			failed = value == "error"
		}
	}
	end()
	return events
}

// choppy returns a stream in pieces of any length.
type choppy struct {
	rest []byte
	rnd  *rand.Rand
}

func (c *choppy) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+c.rnd.IntN(7))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("\xEF\xBB\xBF: c\r\ndata: a\r\rdata:b\n\nevent: error\ndata: {}\n\ndata: \xf0\x9f"), uint64(1))
	f.Add([]byte(`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"n","arguments":""}},{"index":1,"id":"b"}]},"finish_reason":null}]}`+"\n\n"+
		`data: {"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"function":{"arguments":"{"}},{"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":3}}`+"\n\ndata: [DONE]\n\n"), uint64(2))
	f.Add([]byte(`data: {"error":{"message":"m","type":"t","code":4,"param":[1]}}`), uint64(3))
	f.Add([]byte(`data: {"choices":[{"delta":null,"finish_reason":"stop"},{}],"usage":{"total_tokens":1.5}}`), uint64(4))
	f.Add([]byte(`data: {"choices":[null]}`), uint64(4))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) > 1<<16 {
			return
		}
		want := slowEvents(string(stream))
		got, err := readAll(&choppy{bytes.Clone(stream), rand.New(rand.NewPCG(seed, 0))})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q %v, want %q", stream, got, err, want)
		}
		for _, event := range got { // must not panic
			k, err := parseChunk([]byte(strings.TrimPrefix(event, "!")))
			if err != nil {
				continue
			}
			var a spoken
			var g gathering
			var finish string
			if _, err := a.take(k, &g, &finish); err == nil {
				g.whole()
				if b := k.appendJSON(nil); bytes.ContainsAny(b, "\r\n") {
					t.Fatalf("%q on more than one line", b)
				}
			}
		}
	})
}
