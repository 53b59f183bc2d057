package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// recorder records the calls of a Visitor, one per line.
type recorder struct {
	paths map[string]int
	names []string
	skip  []string
	log   []string
}

func (r *recorder) Field(path []byte) int {
	if slices.Contains(r.skip, string(path)) {
		return -1
	}
	h, ok := r.paths[string(path)]
	if !ok {
		if r.paths == nil {
			r.paths = make(map[string]int)
		}
		h = len(r.names)
		r.paths[string(path)] = h
		r.names = append(r.names, string(path))
	}
	r.log = append(r.log, "field "+string(path))
	return h
}

func (r *recorder) add(field int, format string, args ...any) {
	r.log = append(r.log, r.names[field]+" "+fmt.Sprintf(format, args...))
}

func (r *recorder) DottedKey(field int) { r.add(field, "key") }

func (r *recorder) Visit(field int) { r.add(field, "visit") }
func (r *recorder) Null(field int)  { r.add(field, "null") }
func (r *recorder) Empty(field int) { r.add(field, "empty") }
func (r *recorder) Bool(field int, value bool, indices []int) {
	r.add(field, "bool %v %v", value, indices)
}
func (r *recorder) String(field int, text []byte, indices []int) {
	r.add(field, "string %q %v", text, indices)
}
func (r *recorder) Number(field int, text []byte, value numeric.Value, indices []int) {
	r.add(field, "number %s %s %v", text, value.AppendText(nil), indices)
}

func TestWalk(t *testing.T) {
	tests := []struct {
		doc  string
		want []string
	}{
		{`{}`, nil},
		{`{"a":"x"}`, []string{"field a", "a visit", `a string "x" []`}},
		{`{"a":"é\"\u00e9\ud83d\ude00"}`, []string{"field a", "a visit", `a string "é\"é😀" []`}},
		{`{"a":""}`, []string{"field a", "a visit", `a string "" []`, "a empty"}},
		{`{"a":null,"b":true,"c":false}`, []string{"field a", "a visit", "a null", "field b", "b visit", "b bool true []", "field c", "c visit", "c bool false []"}},
		{`{"a":[],"b":{}}`, []string{"field a", "a visit", "a empty", "field b", "b visit", "b empty"}},
		{`{"a":[null,"",[],{},[1,[2]]]}`, []string{"field a", "a visit", "a visit", `a string "" [1]`, "a visit", "a visit",
			"a visit", "a number 1 1 [4 0]", "a visit", "a number 2 2 [4 1 0]"}},
		{`{"a":{"b":["x",{"c":null}],"d":{"e":{}}}}`, []string{"field a", "field a.b", "a.b visit", "a.b visit", `a.b string "x" [0]`,
			"field a.b.c", "a.b.c visit", "field a.d", "a.d visit", "field a.d.e", "a.d.e visit", "a.d.e visit", "a.d.e empty"}},
		{`{"a.b":1,"a":{"b":2}}`, []string{"field a.b", "a.b key", "a.b visit", "a.b number 1 1 []", "field a", "field a.b", "a.b visit", "a.b number 2 2 []"}},
		{`{"a":{"b.c":{"d.e":[]}},"a.":[{"x.y":1}],"\u002e":{},"skip.":1}`, []string{"field a", "field a.b.c", "a.b.c visit", "field a.b.c.d.e", "a.b.c.d.e visit",
			"a.b.c.d.e visit", "a.b.c.d.e empty", "field a.", "a. key", "field a..x.y", "a..x.y visit", "a..x.y number 1 1 [0]",
			"field .", ". key", ". visit", ". empty"}},
		{`{"a":[{"b":1},{"b":[2]}]}`, []string{"field a", "field a.b", "a.b visit", "a.b number 1 1 [0]",
			"field a.b", "a.b visit", "a.b visit", "a.b number 2 2 [1 0]"}},
		{`{"skipped":{"a":[1,{"b":"}\""}]},"z":1}`, []string{"field z", "z visit", "z number 1 1 []"}},
		{`{"\u0061":{"":1}}`, []string{"field a", "field a.", "a. visit", "a. number 1 1 []"}},
	}
	for _, test := range tests {
		r := recorder{skip: []string{"skipped", "skip."}}
		if err := Walk([]byte(test.doc), &r); err != nil {
			t.Errorf("%s: %v", test.doc, err)
		}
		if !slices.Equal(r.log, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.doc, r.log, test.want)
		}
	}
}

