package script

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/document"
)

const editDocs = `{"id":1,"title":"alpha beta","n":3,"kind":"a","tags":["x","y"]}
{"id":2,"title":"gamma","n":10,"kind":"b","tags":[],"meta":{"k":1.5}}
{"id":3,"title":"delta","n":-4,"kind":"a"}`

func edit(t testing.TB, source, doc, context string) (string, error) {
	t.Helper()
	s, err := Compile(source, []byte(context))
	if err != nil {
		return "", err
	}
	s.operations, s.deadline = budget/3, time.Hour // however slow the machine
	out, err := s.Edit(t.Context(), []byte(doc))
	return string(out), err
}

func TestEditDocuments(t *testing.T) {
	docs := strings.Split(editDocs, "\n")
	tests := []struct {
		source, context string
		want            []string // by document; "=" for unchanged
	}{
		{"doc.title = doc.title.to_upper(); doc.n += 1;", "", []string{
			`{"id":1,"title":"ALPHA BETA","n":4,"kind":"a","tags":["x","y"]}`,
			`{"id":2,"title":"GAMMA","n":11,"kind":"b","tags":[],"meta":{"k":1.5}}`,
			`{"id":3,"title":"DELTA","n":-3,"kind":"a"}`}},
		{"doc.label = `${doc.kind}-${doc.n}`; doc.remove(\"kind\");", "", []string{
			`{"id":1,"title":"alpha beta","n":3,"tags":["x","y"],"label":"a-3"}`,
			`{"id":2,"title":"gamma","n":10,"tags":[],"meta":{"k":1.5},"label":"b-10"}`,
			`{"id":3,"title":"delta","n":-4,"label":"a--4"}`}},
		{`if "tags" in doc { doc.tags.push("z"); doc.count = doc.tags.len(); }`, "", []string{
			`{"id":1,"title":"alpha beta","n":3,"kind":"a","tags":["x","y","z"],"count":3}`,
			`{"id":2,"title":"gamma","n":10,"kind":"b","tags":["z"],"meta":{"k":1.5},"count":1}`, "="}},
		{`if doc.id == 2 { doc.meta.k = doc.meta.k * 2.0; doc.meta["new"] = #{deep: [1, 2]}; }`, "", []string{
			"=", `{"id":2,"title":"gamma","n":10,"kind":"b","tags":[],"meta":{"k":3.0,"new":{"deep":[1,2]}}}`, "="}},
		{"let unused = 5;", "", []string{"=", "=", "="}},
		{"doc.n = doc.n * context.factor; doc.by = context.who.name;", `{"factor": 5, "who": {"name": "Zoe"}}`, []string{
			`{"id":1,"title":"alpha beta","n":15,"kind":"a","tags":["x","y"],"by":"Zoe"}`,
			`{"id":2,"title":"gamma","n":50,"kind":"b","tags":[],"meta":{"k":1.5},"by":"Zoe"}`,
			`{"id":3,"title":"delta","n":-20,"kind":"a","by":"Zoe"}`}},
		{"doc.seen = context.flag", `{"flag":false}`, []string{
			`{"id":1,"title":"alpha beta","n":3,"kind":"a","tags":["x","y"],"seen":false}`,
			`{"id":2,"title":"gamma","n":10,"kind":"b","tags":[],"meta":{"k":1.5},"seen":false}`,
			`{"id":3,"title":"delta","n":-4,"kind":"a","seen":false}`}},
		{"if doc.n < 0 { doc = () }", "", []string{"=", "=", ""}},
		{"doc = ();", "", []string{"", "", ""}},
		{"fn twice(x) { x * 2 } doc.twice = twice(doc.n);", "", []string{
			`{"id":1,"title":"alpha beta","n":3,"kind":"a","tags":["x","y"],"twice":6}`,
			`{"id":2,"title":"gamma","n":10,"kind":"b","tags":[],"meta":{"k":1.5},"twice":20}`,
			`{"id":3,"title":"delta","n":-4,"kind":"a","twice":-8}`}},
		{`doc.level = switch doc.kind { "a" => "first", "b" if doc.n > 5 => "big", _ => "rest" };`, "", []string{
			`{"id":1,"title":"alpha beta","n":3,"kind":"a","tags":["x","y"],"level":"first"}`,
			`{"id":2,"title":"gamma","n":10,"kind":"b","tags":[],"meta":{"k":1.5},"level":"big"}`,
			`{"id":3,"title":"delta","n":-4,"kind":"a","level":"first"}`}},
	}
	for _, test := range tests {
		s, err := Compile(test.source, []byte(test.context))
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		for i, doc := range docs {
			want := test.want[i]
			if want == "=" {
				want = doc
			}
			got, err := s.Edit(t.Context(), []byte(doc))
			if err != nil || string(got) != want {
				t.Errorf("%s: %v\n got %s\nwant %s", test.source, err, got, want)
			}
		}
	}
}

