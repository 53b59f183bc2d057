package template

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const sample = `{"id":1,"s":"Some Text here","b":true,"num":1.5,"two":2.0,"big":1e3,"u":18446744073709551615,"neg":-3,` +
	`"n":{"x":"in","y":[1,2]},"arr":["a",1,null,true],"deep":["a",1,null,["z"],{"k":"v"}],"nul":null,"emp":"","o":{},"none":[],` +
	`"people":[{"name":"Bo","age":30},{"name":"al","age":20},{"name":"Cy"}],"html":"<b>x</b>\ny","_geo":{"lat":1,"lng":2},"a-b":"hyphen"}`

func everything(string) bool { return true }

func mustParse(t *testing.T, source string) *Template {
	t.Helper()
	parsed, err := Parse(Work{}, source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return parsed
}

func render(t *testing.T, source, doc string) (string, error) {
	t.Helper()
	return mustParse(t, source).Render(Work{}, []byte(doc), everything, 0)
}

func TestRender(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{"", ""},
		{"plain { text } %} }}", "plain { text } %} }}"},
		{"{{ doc.s }}", "Some Text here"},
		{"{{doc['s']}}{{ doc[\"n\"].x }}", "Some Text herein"},
		{"{{ doc.a-b }}", "hyphen"},
		// Values as printed.
		{"{{doc.arr}}", "a1true"},
		{"{{doc.deep}}", "a1zkv"},
		{"{{doc.nul}}|{{doc.emp}}|{{doc.o}}|{{nil}}", "|||"},
		{"{{doc.two}} {{doc.big}} {{doc.num}} {{doc.u}} {{doc.neg}} {{ 1.50 }} {{ -2 }}", "2 1000 1.5 18446744073709551615 -3 1.5 -2"},
		{"{{doc.b}} {{false}}", "true false"},
		{"{{doc.n}}", "xiny12"},
		// Access to parts of values.
		{"{{doc.arr[0]}}{{doc.arr[-1]}}{{doc.arr.first}}{{doc.arr.last}}{{doc.arr.size}}{{doc.n.size}}{{doc.s.size}}", "atrueatrue4214"},
		{"{% assign k = 's' %}{{ doc[k] }}", "Some Text here"},
		// Conditions.
		{"{% if doc.missing %}a{% else %}b{% endif %}", "b"},
		{"{% if doc.n.missing.more %}a{% endif %}{% unless nothing %}c{% endunless %}", "c"},
		{"{% if doc.missing or doc.s %}a{% endif %}{% if doc.missing and doc.s %}b{% endif %}", "a"},
		{"{% if doc.nul %}a{% endif %}{% if doc.emp %}b{% endif %}{% if doc.o %}c{% endif %}{% if false %}d{% endif %}", "bc"},
		{"{% if doc.emp == empty %}a{% endif %}{% if doc.emp == blank %}b{% endif %}{% if doc.none == empty %}c{% endif %}{% if doc.s == empty %}d{% endif %}", "abc"},
		{"{% if doc.nul == nil %}a{% endif %}{% if doc.s != nil %}b{% endif %}{% if doc.num > 1 %}c{% endif %}{% if doc.num <= 1.5 %}d{% endif %}{% if doc.s < 1 %}e{% endif %}", "abcd"},
		{"{% if doc contains 's' %}a{% endif %}{% if doc contains 'zz' %}b{% endif %}{% if doc.arr contains 'a' %}c{% endif %}{% if doc.arr contains 'z' %}d{% endif %}{% if doc.s contains 'Text' %}e{% endif %}", "ace"},
		{"{% if fields contains 's' %}a{% endif %}", ""},
		{"{% if doc.num == 1 %}a{% elsif doc.num == 1.5 %}b{% else %}c{% endif %}", "b"},
		{"{% if true and false or true %}a{% endif %}", "a"},
		{"{% case doc.s %}{% when 'x', 'y' %}a{% when 'z' or 'Some Text here' %}b{% else %}c{% endcase %}", "b"},
		{"{% case doc.num %} {% when 7 %}a{% else %}c{% endcase %}", "c"},
		// Loops.
		{"{% for x in doc.arr %}[{{x}}]{% endfor %}", "[a][1][][true]"},
		{"{% for x in doc.none %}a{% else %}b{% endfor %}{% for x in doc.nul %}a{% endfor %}", "b"},
		{"{% for x in (1..4) reversed %}{{x}}{% if forloop.last %}.{% endif %}{% endfor %}", "4321."},
		{"{% for x in (1..10) limit: 3 offset: 2 %}{{forloop.index}}/{{forloop.length}}:{{x}} {% endfor %}", "1/3:3 2/3:4 3/3:5 "},
		{"{% for x in (1..9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{x}}{% endfor %}", "134"},
		{"{% for p in doc.n %}{{p[0]}}={{p[1]}};{% endfor %}", "x=in;y=12;"},
		{"{% for i in (1..2) %}{% for j in (1..2) %}{{forloop.parentloop.index}}{{j}} {% endfor %}{% endfor %}", "11 12 21 22 "},
		{"{% for f in fields limit: 2 %}{{f.name}}={{f.value}} {{f.is_searchable}} {% endfor %}{{fields.size}}", "id=1 true s=Some Text here true 18"},
		{"{% for f in fields %}{% if f.name contains '_' %}{{f.name}}{% endif %}{% endfor %}", ""},
		{"{{doc._geo.lat}}", "1"},
		{"{% tablerow x in (1..3) cols: 2 %}{{x}}{% endtablerow %}", `<tr class="row1"><td class="col1">1</td><td class="col2">2</td></tr><tr class="row2"><td class="col1">3</td></tr>`},
		{"{% for x in (1..3) %}{% cycle 'a', 'b' %}{% endfor %}{% for x in (1..2) %}{% cycle 'g': 'c', 'd' %}{% endfor %}", "abacd"},
		{"{% for x in (1..4) %}{% ifchanged %}{{ x | divided_by: 2 }}{% endifchanged %}{% endfor %}", "012"},
		// Other tags.
		{"{% assign a = doc.s | upcase %}{{a}}{% capture c %}<{{a}}>{% endcapture %}{{c}}", "SOME TEXT HERE<SOME TEXT HERE>"},
		{"{% increment i %}{% increment i %}{% decrement j %}{{i}}", "01-12"},
		{"{% comment %} {{ broken {% comment %} x {% endcomment %} {% endcomment %}a", "a"},
		{"{% raw %}{{ doc.s }}{% if %}{% endraw %}", "{{ doc.s }}{% if %}"},
		{"a  {{- doc.id -}}  b {%- if true -%} c {%- endif %} d", "a1bc d"},
		{"a{% break %}b", "a"},
		{`{{ "}}" }}`, "}}"},
	} {
		if got, err := render(t, tt.source, sample); err != nil || got != tt.want {
			t.Errorf("%s\n got %q, %v\nwant %q", tt.source, got, err, tt.want)
		}
	}
}

