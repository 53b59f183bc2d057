package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"svc/internal/apierr"
)

// convert runs Convert on a payload, and again with one-byte reads and a window that is too small at first. Both must agree.
func convert(t testing.TB, f Format, delimiter byte, payload string) (string, int, error) {
	t.Helper()
	var whole, pieces bytes.Buffer
	n, err := Convert(&whole, strings.NewReader(payload), f, delimiter)
	small := converter{in: window{buf: make([]byte, 2*Padding)}}
	n2, err2 := small.run(&pieces, iotest.OneByteReader(strings.NewReader(payload)), f, delimiter)
	if n != n2 || fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && whole.String() != pieces.String() {
		t.Fatalf("%.100q: whole: %d %v %.200q\nin pieces: %d %v %.200q", payload, n, err, whole.String(), n2, err2, pieces.String())
	}
	return whole.String(), n, err
}

func TestConvert(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	tests := []struct {
		format Format
		in     string
		want   string
		code   apierr.Code
	}{
		{JSON, `[]`, "", ""},
		{JSON, ` [ ] `, "", ""},
		{JSON, `{}`, "{}\n", ""},
		{JSON, "  [ {\"id\" : 4 , \"t\":\"fo\\u0075r\"} ]\n ", `{"id":4,"t":"fo\u0075r"}` + "\n", ""},
		{JSON, `[{"a":1},{"b":[1, 2 , { "c" : null }],"d":{}}]`, `{"a":1}` + "\n" + `{"b":[1,2,{"c":null}],"d":{}}` + "\n", ""},
		{JSON, "\uFEFF{\"id\":1}", `{"id":1}` + "\n", ""},
		{JSON, `[{"a":-0,"b":1.50,"c":1E3,"d":123456789012345678901234567890,"e":1e-999}]`,
			`{"a":-0,"b":1.50,"c":1E3,"d":123456789012345678901234567890,"e":1e-999}` + "\n", ""},
		{JSON, `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}` + "\n", ""},
		{JSON, `{"x":[{"a":1,"\u0061":{"z":1,"z":2}}]}`, `{"x":[{"a":{"z":2}}]}` + "\n", ""},
		{JSON, `{"a":"\ud83d\ude00é日\u00e9"}`, `{"a":"\ud83d\ude00é日\u00e9"}` + "\n", ""},
		{JSON, `{"a":` + deep + `}`, `{"a":` + deep + "}\n", ""},
		{JSON, `{"a":[` + deep + `]}`, "", "malformed_payload"},
		{JSON, strings.Repeat("[", 1<<20), "", "malformed_payload"},
		{JSON, `{"a":` + strings.Repeat("[", 1<<20), "", "malformed_payload"},
		{JSON, strings.Repeat(`{"a":`, 1<<18), "", "malformed_payload"},
		{JSON, ``, "", "missing_payload"},
		{JSON, `  `, "", "malformed_payload"},
		{JSON, `{`, "", "malformed_payload"},
		{JSON, `[`, "", "malformed_payload"},
		{JSON, `[{]`, "", "malformed_payload"},
		{JSON, `[1, 2]`, "", "malformed_payload"},
		{JSON, `[{"id": 1, ]`, "", "malformed_payload"},
		{JSON, `[{"id": 1}`, "", "malformed_payload"},
		{JSON, `[{"id": 1},]`, "", "malformed_payload"},
		{JSON, `[{"id": 1},,{"id": 2}]`, "", "malformed_payload"},
		{JSON, `[{"id": 1} {"id": 2}]`, "", "malformed_payload"},
		{JSON, `[{"id": 1,}]`, "", "malformed_payload"},
		{JSON, `[{"id": 1}] x`, "", "malformed_payload"},
		{JSON, `[{"id": 1}]]`, "", "malformed_payload"},
		{JSON, `{"id":1}{"id":2}`, "", "malformed_payload"},
		{JSON, `{"id": 1`, "", "malformed_payload"},
		{JSON, `{id: 1}`, "", "malformed_payload"},
		{JSON, `[{'id': 1}]`, "", "malformed_payload"},
		{JSON, `hello`, "", "malformed_payload"},
		{JSON, `"a string"`, "", "malformed_payload"},
		{JSON, `12`, "", "malformed_payload"},
		{JSON, `null`, "", "malformed_payload"},
		{JSON, `{"id": NaN}`, "", "malformed_payload"},
		{JSON, `{"id": 01}`, "", "malformed_payload"},
		{JSON, `{"id": 1.}`, "", "malformed_payload"},
		{JSON, `{"id": .5}`, "", "malformed_payload"},
		{JSON, `{"id": +5}`, "", "malformed_payload"},
		{JSON, `{"id": 1e}`, "", "malformed_payload"},
		{JSON, `{"id": 1e400}`, "", "malformed_payload"},
		{JSON, `{"id": ` + strings.Repeat("9", 400) + `}`, "", "malformed_payload"},
		{JSON, `{"id": trux}`, "", "malformed_payload"},
		{JSON, `{"id": "a` + "\n" + `"}`, "", "malformed_payload"},
		{JSON, `{"id": "a` + "\x00" + `"}`, "", "malformed_payload"},
		{JSON, `{"id"` + "\x00" + `: 1}`, "", "malformed_payload"},
		{JSON, `{"id": "\x"}`, "", "malformed_payload"},
		{JSON, `{"id": "\u12g4"}`, "", "malformed_payload"},
		{JSON, `{"id": "\ud83d"}`, "", "malformed_payload"},
		{JSON, `{"id": "\ud83dx\ude00"}`, "", "malformed_payload"},
		{JSON, `{"id": "\ude00"}`, "", "malformed_payload"},
		{JSON, "{\"id\": \"\xff\"}", "", "malformed_payload"},
		{JSON, "{\"\xc3\": 1}", "", "malformed_payload"},
		{NDJSON, "{\"id\":4}\n\n{\"id\":5}\r\n   \n{\"id\":6}", "{\"id\":4}\n{\"id\":5}\n{\"id\":6}\n", ""},
		{NDJSON, `{"id":1}{"id":81}`, "{\"id\":1}\n{\"id\":81}\n", ""},
		{NDJSON, `{"id": 4} {"id": 5}`, "{\"id\":4}\n{\"id\":5}\n", ""},
		{NDJSON, "\n \n", "", ""},
		{NDJSON, ``, "", "missing_payload"},
		{NDJSON, "{\"id\":1}\n{\"id\":2", "", "malformed_payload"},
		{NDJSON, "{\"id\":1}\n{\"id\":", "", "malformed_payload"},
		{NDJSON, "{\"id\":1}\n{id:2}", "", "malformed_payload"},
		{NDJSON, "{\"id\":1},\n{\"id\":2}", "", "malformed_payload"},
		{NDJSON, "{\"id\":1}\nnope", "", "malformed_payload"},
		{NDJSON, "{\"id\": 1 \"a\": 2}", "", "malformed_payload"},
		{NDJSON, "{\"id\":1}\n}", "", "malformed_payload"},
		{NDJSON, "[{\"id\":1}]", "", "malformed_payload"},
		{CSV, "id,name,note\n1,Ada,first\n2,,\n3,\"Smith, John\",\"said \"\"hi\"\"\"\n4,\"two\nlines\", padded \n",
			`{"id":"1","name":"Ada","note":"first"}` + "\n" + `{"id":"2","name":null,"note":null}` + "\n" +
				`{"id":"3","name":"Smith, John","note":"said \"hi\""}` + "\n" + `{"id":"4","name":"two\nlines","note":" padded "}` + "\n", ""},
		{CSV, "id,name\r\n6,crlf\r\n7,last without newline", `{"id":"6","name":"crlf"}` + "\n" + `{"id":"7","name":"last without newline"}` + "\n", ""},
		{CSV, "id,name\n", "", ""},
		{CSV, "id", "", ""},
		{CSV, "", "", "missing_payload"},
		{JSON, `{"a":` + deep + `}`, `{"a":` + deep + "}\n", ""},
		{JSON, `{"a":[` + deep + `]}`, "", "malformed_payload"},
		{CSV, "id\n\n8\n\n9\n", `{"id":"8"}` + "\n" + `{"id":"9"}` + "\n", ""},
		{CSV, "id\n\"\"\n", `{"id":null}` + "\n", ""},
		{CSV, "\uFEFFid\nx", `{"id":"x"}` + "\n", ""},
		{CSV, "a,b,a\n1,2,3", `{"b":"2","a":"3"}` + "\n", ""},
		{CSV, "a\n\"x\"y\nz\"\"\n5\" pipe", `{"a":"xy"}` + "\n" + `{"a":"z\"\""}` + "\n" + `{"a":"5\" pipe"}` + "\n", ""},
		{CSV, "id:number,name:string,price:number,sold:boolean,zip\n1,lamp,12.50,true,01234\n3,vase,,,\n4,urn, 7 , true ,0\n5,jug,1e3,false,1\n",
			`{"id":1,"name":"lamp","price":12.50,"sold":true,"zip":"01234"}` + "\n" + `{"id":3,"name":"vase","price":null,"sold":null,"zip":null}` + "\n" +
				`{"id":4,"name":"urn","price":7,"sold":true,"zip":"0"}` + "\n" + `{"id":5,"name":"jug","price":1e3,"sold":false,"zip":"1"}` + "\n", ""},
		{CSV, "ref:id,when:date,a:b:number\nx,2020,4\n", `{"ref:id":"x","when:date":"2020","a:b":4}` + "\n", ""},
		{CSV, "n:number\n+18446744073709551615\n0018446744073709551615\n+9007199254740993\n", `{"n":18446744073709551615}` + "\n" + `{"n":18446744073709551615}` + "\n" +
			`{"n":9007199254740993}` + "\n", ""},
		{CSV, "n:number\n9007199254740993\n-0.125\n+5\n007\n.5\n5.\n", `{"n":9007199254740993}` + "\n" + `{"n":-0.125}` + "\n" + `{"n":5}` + "\n" +
			`{"n":7}` + "\n" + `{"n":0.5}` + "\n" + `{"n":5.0}` + "\n", ""},
		{CSV, "id,name\n1,a,b\n", "", "malformed_payload"},
		{CSV, "id,name\n1\n", "", "malformed_payload"},
		{CSV, "id:number\nabc\n", "", "malformed_payload"},
		{CSV, "id:number\nNaN\n", "", "malformed_payload"},
		{CSV, "id:number\ninf\n", "", "malformed_payload"},
		{CSV, "id:number\n0x1p3\n", "", "malformed_payload"},
		{CSV, "id:number\n1e999\n", "", "malformed_payload"},
		{CSV, "id,ok:boolean\n1,yes\n", "", "malformed_payload"},
		{CSV, "id,ok:boolean\n1,TRUE\n", "", "malformed_payload"},
		{CSV, "id,n:number\n1,\"1,5\"\n", "", "malformed_payload"},
		{CSV, "id\n\"open", "", "malformed_payload"},
		{CSV, "id\n\xff", "", "malformed_payload"},
	}
	for _, test := range tests {
		got, n, err := convert(t, test.format, ',', test.in)
		if test.code != "" {
			if apierr.From(err).Code != test.code {
				t.Errorf("%v %.60q: error %v, want %s", test.format, test.in, err, test.code)
			}
			continue
		}
		if err != nil || got != test.want || n != strings.Count(test.want, "\n") {
			t.Errorf("%v %.60q: %d documents, %v\n got %q\nwant %q", test.format, test.in, n, err, got, test.want)
		}
	}
}