// TestEditExpressions evaluates expressions into the field r of an empty document.
func TestEditExpressions(t *testing.T) {
	tests := []struct{ source, want string }{
		{"doc.r = 7 / 2", "3"}, {"doc.r = -7 / 2", "-3"}, {"doc.r = -7 % 3", "-1"}, {"doc.r = 7 / 2.0", "3.5"}, {"doc.r = 2 ** 10", "1024"},
		{"doc.r = 2 ** -1.0", "0.5"}, {"doc.r = 1 + 2 * 3 - 4", "3"}, {"doc.r = 2 ** 3 ** 2", "512"}, {"doc.r = (1 + 2) * 3", "9"}, {"doc.r = -2 ** 2", "4"},
		{"doc.r = 1 << 4 | 1", "17"}, {"doc.r = 6 & 3", "2"}, {"doc.r = 6 ^ 3", "5"}, {"doc.r = 0xff + 0b11 + 0o7", "265"}, {"doc.r = 1_000_000", "1000000"},
		{"doc.r = 9007199254740993", "9007199254740993"}, {"doc.r = -9223372036854775808", "-9223372036854775808"}, {"doc.r = 1.0", "1.0"}, {"doc.r = 1e20", "1e20"},
		{"doc.r = 10.0.to_int()", "10"}, {"doc.r = 5.to_float()", "5.0"}, {"doc.r = 2.7.floor()", "2.0"}, {"doc.r = (-2.5).round()", "-3.0"},
		{"doc.r = 1 == 1.0", "true"}, {`doc.r = "1" == 1`, "false"}, {"doc.r = () == ()", "true"}, {"doc.r = [1, #{a: 2}] == [1, #{a: 2}]", "true"},
		{"doc.r = () > 1", "false"}, {`doc.r = "abc" < "abd"`, "true"}, {"doc.r = !true || true && false", "false"}, {"doc.r = () ?? 5", "5"}, {"doc.r = doc.a?.b?.c", "null"},
		{"doc.r = #{a: #{b: 3}}.a?.b", "3"}, {"doc.r = 3 in [1, 2, 3]", "true"}, {`doc.r = "x" !in #{x: 1}`, "false"}, {`doc.r = "ell" in "hello"`, "true"}, {"doc.r = 3 in 0..3", "false"},
		{"doc.r = 3 in 0..=3", "true"}, {`doc.r = "a" + 1 + 2.0 + true + ()`, `"a12.0true"`}, {`doc.r = 1 + "a"`, `"1a"`}, {`doc.r = [1] + [2]`, "[1,2]"}, {`doc.r = #{a: 1} + #{b: 2}`, `{"a":1,"b":2}`},
		{"doc.r = `a${1 + 1}b${[\"x\", ()]}`", `"a2b[\"x\", ()]"`}, {"doc.r = `\nline ${`in ${1}`}`", `"line in 1"`}, {`doc.r = "tab\t\x41\u00e9" + 'c'`, `"tab\tAéc"`}, {`doc.r = "two "" quotes"`, `"two \" quotes"`},
		{`let s = "héllo😀"; doc.r = [s.len(), s.bytes(), s[1], s[-1], s[1..3], s.sub_string(2), s.sub_string(-2, 1), s.index_of("l"), s.index_of("z")]`,
			`[6,10,"é","😀","él","llo😀","o",2,-1]`},
		{`let s = "  pad "; s.trim(); doc.r = s; doc.q = "a-b-c".split("-"); doc.p = " a  b ".split(); doc.o = "abc".split(1)`, `"pad"`},
		{`let s = "abc"; s[0] = 'x'; s += "d"; s.pad(6, '.'); s.make_upper(); doc.r = s`, `"XBCD.."`},
		{`doc.s = "abc"; doc.s.replace("b", "-"); doc.s.crop(1); doc.r = doc.s`, `"-c"`},
		{`let a = ["x "]; a[0].trim(); a[0][0] = 'y'; doc.r = a`, `["y"]`},
		{`doc.r = "a1".contains("1") && "ab".starts_with("a") && "ab".ends_with("b") && "".is_empty`, "true"}, {`doc.r = ["12".parse_int(), "ff".parse_int(16), "1.5".parse_float()]`, "[12,255,1.5]"},
		{`let a = [3, 1, 2]; a.sort(); a.push(9); a.insert(0, 0); doc.r = [a, a.pop(), a.shift(), a.remove(1), a.len()]`, "[[0,1,2,3,9],9,0,2,2]"},
		{`let a = [1, 2]; let b = a; b.push(3); doc.r = [a, b]`, "[[1,2],[1,2,3]]"},
		{`let m = #{a: [1]}; let n = m; n.a.push(2); doc.r = [m, n]`, `[{"a":[1]},{"a":[1,2]}]`},
		{`fn f(x) { x.push(1); x } let a = []; doc.r = [f(a), a]`, "[[1],[]]"}, {`fn f() { this.push(1); } let a = []; a.f(); doc.r = a`, "[1]"},
		{`doc.r = [1, 2, 3].map(|v| v * v)`, "[1,4,9]"}, {`doc.r = [1, 2, 3, 4].filter(|v| v % 2 == 1)`, "[1,3]"}, {`doc.r = [1, 2, 3].reduce(|s, v| s + v, 10)`, "16"},
		{`doc.r = [5, 6].map(|v, i| v * i)`, "[0,6]"}, {`doc.r = [1, 2].some(|v| v > 1) && [1, 2].all(|v| v > 0)`, "true"}, {`doc.r = [[1, 2].find(|v| v > 1), [1].find(|v| v > 1)]`, "[2,null]"},
		{`doc.r = [3, 1, 2]; doc.r.sort(|a, b| b - a); doc.r.reverse()`, "[1,2,3]"}, {`let f = |x| x + 1; doc.r = [f.call(1), f(2)]`, "[2,3]"}, {`let n = 1; let f = || n += 1; f.call(); f.call(); doc.r = n`, "3"},
		{`fn add(a, b) { return a + b; } doc.r = Fn("add").call(1, 2)`, "3"}, {`fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } } doc.r = fib(10)`, "55"},
		{`let s = 0; for i in 0..4 { if i == 2 { continue; } s += i; } doc.r = s`, "4"}, {`let w = 0; while w < 3 { w += 1; } doc.r = w`, "3"}, {`let w = 0; do { w += 1; } until w == 3; doc.r = w`, "3"},
		{`doc.r = []; for (c, i) in "ab" { doc.r.push(c + i); }`, `["a0","b1"]`}, {`doc.r = loop { break 5; }`, "5"}, {`let n = 0; doc.r = while true { n += 1; if n > 3 { break n; } }`, "4"},
		{`doc.r = if 1 > 2 { "a" } else if 2 > 1 { "b" } else { "c" }`, `"b"`}, {`doc.r = { let x = 3; x + 1 }`, "4"}, {`let x = 1; let x = x + 1; doc.r = x`, "2"},
		{`doc.r = switch 5 { 1 | 2 => "a", 3..6 => "b", _ => "c" }`, `"b"`}, {`doc.r = switch 9 { 1 => 2 }`, "null"}, {`doc.r = try_it(); fn try_it() { try { throw "x"; } catch (e) { return e; } }`, `"x"`},
		{`let r = 0; try { r = 1 / 0; } catch (e) { r = e; } doc.r = r`, `"division by zero"`}, {`return; doc.q = 1`, ``},
		{`doc.r = #{"a b": 1, c: ()}`, `{"a b":1,"c":null}`}, {`let m = #{b: 1, a: 2}; m.remove("b"); m.c = m.keys(); doc.r = [m, m.values().len(), m.len()]`, `[{"a":2,"c":["a"]},2,2]`},
		{`doc.r = max(1, 2) + min(3, 4)`, "5"}, {`doc.r = [type_of(1), (1.0).type_of(), type_of("x"), type_of([]), type_of(#{}), type_of(()), type_of(true)]`, `["i64","f64","string","array","map","()","bool"]`},
		{`doc.r = (1..4).contains(2)`, "true"}, {`doc.r = range(0, 10, 3)`, "[0,3,6,9]"}, {`doc.r = [1, 2, 3, 4].extract(1..3)`, "[2,3]"}, {`let a = [1, 2, 3]; doc.r = [a.drain(|v| v > 1), a]`, "[[2,3],[1]]"},
		{`let a = 5; a ??= 6; let b = (); b ??= 7; doc.r = [a, b]`, "[5,7]"}, {`doc.r = is_def_var("doc")`, "true"}, {`/* a /* nested */ comment */ doc.r = 1 // end`, "1"}, {`doc.r = 255.to_hex()`, `"ff"`},
		{`doc.r = [(2.5).int, (2.5).fraction, 3.is_odd, 3.is_even, 0.is_zero, "é".bytes, "ab".chars]`, `[2.0,0.5,true,false,true,2,["a","b"]]`},
		{`doc.r = [1]; doc.r.pad(3, [0]); doc.r[1].push(1); doc.r.pad(2, 9)`, "[1,[0,1],[0]]"},
		{`doc.r = [1, 1, 2, 2, 1]; doc.r.dedup()`, "[1,2,1]"}, {`doc.r = [0, if true { 1 } else { 2 }, { let z = 2; z }]`, "[0,1,2]"}, {`let x = [1]; doc.r = x[0] + { x[0] = 5; x[0] }`, "6"},
		// A function that assigns to this changes what it is called on.
		{`fn inc(n) { this += n; } let n = 1; n.inc(2); doc.r = n`, "3"}, {`fn inc() { this += 1; this } doc.r = 1; doc.q = doc.r.inc() + doc.r`, "2"},
		{`fn up() { this.make_upper(); } doc.r = ["a", "b"]; doc.r[1].up()`, `["a","B"]`}, {`fn first(c) { this[0] = c; } doc.r = #{s: "abc"}; doc.r.s.first('x')`, `{"s":"xbc"}`},
		{`fn clear_it() { this = (); } doc.r = 5; doc.r.clear_it()`, "null"}, {`fn set(v) { this = v; } let a = [1]; let b = a; a.set([2]); doc.r = [a, b]`, "[[2],[1]]"},
		{`fn inner() { this += 1; } fn outer() { let n = 10; n.inner(); this += n; } doc.r = 1; doc.r.outer()`, "12"}, {`fn no() { if false { this = 2; } 7 } doc.r = 1; doc.q = doc.r.no()`, "1"},
		{`fn inc() { this += 1; throw "x"; } let n = 1; try { n.inc(); } catch {} doc.r = n`, "1"}, {`fn inc() { this += 1; this } doc.r = [(1).inc(), doc.r?.inc()]; doc.q = 1`, "[2,null]"},
		{`doc.r = [1, 2, 3]; doc.r.for_each(|| this *= 2)`, "[2,4,6]"}, {`doc.r = [1, 2, 3]; doc.r.for_each(|i| this = i * 10)`, "[0,10,20]"}, {`doc.r = ["a"]; doc.r.for_each(|| this.make_upper())`, `["A"]`},
		{`doc.r = [#{n: 1}]; doc.r.for_each(|| this.n += 1)`, `[{"n":2}]`}, {`fn twice() { this *= 2; } doc.r = [1, 2]; doc.r.for_each(Fn("twice"))`, "[2,4]"}, {`let s = 0; [5, 6].for_each(|| s += this); doc.r = s`, "11"},
		{`let m = #{n: 1, f: || this = #{n: 2}}; m.f(); doc.r = m`, `{"n":2}`}, {`let m = #{n: 1, f: |x| this.n += x}; m.f(4); doc.r = m.n`, "5"},
		{`fn add(a, b) { a + b } let f = Fn("add").curry(1); doc.r = [f.call(5), f.curry(2).call(), (|x, y| x - y).curry(9).call(4)]`, "[6,3,5]"},
		{`let n = 0; let f = |a, b| a + b; doc.r = f.curry({ n += 1; n }).call(n)`, "2"}, {`doc.r = #{n: 4}; doc.r.call(|x| this.n *= x, 3); doc.r = doc.r.n`, "12"},
		{`doc.r = [#"a"b\n"#, ##"c"#d"##, #""#, "x" + #{a: 1}.a]`, `["a\"b\\n","c\"#d","","x1"]`}, {"doc.r = #\"a\nb\"# + 1", `"a\nb1"`}, {`doc.r = ['a'.to_int(), "😀".to_int()]`, "[97,128512]"},
		{`let s = "abcabc"; s -= "bc"; doc.r = [s, "abc" - "z", "abc" - ""]`, `["aa","abc","abc"]`}, {`doc.r = [true > false, true >= true, true < false, () <= ()]`, "[true,true,false,false]"},
		{`let a = [1, 2, 3, 2]; doc.r = [a.find(|x| x > 0, -2), a.index_of(2, 2), a.index_of(|x| x > 0, -1), a.index_of(1, 5), a.find_map(|x| x * 2, 1)]`, "[3,3,3,-1,4]"},
		{`doc.r = ["ab".split(""), "".split(""), "".split(","), "ab".split_rev("")]`, `[["","a","b",""],[""],[""],["","b","a",""]]`},
		{`let s = "a,b,c"; doc.r = [s.split_rev(",", 2), s.split_rev(",", 1), s.split_rev(",", 9), s.split_rev(",", 0)]`, `[["c","a,b"],["a,b,c"],["c","b","a"],["a,b,c"]]`},
		{`let s = "ab"; s.pad(5, "xy"); doc.r = s`, `"abxyx"`}, {`let a = [3, 1, 2]; doc.r = [a.order(), a.order(|x, y| y - x), a.order_desc(), a]; a.sort_desc(); doc.r += [a]`, "[[1,2,3],[3,2,1],[3,2,1],[3,1,2],[3,2,1]]"},
		{`fn f(x) {} doc.r = [is_def_fn("f", 1), is_def_fn("f", 2), is_def_fn("len", 1)]`, "[true,false,false]"},
		{`doc.r = 3.14159.to_string() + " " + 1e15.to_string() + " " + 100.0`, `"3.14159 1e15 100.0"`}, {`doc.constructor = 1; doc.r = doc.toString`, "null"},
	}
	for _, test := range tests {
		got, err := edit(t, test.source, `{"id":1}`, "")
		if err != nil {
			t.Errorf("%s: %v", test.source, err)
			continue
		}
		r := ""
		_ = document.Fields([]byte(got), func(name, value []byte) error {
			if string(name) == "r" {
				r = string(value)
			}
			return nil
		})
		if r != test.want {
			t.Errorf("%s: got %s in %s, want %s", test.source, r, got, test.want)
		}
	}
}