func TestFilters(t *testing.T) {
	for source, want := range map[string]string{
		"-7 | abs": "7", "'-7.5' | abs": "7.5", "'a' | append: 1": "a1", "'b' | prepend: 1": "1b",
		"3 | at_least: 5": "5", "3 | at_most: 2": "2", "'ab cD' | capitalize": "Ab cD",
		"1.2 | ceil": "2", "1.8 | floor": "1", "2.5 | round": "3", "-2.5 | round": "-3", "1.255 | round: 1": "1.3",
		"7 | divided_by: 2": "3", "7.0 | divided_by: 2": "3.5", "7 | modulo: 4": "3", "1 | plus: '2' | minus: 0.5 | times: 2": "5",
		"9223372036854775807 | plus: 1": "9223372036854776000",
		"doc.arr | compact | size":      "3", "doc.arr | concat: doc.none | join": "a 1  true", "doc.arr | join: ', '": "a, 1, , true",
		"doc.arr | first": "a", "doc.s | last": "e", "doc.arr | last": "true", "doc.arr | reverse": "true1a",
		"doc.people | map: 'name' | join": "Bo al Cy", "doc.people | where: 'age' | map: 'name'": "Boal",
		"doc.people | where: 'age', 20 | map: 'name'": "al", "doc.people | sort: 'age' | map: 'name'": "alBoCy",
		"doc.people | map: 'name' | sort | join": "Bo Cy al", "doc.people | map: 'name' | sort_natural": "alBoCy",
		"'b,a,b,c' | split: ',' | uniq | join: ''": "bac", "'abc' | split: '' | join: '-'": "a-b-c", "'' | split: ',' | size": "0",
		"doc.nul | default: 'd'": "d", "doc.emp | default: 'd'": "d", "doc.s | default: 'd'": "Some Text here",
		"doc.s | downcase": "some text here", "doc.html | escape": "&lt;b&gt;x&lt;/b&gt;\ny", "'&lt;<' | escape_once": "&lt;&lt;",
		"doc.html | strip_html": "x\ny", "doc.html | newline_to_br": "<b>x</b><br />\ny", "doc.html | strip_newlines": "<b>x</b>y",
		"' a ' | lstrip | append: '.'": "a .", "' a ' | rstrip | append: '.'": " a.", "' a ' | strip": "a",
		"'abab' | remove: 'b'": "aa", "'abab' | remove_first: 'b'": "aab", "'abab' | replace: 'b', 'c'": "acac", "'abab' | replace_first: 'b', 'c'": "acab",
		"doc.s | size": "14", "'hello' | slice: 1": "e", "'hello' | slice: -3, 2": "ll", "doc.arr | slice: 0, 2": "a1",
		"doc.s | truncate: 7": "Some...", "doc.s | truncate: 7, ''": "Some Te", "doc.s | truncate": "Some Text here",
		"doc.s | truncatewords: 1": "Some...", "doc.s | truncatewords: 2, ''": "Some Text", "doc.s | truncatewords: 3": "Some Text here",
		"'a b&c' | url_encode": "a+b%26c", "'a+b%26c' | url_decode": "a b&c",
		"'2026-11-05 16:03:09' | date: '%Y/%-m/%e %H'": "2026/11/ 5 16", "'2026-11-05' | date: '%^B %d, %y (%a) %j %%'": "NOVEMBER 05, 26 (Thu) 309 %",
		"'2026-11-05' | date: '%^é %^q %é'": "%^é %^q %é",
		"doc.s | date: '%Y'":                "Some Text here", "doc.s | upcase | truncatewords: 1 | downcase ": "some...",
	} {
		if got, err := render(t, "{{ "+source+" }}", sample); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", source, got, err, want)
		}
	}
	for _, source := range []string{"doc.s | plus: 1", "1 | divided_by: 0", "1.0 | divided_by: 0", "1 | modulo: 0", "doc.s | join", "doc.s | map: 'x'", "doc.s | slice: 'x'", "'%zz' | url_decode"} {
		if got, err := render(t, "{{ "+source+" }}", sample); err == nil {
			t.Errorf("%s gives %q", source, got)
		}
	}
}