// positions gives words positions by the rules of indexing, for text with blanks as the only separators: each word adds one, and each
// further visit of a path adds eight.
type positions struct {
	recorder
	visited []bool
	base    []int
	last    []int
	words   map[string][]string
}

func (p *positions) Visit(field int) {
	for len(p.visited) <= field {
		p.visited = append(p.visited, false)
		p.base = append(p.base, 0)
		p.last = append(p.last, 0)
	}
	if p.visited[field] {
		p.base[field] = 8 + p.last[field]
	}
	p.visited[field] = true
	p.last[field] = p.base[field]
}

func (p *positions) String(field int, text []byte, _ []int) {
	for i, word := range strings.Fields(string(text)) {
		p.last[field] = p.base[field] + i
		name := p.names[field]
		p.words[name] = append(p.words[name], fmt.Sprintf("%s@%d", word, p.last[field]))
	}
}
func (p *positions) Number(field int, text []byte, _ numeric.Value, _ []int) {
	p.String(field, text, nil)
}
func (p *positions) Bool(field int, v bool, _ []int) {
	p.String(field, strconv.AppendBool(nil, v), nil)
}

func TestWalkPositions(t *testing.T) {
	tests := []struct {
		value string
		want  string
	}{
		{`"a b"`, `{"t":["a@0","b@1"]}`},
		{`["a","b"]`, `{"t":["a@0","b@8"]}`},
		{`["a b","c","e"]`, `{"t":["a@0","b@1","c@9","e@17"]}`},
		{`["","z"]`, `{"t":["z@8"]}`},
		{`[null,"z"]`, `{"t":["z@8"]}`},
		{`[[],"z"]`, `{"t":["z@8"]}`},
		{`[{},"z"]`, `{"t":["z@8"]}`},
		{`[["a"],["b","c"]]`, `{"t":["a@0","b@8","c@16"]}`},
		{`[1,true,"x"]`, `{"t":["1@0","true@8","x@16"]}`},
		{`[{"a":"x"},{"a":"y z"},{"a":"w"}]`, `{"t.a":["x@0","y@8","z@9","w@17"]}`},
		{`[{"b":1},"z"]`, `{"t":["z@0"],"t.b":["1@0"]}`},
		{`[{"a":"x","b":"y"},"s",{"b":"z"}]`, `{"t":["s@0"],"t.a":["x@0"],"t.b":["y@0","z@8"]}`},
		{`{"a":["x","y"]}`, `{"t.a":["x@8","y@16"]}`},
		{`{"a":{"c":["x"]}}`, `{"t.a.c":["x@8"]}`},
		{`{"a":{"c":"x","d":"y z"}}`, `{"t.a.c":["x@0"],"t.a.d":["y@0","z@1"]}`},
		{`[{"a":["x","y"]},{"a":["z"]}]`, `{"t.a":["x@8","y@16","z@32"]}`},
		{`{"a":[{"c":"x"},{"c":"y"}]}`, `{"t.a.c":["x@0","y@8"]}`},
		{`{}`, `{}`},
		{`[]`, `{}`},
		{`null`, `{}`},
		{`1000.0`, `{"t":["1000.0@0"]}`},
	}
	for _, test := range tests {
		p := positions{words: map[string][]string{}}
		if err := Walk([]byte(`{"t":`+test.value+`}`), &p); err != nil {
			t.Errorf("%s: %v", test.value, err)
		}
		if got, _ := json.Marshal(p.words); string(got) != test.want {
			t.Errorf("%s: got %s, want %s", test.value, got, test.want)
		}
	}
}

func TestNumberText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"0", "0"}, {"-0", "-0.0"}, {"42", "42"}, {"-5", "-5"}, {"9007199254740993", "9007199254740993"},
		{"18446744073709551615", "18446744073709551615"}, {"18446744073709551616", "1.8446744073709552e19"},
		{"-9223372036854775808", "-9223372036854775808"}, {"-9223372036854775809", "-9.223372036854776e18"},
		{"123456789012345678901234567890", "1.2345678901234568e29"},
		{"1.0", "1.0"}, {"1e3", "1000.0"}, {"1E3", "1000.0"}, {"1.10", "1.1"}, {"0.0", "0.0"}, {"-1.5E-3", "-0.0015"},
		{"1e15", "1000000000000000.0"}, {"1e16", "1e16"}, {"1e+21", "1e21"}, {"1.5e-7", "1.5e-7"}, {"0.00001", "0.00001"}, {"0.000009", "9e-6"},
		{"1e300", "1e300"}, {"-2.5e-300", "-2.5e-300"}, {"0.1", "0.1"}, {"9999999999999998.0", "9999999999999998.0"}, {"1e-999", "0.0"},
	}
	for _, test := range tests {
		text, value := jsontext.ReadNumber([]byte("x"), []byte(test.in))
		want, _ := numeric.Parse(test.in)
		if string(text) != "x"+test.want || value != want {
			t.Errorf("%s: text %q, value %v; want %q, %v", test.in, text[1:], value, test.want, want)
		}
	}
}