func TestConvertDelimiters(t *testing.T) {
	for _, d := range []byte{';', '\t', '|', 0} {
		sep := string(d)
		got, _, err := convert(t, CSV, d, "id"+sep+"a\n1"+sep+"\"x"+sep+"y\"\n")
		quoted, _ := json.Marshal("x" + sep + "y")
		if want := `{"id":"1","a":` + string(quoted) + "}\n"; err != nil || got != want {
			t.Errorf("delimiter %q: %v, got %q, want %q", d, err, got, want)
		}
	}
	for _, d := range []byte{'"', '\n', '\r', 0xC3} {
		if _, _, err := convert(t, CSV, d, "id\n1\n"); apierr.From(err).Code != "invalid_document_csv_delimiter" {
			t.Errorf("delimiter %q: error %v", d, err)
		}
	}
}

// TestConvertWhere checks that errors give the position: byte, document or line.
func TestConvertWhere(t *testing.T) {
	big := strings.Repeat(`{"id":1,"text":"some words to fill the window with"}`+"\n", 5000)
	tests := []struct {
		format Format
		in     string
		want   string
	}{
		{JSON, `[{"a":1},{"b":x}]`, "in document 2, at byte 14: expected a value."},
		{JSON, `[{"a":1},5]`, "in document 2, at byte 9: expected an object: each document is one."},
		{JSON, `[{"a":1`, "in document 1, at byte 7: expected a comma or the end of an object; was the body truncated?"},
		{NDJSON, big + "{\"a\":\"\xff\"}", fmt.Sprintf("in document 5001, at byte %d: the text is not valid UTF-8.", len(big)+6)},
		{CSV, "id,n:number\n1,\"2\"\n\n\"x\ny\",two\n", `in line 4: "two" in the column "n" is not a number.`},
	}
	for _, test := range tests {
		_, _, err := convert(t, test.format, ',', test.in)
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%.60q: error %v, want … %s", test.in, err, test.want)
		}
	}
}