func TestEditKeepsSpelling(t *testing.T) {
	doc := `{"id":1,"a":1.50,"b":[1e3, "\u00e9"],"c\u0064":-0,"10":18446744073709551615,"9":{"z":1.0}}`
	doc = strings.ReplaceAll(doc, ", ", ",")
	s, err := Compile("let x = doc.a + doc.cd; if doc.a == 1.5 { doc.b2 = doc.b.len(); } doc.remove(\"b2\"); doc[\"10\"] == 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := []byte(doc)
	out, err := s.Edit(t.Context(), in)
	if err != nil || &out[0] != &in[0] && string(out) != `{"id":1,"a":1.50,"b":[1000.0,"é"],"c\u0064":-0,"10":18446744073709551615,"9":{"z":1.0}}` {
		t.Errorf("%v, %s", err, out)
	}
	if out, _ := edit(t, "doc.x = 1", doc, ""); out != doc[:len(doc)-1]+`,"x":1}` {
		t.Errorf("got %s", out)
	}
}

func TestEditErrors(t *testing.T) {
	tests := []struct{ source, message string }{
		{"doc.x = unknown_function(1)", "there is no function unknown_function for i64"},
		{"doc.x = missing_variable", "there is no variable missing_variable"},
		{"doc.x = 1 / 0", "division by zero"},
		{"doc.x = 1 % 0", "division by zero"},
		{"doc.x = 9223372036854775807 + 1", "does not fit 64 bits"},
		{"doc.x = 1.0 / 0.0", "not finite"},
		{"\n\nthrow \"stop\"", "in line 3: stop"},
		{"doc = 5", "doc must be a map"},
		{"doc = [1]", "doc must be a map"},
		{"doc.x = doc.title - 1", "- does not work on string and i64"},
		{"context.a = 1", "context is a constant"},
		{"context.a.push(1)", "context is a constant"},
		{"const C = 1; C = 2", "C is a constant"},
		{"loop { }", "too many operations"},
		{"loop { try { loop {} } catch {} }", "too many operations"},
		{"for i in 0..9223372036854775807 { }", "too many operations"},
		{`let s = "x"; loop { s += s; }`, "too many operations"},
		{`let a = [1]; loop { a += a; }`, "too many operations"},
		{`let s = "x"; s.pad(9223372036854775807, ".")`, "too many operations"},
		{"fn f() { f() } f()", "calls or values too deeply"},
		{"let f = |x| x; doc.x = f", "cannot be stored"},
		{"let a = []; loop { let b = [a]; a = b; if a.len() > 5 { break; } }", "too many operations"},
		{"let a = []; for i in 0..300 { a = [a]; } doc.x = a", "nested too deeply"},
		{"doc.x = context.nothing", "() has no property nothing"},
		{"if doc.title { }", "a condition must be true or false"},
		{"doc.a.b = 1", "() has no property b"},
		{"doc.x = [1][5]", "there is no element at 5"},
		{"doc.x = globalThis", "there is no variable globalThis"},
		{"doc.x = Function(\"return 1\")", "there is no function Function"},
		{"doc.x = doc.title.constructor", "has no property constructor"},
		{"doc.x = [].__proto__", "has no property __proto__"},
		{"doc.x = \"\".constructor(1)", "there is no function constructor"},
		{"fn f() { doc.x } f()", "there is no variable doc"},
		{"[].sort(5, 6); [2, 1].sort(5)", "a function is needed"},
		{"[1].splice(0, 1)", "must be an array"},
		{"fn inc() { this += 1; } const C = 1; C.inc()", "C is a constant"},
		{"this = 1", "there is no variable this"},
		{"let m = #{f: || this = 1}; m.f()", "this cannot be assigned to here"},
		{"1.curry(2)", "a function is needed"},
		{`doc.x = "ab".to_int()`, "only a character has a number"},
		{"#\"a\nb\"#.nothing()", "there is no function nothing"},
	}
	for _, test := range tests {
		_, err := edit(t, test.source, `{"id":1,"title":"x"}`, "")
		var e *apierr.Error
		if !errors.As(err, &e) || e.Code != "edit_documents_by_function_error" || !strings.Contains(e.Message, test.message) {
			t.Errorf("%s: error %v, want … %s", test.source, err, test.message)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, source := range []string{
		"doc.x = ", "let = 3", "doc.x = 'unclosed", "if doc { ", "doc.x = \"unclosed", "doc.x = `unclosed", "doc.x = `${1", "doc x", "1 = 2", "break", "fn f() { break; }",
		"if true { fn f() {} }", "fn f(a, a) {}", "fn f(a) {} fn f(b) {}", "import \"x\"", "eval(\"1\")", "doc.x = 99999999999999999999", "doc.x = \"\\q\"", "'ab'", "#{a}", "[1, 2", "}", ")", "/* open",
		"switch x { y => 1 }", "do { }", "try { }", "for in x {}", "|x", "doc.", "\xff", "§", strings.Repeat("(", 1000), strings.Repeat("{", 1000), strings.Repeat("-", 1000) + "1", strings.Repeat("`${", 1000),
		"x = " + strings.Repeat("1+", 5000) + "1", "return 1 2",
	} {
		if _, err := Compile(source, nil); apierr.From(err).Code != "bad_request" {
			t.Errorf("%.40s: error %v", source, err)
		}
	}
}

func TestEditConcurrently(t *testing.T) {
	s, err := Compile("doc.n += context.by; doc.seen = `${doc.n}`", []byte(`{"by": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				got, err := s.Edit(t.Context(), []byte(`{"n":1}`))
				if err != nil || string(got) != `{"n":3,"seen":"3"}` {
					t.Errorf("%v, %s", err, got)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{
		"doc.title = doc.title.to_upper(); doc.n += 1;", "doc.label = `${doc.kind}-${doc.n}`; doc.remove(\"kind\");", "for (x, i) in doc.tags { if x in [1] { break; } }",
		"fn f(a) { a ?? 1 } doc.x = switch f(2) { 1..3 if true => #{a: 1}, _ => [1, 2][0] };", "try { throw 1 } catch (e) { doc?.a?[0].b() }", "let a = |x, y| x ** y; doc = ()",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		s, err := Compile(source, nil)
		if err != nil {
			if apierr.From(err).Code != "bad_request" {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		out, err := s.Edit(t.Context(), []byte(`{"id":1,"title":"x y","n":2,"tags":["a",{"b":null}]}`))
		if err != nil {
			if apierr.From(err).Code != "edit_documents_by_function_error" {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		if out != nil {
			if fault := document.Fault(bytes.Clone(out)); fault != "" {
				t.Fatalf("%q makes %s: %s", source, out, fault)
			}
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	s, err := Compile("doc.title = doc.title.to_upper(); doc.n += 1;", nil)
	if err != nil {
		b.Fatal(err)
	}
	doc := []byte(strings.Split(editDocs, "\n")[0])
	for b.Loop() {
		if _, err := s.Edit(b.Context(), doc); err != nil {
			b.Fatal(err)
		}
	}
}