// TestWalkTwin compares the scalars and dotted keys that Walk reports with a walk over the output of encoding/json.
func TestWalkTwin(t *testing.T) {
	g := newGenerator(t, false)
	for range 3000 {
		payload := g.object(5)
		line, _, err := convert(t, JSON, 0, payload)
		if err != nil {
			t.Fatal(err)
		}
		doc := []byte(strings.TrimSuffix(line, "\n"))
		var r recorder
		if err := Walk(doc, &r); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		got := make(map[string]int)
		for _, call := range r.log {
			if !strings.HasSuffix(call, " visit") && !strings.HasPrefix(call, "field ") {
				got[call]++
			}
		}
		var decoded map[string]any
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		want := make(map[string]int)
		twinWalk(want, "", decoded, nil)
		for k := range decoded {
			if strings.Contains(k, ".") {
				want[k+" key"]++
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s:\n got %v\nwant %v", doc, got, want)
		}
	}
}

func twinWalk(calls map[string]int, path string, v any, indices []int) {
	direct := len(indices) == 0
	call := func(format string, args ...any) { calls[path+" "+fmt.Sprintf(format, args...)]++ }
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && direct && path != "" {
			call("empty")
		}
		for k, v := range v {
			if path != "" {
				k = path + "." + k
			}
			twinWalk(calls, k, v, indices)
		}
	case []any:
		if len(v) == 0 && direct {
			call("empty")
		}
		for i, v := range v {
			twinWalk(calls, path, v, append(slices.Clip(indices), i))
		}
	case string:
		call("string %q %v", v, indices)
		if v == "" && direct {
			call("empty")
		}
	case json.Number:
		text, _ := jsontext.ReadNumber(nil, []byte(v))
		x, _ := numeric.Parse(string(v))
		call("number %s %s %v", text, x.AppendText(nil), indices)
	case bool:
		call("bool %v %v", v, indices)
	default:
		if direct {
			call("null")
		}
	}
}

// counter is a Visitor that only counts.
type counter struct{ n int }

func (c *counter) Field([]byte) int                         { return 0 }
func (c *counter) Visit(int)                                { c.n++ }
func (c *counter) Null(int)                                 {}
func (c *counter) Empty(int)                                {}
func (c *counter) Bool(int, bool, []int)                    {}
func (c *counter) String(int, []byte, []int)                {}
func (c *counter) Number(int, []byte, numeric.Value, []int) {}

func TestWalkAllocates(t *testing.T) {
	doc := []byte(`{"id":12345678901234567890,"a":"x\ny","b":[1.5,-2e3,{"c":[true,null,"é"]}],"d":{"e":{"f":""}}}`)
	var c counter
	if n := testing.AllocsPerRun(100, func() {
		if err := Walk(doc, &c); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"c.d":"\u00e9","e":{}}`))
	f.Add([]byte(`{"a":[[[`))
	f.Add([]byte(`{"a":{"b":`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var r recorder
		_ = Walk(doc, &r)
		_ = Fields(doc, func(name, value []byte) error { return nil })
		_, _ = ExternalID(doc, "a.b")
		_, _ = InferPrimaryKey(doc)
		var out bytes.Buffer
		if _, err := Convert(&out, bytes.NewReader(doc), NDJSON, 0); err != nil {
			return
		}
		for line := range bytes.Lines(out.Bytes()) {
			line = bytes.TrimSuffix(line, []byte{'\n'})
			if err := Walk(line, &recorder{}); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	})
}

func BenchmarkWalk(b *testing.B) {
	doc := []byte(`{"id":7,"name":"0ad-data","version":"0.0.26-1","summary":"Real-time strategy game of ancient warfare (data files)",` +
		`"description":"0 A.D. is a free, open-source, cross-platform\nreal-time strategy (RTS) game of ancient warfare. In short, it is a\nhistorically-based war/economy game",` +
		`"section":"games","installedSize":3218736,"size":1377557908,"tags":["role::app-data","use::gameplaying"],"depends":[],"suggests":["0ad"],"multiArch":null}`)
	var c counter
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := Walk(doc, &c); err != nil {
			b.Fatal(err)
		}
	}
}