// TestConvertReaderErrors checks that an error of the reader is returned unchanged.
func TestConvertReaderErrors(t *testing.T) {
	tooLarge := apierr.New("payload_too_large", "too large")
	for _, want := range []error{tooLarge, io.ErrUnexpectedEOF, io.ErrClosedPipe} {
		for f, payload := range map[Format]string{JSON: `[{"id":1},{"id":`, NDJSON: `{"id":1}`, CSV: "id\n1\n"} {
			r := io.MultiReader(strings.NewReader(payload), iotest.ErrReader(want))
			if _, err := Convert(io.Discard, r, f, ','); err != want {
				t.Errorf("%v: error %v, want %v", f, err, want)
			}
		}
	}
	w := failingWriter{io.ErrShortWrite}
	if _, err := Convert(w, strings.NewReader(`{"id":1}`), JSON, 0); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("writer: error %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// generator generates random JSON with all the freedom of the grammar.
type generator struct {
	*rand.Rand
	spaces bool
}

func newGenerator(t testing.TB, spaces bool) *generator {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &generator{rand.New(rand.NewPCG(seed, 0)), spaces}
}

func (g *generator) space() string {
	if !g.spaces || g.IntN(3) > 0 {
		return ""
	}
	return strings.Repeat([]string{" ", "\n", "\t", "\r", " "}[g.IntN(5)], 1+g.IntN(3))
}

func (g *generator) object(depth int) string {
	var b strings.Builder
	b.WriteString("{" + g.space())
	for i := range g.IntN(6) {
		if i > 0 {
			b.WriteString("," + g.space())
		}
		b.WriteString(g.str(true) + g.space() + ":" + g.space() + g.value(depth) + g.space())
	}
	return b.String() + "}"
}

func (g *generator) value(depth int) string {
	switch n := g.IntN(12); {
	case n < 2 && depth > 0:
		return g.object(depth - 1)
	case n < 4 && depth > 0:
		var b strings.Builder
		b.WriteString("[" + g.space())
		for i := range g.IntN(5) {
			if i > 0 {
				b.WriteString("," + g.space())
			}
			b.WriteString(g.value(depth-1) + g.space())
		}
		return b.String() + "]"
	case n < 5:
		return []string{"true", "false", "null", `""`, "[]", "{}"}[g.IntN(6)]
	case n < 8:
		return g.number()
	}
	return g.str(false)
}

func (g *generator) number() string {
	var b strings.Builder
	if g.IntN(3) == 0 {
		b.WriteByte('-')
	}
	n := g.Uint64() >> g.IntN(64)
	fmt.Fprint(&b, n)
	if n > 0 && g.IntN(4) == 0 {
		fmt.Fprintf(&b, "%d", g.Uint64())
	}
	if g.IntN(4) == 0 {
		fmt.Fprintf(&b, ".%d", g.IntN(1000))
	}
	if g.IntN(4) == 0 {
		b.WriteString([]string{"e", "E"}[g.IntN(2)] + []string{"", "+", "-"}[g.IntN(3)])
		fmt.Fprint(&b, g.IntN(200))
	}
	return b.String()
}

func (g *generator) str(key bool) string {
	parts := []string{"a", "b", "id", "name", ".", " ", "é", "日本", "😀", `\n`, `\"`, `\\`, `\/`, `\u0061`, `\u00e9`, `\ud83d\ude00`, "some longer text, with more than eight bytes"}
	n := g.IntN(5)
	if key {
		n = 1 + g.IntN(2)
	}
	s := `"`
	for range n {
		s += parts[g.IntN(len(parts))]
	}
	return s + `"`
}

// TestConvertTwin compares Convert with encoding/json on random payloads, some of them invalid.
func TestConvertTwin(t *testing.T) {
	g := newGenerator(t, true)
	for range 3000 {
		var docs []string
		for range g.IntN(4) {
			docs = append(docs, g.object(4))
		}
		payload := "[" + g.space() + strings.Join(docs, g.space()+","+g.space()) + g.space() + "]"
		if g.IntN(3) == 0 {
			b := []byte(payload)
			switch at := g.IntN(len(b)); g.IntN(3) {
			case 0:
				b[at] = `{}[],:"\0e-.tx `[g.IntN(15)]
			case 1:
				b = b[:at]
			case 2:
				b = append(b[:at], b[at+1:]...)
			}
			payload = string(b)
		}
		got, n, err := convert(t, JSON, 0, payload)
		var want []map[string]any
		wantErr := json.Unmarshal([]byte(payload), &want)
		if one := strings.HasPrefix(payload, "{"); one {
			want = make([]map[string]any, 1)
			wantErr = json.Unmarshal([]byte(payload), &want[0])
		}
		if wantErr == nil && !utf8.ValidString(payload) {
			wantErr = errors.New("invalid UTF-8") // encoding/json accepts it
		}
		if strings.Contains(payload, "null") && wantErr == nil && err != nil {
			continue // encoding/json accepts null as an object
		}
		if wantErr == nil && err != nil && strings.Contains(err.Error(), "surrogate") {
			continue // and half a surrogate pair as U+FFFD
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, encoding/json says %v", payload, err, wantErr)
		}
		if err != nil {
			continue
		}
		lines := strings.SplitAfter(got, "\n")
		lines = lines[:len(lines)-1]
		if n != len(want) || len(lines) != n {
			t.Fatalf("%q: %d documents, %d lines, want %d", payload, n, len(lines), len(want))
		}
		for i, line := range lines {
			checkDocument(t, line)
			if !equalJSON(t, []byte(line), want[i]) {
				t.Fatalf("%q: document %d: %q, want %v", payload, i, line, want[i])
			}
		}
	}
}

// checkDocument checks what the package guarantees of documents.
func checkDocument(t testing.TB, line string) {
	t.Helper()
	doc, ok := strings.CutSuffix(line, "\n")
	if !ok || strings.Contains(doc, "\n") {
		t.Fatalf("%q is not one line", line)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(doc)); err != nil || compact.String() != doc {
		t.Fatalf("%q is not compact: %v", line, err)
	}
	if m, err := membersOf([]byte(doc)); err != nil {
		t.Fatal(err)
	} else if seen := map[string]bool{}; true {
		for m.next() {
			if seen[string(m.name())] {
				t.Fatalf("%q has the field %q twice", doc, m.name())
			}
			seen[string(m.name())] = true
		}
	}
}

func equalJSON(t testing.TB, doc []byte, want any) bool {
	t.Helper()
	var got any
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	return bytes.Equal(a, b)
}

func FuzzConvert(f *testing.F) {
	for _, s := range []string{
		`[{"id":1,"a":"é\n"},{"id":2,"b":[1,-2.5e3,{"c":null}]}]`, `{"id":1}{"id":2}`, "id,n:number,b:boolean\n1,2,true\n\"a\"\"b\",,\n",
		`{"a":1,"a":{"b":"\ud83d\ude00"}}`, "\uFEFF{}", "[[[[", "a\r\nb\r\n",
	} {
		for format := range uint8(3) {
			f.Add(format, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, payload []byte) {
		out, n, err := convert(t, Format(format%3), ',', string(payload))
		if err != nil {
			if c := apierr.From(err).Code; c != "malformed_payload" && c != "missing_payload" {
				t.Fatalf("code %s: %v", c, err)
			}
			return
		}
		if strings.Count(out, "\n") != n {
			t.Fatalf("%d documents in %q", n, out)
		}
		for _, line := range strings.SplitAfter(out, "\n") {
			if line != "" {
				checkDocument(t, line)
			}
		}
		if n == 0 {
			return
		}
		if again, _, err := convert(t, NDJSON, 0, out); err != nil || again != out {
			t.Fatalf("%q is not stable: %v, %q", out, err, again)
		}
	})
}

func BenchmarkConvert(b *testing.B) {
	doc := `{"id": 7, "name": "0ad-data", "version": "0.0.26-1", "summary": "Real-time strategy game of ancient warfare (data files)", ` +
		`"description": "0 A.D. is a free, open-source, cross-platform\nreal-time strategy (RTS) game of ancient warfare. In short, it is a\nhistorically-based war/economy game", ` +
		`"section": "games", "installedSize": 3218736, "size": 1377557908, "tags": ["role::app-data", "use::gameplaying"], "depends": [], "suggests": ["0ad"], "multiArch": null}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(doc)); err != nil {
		b.Fatal(err)
	}
	payloads := map[string]string{
		"spaced":  "[" + strings.Repeat(doc+", ", 1000) + doc + "]",
		"compact": "[" + strings.Repeat(compact.String()+",", 1000) + compact.String() + "]",
		"csv":     "id:number,name,text\n" + strings.Repeat("12,\"a name\",\"some text, some more text\"\n", 5000),
	}
	for name, payload := range payloads {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			f := JSON
			if name == "csv" {
				f = CSV
			}
			for b.Loop() {
				if _, err := Convert(io.Discard, strings.NewReader(payload), f, ','); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTooLargeDocuments converts documents of the maximum size, and larger ones, which end the reading of an endless payload.
func TestTooLargeDocuments(t *testing.T) {
	defer func(n int) { MaxBytes = n }(MaxBytes)
	MaxBytes = 200_000
	doc := func(bytes int) string {
		const around = len(`{"id":1,"x":""}`)
		return `{"id":1,"x":"` + strings.Repeat("x", bytes-around) + `"}`
	}
	for _, extra := range []int{0, 1} {
		whole := doc(MaxBytes + extra)
		for _, tt := range []struct {
			payload string
			format  Format
		}{
			{whole, JSON},
			{"[{\"id\":0}," + whole + "]", JSON},
			{"{\"id\":0}\n" + whole + "\n{\"id\":2}", NDJSON},
			{"id:number,x\n1," + strings.Repeat("x", len(whole)-len(`{"id":1,"x":""}`)) + "\n", CSV},
		} {
			n, err := Convert(io.Discard, strings.NewReader(tt.payload), tt.format, ',')
			if extra == 0 && (err != nil || n < 1) || extra > 0 && (err == nil || apierr.From(err).Code != "payload_too_large") {
				t.Errorf("%v, %d bytes: %d documents, %v", tt.format, len(whole), n, err)
			}
		}
	}
	read := 0
	_, err := Convert(io.Discard, io.MultiReader(strings.NewReader(`{"x":"`), readerFunc(func(p []byte) (int, error) {
		for i := range p {
			p[i] = 'x'
		}
		read += len(p)
		return len(p), nil
	})), NDJSON, ',')
	if err == nil || apierr.From(err).Code != "payload_too_large" || read > 4*MaxBytes {
		t.Errorf("an endless document: %v after %d bytes", err, read)
	}
	var o Operation
	var p Patcher
	if err := o.Read([]byte(`{"id":1,"append":{"t":"`+strings.Repeat("y", MaxBytes/2)+`"}}`), "id", SkipMissing); err != nil {
		t.Fatal(err)
	}
	once, err := p.Apply([]byte(`{"id":1}`), &o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(bytes.Clone(once), &o); err == nil || apierr.From(err).Code != "inapplicable_document_operation" {
		t.Errorf("a growing document: %v", err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