func TestMissing(t *testing.T) {
	doc := strings.Replace(sample, `"id"`, `"_vectors":{},"id"`, 1)
	for source, names := range map[string]string{
		"{{ doc.missing }}": "`arr`", "{{ doc.n.missing }}": "`x`, `y`", "{{ doc.missing | default: 'd' }}": "`doc.missing`",
		"{% if doc.missing == nil %}{% endif %}": "`doc.missing`", "{{ title }}": "`doc`", "{% for x in doc.missing %}{% endfor %}": "`doc.missing`",
		"{{ doc.arr[9] }}": "`doc.arr[9]`", "{{ doc._vectors }}": "_vectors", "\n\n{% case doc.missing %}{% when 1 %}{% endcase %}": "missing",
		"{% include 'x' %}": "include", "{% render 'x' %}": "render", "{% for x in doc.s %}{% endfor %}": "array",
	} {
		_, err := render(t, source, doc)
		if e, ok := err.(*RenderError); !ok || !strings.Contains(e.Reason, names) || e.Line < 1 {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, source := range []string{"{{doc.t", "{% if %}", "{% if doc.a", "{{ }}", "{{ doc. }}", "{{ doc.t | nofilter }}", "{{ doc.t | json }}", "{{ doc.t | base64_encode }}",
		"{{ doc.t | pluralize }}", "{% for x in doc.tags %}", "{% endfor %}", "{% if a %}{% endfor %}", "{% nope %}", "{% if a | size > 3 %}{% endif %}", "{{ doc.t | truncate: 1, 2, 3 }}",
		"{{ doc.t | append }}", "{{ a b }}", "{{ 'a }}", "{{ a[1 }}", "{% assign a %}", "{% assign = 1 %}", "{% for x doc %}{% endfor %}", "{% for x in (1 3) %}{% endfor %}",
		"{% for x in a step: 2 %}{% endfor %}", "{% case a %}x{% endcase %}", "{% raw %}", "{% comment %}", "{% capture %}{% endcapture %}", "{% cycle %}", "{% else %}", "{{ a ? b }}",
		"{{ 99999999999999999999 }}", "{% %}", strings.Repeat("{% if a %}", 200) + strings.Repeat("{% endif %}", 200), "{{ a" + strings.Repeat("[a", 200) + strings.Repeat("]", 200) + "}}"} {
		if _, err := Parse(Work{}, source); err == nil {
			t.Errorf("%q parses", cut(source, 60))
		}
	}
	if _, err := Parse(Work{}, "a\nb\n{{ doc.t | nofilter }}"); err == nil || !strings.HasPrefix(err.Error(), "line 3:") {
		t.Errorf("the line of an error: %v", err)
	}
}

// TestBounds renders templates that would run forever or fill the memory.
func TestBounds(t *testing.T) {
	for _, source := range []string{
		"{% for i in (1..9000000000000000000) %}{% endfor %}",
		"{% for i in (-9000000000000000000..9000000000000000000) %}x{% endfor %}",
		"{% for i in (1..10000) %}{% for j in (1..10000) %}{% for k in (1..10000) %}x{% endfor %}{% endfor %}{% endfor %}",
		"{% assign a = 'xxxxxxxxxxxxxxxx' %}{% for i in (1..100) %}{% assign a = a | append: a %}{% endfor %}",
		"{% assign a = 'x' %}{% for i in (1..100) %}{% capture a %}{{a}}{{a}}{{a}}{% endcapture %}{% endfor %}",
		"{% assign a = doc.s %}{% for i in (1..100) %}{% assign a = a | replace: 'e', a %}{% endfor %}",
		"{% assign a = 'a,b' | split: ',' %}{% for i in (1..100) %}{% assign a = a | concat: a %}{% endfor %}",
		"{% assign a = 'a,b' | split: ',' %}{% assign s = doc.s %}{% for i in (1..100) %}{% assign s = a | join: s %}{% assign a = s | split: '' %}{% endfor %}",
	} {
		_, err := mustParse(t, source).Render(Work{}, []byte(sample), everything, 400)
		if _, ok := err.(*RenderError); !ok || !strings.Contains(err.Error(), "takes too many steps") {
			t.Errorf("%s: %T %v", source, err, err)
		}
	}
	// Text that is cut off costs nothing, and a long document is allowed.
	long := `{"t":"` + strings.Repeat("é", 4<<20) + `"}`
	if got, err := mustParse(t, "a{{doc.t}}{{doc.t}}").Render(Work{}, []byte(long), everything, 4); err != nil || got != "aé" {
		t.Errorf("%q, %v", cut(got, 20), err)
	}
}

func TestMaxBytes(t *testing.T) {
	for limit, want := range map[int]string{0: "x: aé日", 1: "x", 4: "x: a", 5: "x: a", 6: "x: aé", 8: "x: aé", 9: "x: aé日", 100: "x: aé日"} {
		if got, err := mustParse(t, "x: {{doc.t}}").Render(Work{}, []byte(`{"t":"aé日"}`), everything, limit); err != nil || got != want {
			t.Errorf("%d: %q, %v", limit, got, err)
		}
	}
}

// TestDefaultTwin compares the fast path of the default template with the interpreter, on random documents.
func TestDefaultTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	slow, fast := mustParse(t, Default), mustParse(t, Default)
	if slow.isDefault = false; !fast.isDefault || !fast.UsesSearchable() {
		t.Fatal("the default template is not recognized")
	}
	for range 2000 {
		doc := []byte{'{'}
		for i, n := range random.Perm(8)[:random.IntN(7)] {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = fmt.Appendf(doc, `"%s":`, []string{"_geo", "_vectors", "a", "bb", `é\n`, "", "ccc", "_geojson"}[n])
			doc = appendRandom(doc, random, 3)
		}
		doc = append(doc, '}')
		searchable := func(name string) bool { return len(name)%3 != 0 }
		limit := random.IntN(40)
		want, err1 := slow.Render(Work{}, doc, searchable, limit)
		got, err2 := fast.Render(Work{}, doc, searchable, limit)
		if err1 != nil || err2 != nil || got != want {
			t.Fatalf("%s, %d bytes\n fast %q %v\n slow %q %v", doc, limit, got, err2, want, err1)
		}
	}
	got, err := fast.Render(Work{}, []byte(`{"id":1,"s":"text","b":true,"num":1.5,"n":{"x":"in"},"arr":["a",1,null,["z"],{"k":"v"}],"nul":null,"emp":"","o":{}}`),
		func(name string) bool { return strings.Contains(" b s arr nul missing o emp ", " "+name+" ") }, 0)
	if want := "s: text\nb: true\narr: a1zkv\nemp: \no: \n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

func appendRandom(dst []byte, random *rand.Rand, depth int) []byte {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	n := random.IntN(kinds)
	switch n {
	case 0:
		return append(dst, "null"...)
	case 1:
		return append(dst, "true"...)
	case 2:
		return fmt.Appendf(dst, "%d", random.Int64()-random.Int64())
	case 3:
		return fmt.Appendf(dst, "%ge%d", random.Float64(), random.IntN(30)-15)
	case 4:
		return append(dst, `"a\u00e9\ud83d\ude00\n\"x"`...)
	case 5:
		return append(dst, `""`...)
	case 6:
		return append(dst, "12345678901234567890"...)
	}
	ends := [2]byte{'[', ']'}
	if n == 8 {
		ends = [2]byte{'{', '}'}
	}
	dst = append(dst, ends[0])
	for i := range random.IntN(4) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if n == 8 {
			dst = fmt.Appendf(dst, `"k%d":`, i)
		}
		dst = appendRandom(dst, random, depth-1)
	}
	return append(dst, ends[1])
}

func TestJSON(t *testing.T) {
	j, err := ParseJSON(Work{}, []byte(`{"a": "{{doc.s}}\n", "b": [1, "x", {"{{c}}": "{{ doc.n.x }}"}], "d": null, "e":[], "f":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.RenderDocument(Work{}, []byte(`{"s":"q\"uote","n":{"x":"é"}}`))
	if want := `{"a":"q\"uote\n","b":[1,"x",{"{{c}}":"é"}],"d":null,"e":[],"f":{}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := j.RenderDocument(Work{}, []byte(`{"s":"x"}`)); err == nil {
		t.Error("a missing field is rendered")
	}
	q, err := ParseJSON(Work{}, []byte(`["{{q}}", "{{media.image.url}}"]`))
	if err != nil {
		t.Fatal(err)
	}
	got, err = q.Render(Work{}, Variable{"q", json.RawMessage(`"hi"`)}, Variable{"media", json.RawMessage(`{"image":{"url":"u"},"more":1}`)})
	if err != nil || string(got) != `["hi","u"]` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := q.Render(Work{}, Variable{"q", json.RawMessage(`"hi"`)}); err == nil {
		t.Error("absent media is rendered")
	}
	for _, broken := range []string{`{"a": ["{% if"]}`, `{"a": `} {
		if _, err := ParseJSON(Work{}, []byte(broken)); err == nil {
			t.Errorf("%s is read", broken)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{Default, "{% for x in doc.arr %}{{x|upcase}}{% endfor %}", "{%- if doc.s contains 'a' -%}{%else%}{%endif%}", "{{ 'a' | slice: -1, 5 | date: '%^B' }}",
		"{% case doc.id %}{% when 1 %}{% endcase %}", "{% raw %}{{{% endraw %}", "{% comment %}{% endcomment %}", "{% tablerow x in (1..2) cols:1 %}{% endtablerow %}", "{% cycle a: 1,2 %}{% ifchanged %}{% endifchanged %}",
		"{% for x in (-9223372036854775808..9223372036854775807) %}{% endfor %}"} {
		f.Add(s, sample)
	}
	f.Fuzz(func(t *testing.T, source, doc string) {
		parsed, err := Parse(Work{}, source)
		var keys map[string]json.RawMessage
		if err != nil || json.Unmarshal([]byte(doc), &keys) != nil || keys == nil {
			return
		}
		whole, err := json.Marshal(keys)
		if err != nil {
			return
		}
		got, err := parsed.Render(Work{}, whole, everything, 50)
		if len(got) > 50 {
			t.Fatalf("%q, %v", got, err)
		}
		if _, ok := err.(*RenderError); err != nil && !ok {
			t.Fatalf("a %T", err)
		}
	})
}
