package script

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/apierr"
	"svc/internal/pace"
)

// hogs are functions that use as much memory or time as they can. Each grows something by doubling, or repeats an operation that is cheap
// for the script but expensive for the runtime.
var hogs = []string{
	`let s = "x"; loop { s += s; }`,
	"let s = \"é\"; loop { s = `${s}${s}`; }",
	`let s = "x"; loop { s = [s, s, s, s, s, s, s, s].join(s); }`,
	`let a = ["x"]; loop { a = [a, a]; doc.x = a.to_string(); }`,
	`let a = [1]; loop { a += a; }`,
	`let a = [1]; loop { a = a + a; }`,
	`let a = []; loop { a.push([]); }`,
	`let a = []; loop { a.push(#{}); }`,
	`let a = []; loop { a.push(#{a: 1, b: 2, c: 3}); }`,
	`let m = #{}; let i = 0; loop { i += 1; m[i.to_string()] = 1; }`,
	`let s = "x"; s.pad(100000, "xx"); loop { s.replace("x", s); }`,
	`let s = "x"; s.pad(200000, "x"); let a = []; loop { a += s.split(""); }`,
	`let s = "x"; s.pad(200000, "x"); let a = []; loop { a += s.split("x"); }`,
	`let s = "x"; s.pad(200000, "x"); let t = s + "x"; let u = "x" + s; let n = 0; loop { if t == u { n += 1; } }`,
	`let s = "x"; s.pad(200000, "x"); let t = s + "y"; loop { if s < t { doc.x = 1; } }`,
	`let s = "é"; s.pad(100000, "é"); let t = "é"; t.pad(50000, "é"); t += "x"; loop { doc.x = t in s; }`,
	`let s = "é"; s.pad(100000, "é"); let t = "é"; t.pad(50000, "é"); t += "x"; loop { doc.x = s.index_of(t); }`,
	`let s = "é"; s.pad(100000, "é"); let t = "é"; t.pad(50000, "é"); t += "x"; loop { s.split(t); }`,
	`let s = "x"; s.pad(200000, "x"); let m = #{}; m[s] = 1; loop { let n = m; }`,
	`let s = "x"; s.pad(200000, "x"); let m = #{}; loop { doc.x = m[s]; }`,
	`let s = "\u0001"; s.pad(200000, "\u0001"); doc.a = s; doc.b = s; doc.c = s; doc.d = s; doc.e = [s, s, s, s, s, s];`,
	`let s = "ß"; s.pad(100000, "ß"); loop { s = s.to_upper(); }`,
	`let s = "x"; s.pad(200000, " "); loop { s.split(); }`,
	`let s = "1"; s.pad(200000, "1"); loop { try { s.parse_float(); } catch {} }`,
	`let s = "1"; s.pad(200000, "1"); loop { try { s.parse_int(); } catch {} }`,
	`let s = "x"; s.pad(200000, "x"); loop { s.len(); }`,
	`let s = "x"; s.pad(200000, "x"); loop { s[1] = 'y'; }`,
	`let s = "x"; s.pad(50000, "x"); for c in s { for d in s { } }`,
	`let a = []; a.pad(50000, "x"); loop { a.sort(); }`,
	`let a = []; a.pad(20000, 1); loop { a.contains(2); a.reverse(); }`,
	`let a = []; a.pad(100000, 1); loop { let b = a.values; }`,
	`[1].splice(0, 1, 5); loop { }`,
	`try { #{}.mixin(5); } catch {} loop { }`,
	`loop { try { [1].zip(5, |a, b| a); } catch {} }`,
	`fn f(n) { f(n + 1) + f(n + 1) } f(0)`,
	`let a = range(0, 9000000000, 1); loop { a = range(0, 9000000, 3); }`,
	`let f = |x| x; loop { f = |x| f.call(x); }`,
}

// TestBudget runs hogs and counts all bytes that they allocate, including garbage.
func TestBudget(t *testing.T) {
	const operations, most = 100_000, 100_000*640 + 4<<20 // bytes per run
	for _, source := range hogs {
		f, err := Compile(source, nil)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		f.operations = operations
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = f.Edit(t.Context(), []byte(`{"id":1}`))
		runtime.ReadMemStats(&after)
		if apierr.From(err).Code != "edit_documents_by_function_error" {
			t.Errorf("%s: %v", source, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s took %d MiB", source, took>>20)
		}
		if testing.Verbose() {
			t.Logf("%4d MiB %s %v", (after.TotalAlloc-before.TotalAlloc)>>20, source, err)
		}
	}
}

// spin returns a function that runs until it is stopped: its budget is unlimited.
func spin(t *testing.T) *Function {
	t.Helper()
	f, err := Compile(`loop { try { loop { } } catch { } }`, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.operations = 1 << 50
	return f
}

func TestStops(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := spin(t)
	time.AfterFunc(10*time.Millisecond, func() { cancel(stopped) })
	if _, err := f.Edit(ctx, []byte(`{"id":1}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled run: %v", err)
	}
	if _, err := f.Edit(ctx, []byte(`{"id":1}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was canceled before it began: %v", err)
	}
	f.deadline = 10 * time.Millisecond
	if _, err := f.Edit(t.Context(), []byte(`{"id":1}`)); apierr.From(err).Code != "edit_documents_by_function_error" || !strings.Contains(err.Error(), "takes longer than") {
		t.Errorf("a run beyond its deadline: %v", err)
	}
	// A stopped run leaves no state for the next one.
	g, err := Compile(`doc.n = 2`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		if out, err := g.Edit(ctx, []byte(`{"n":1}`)); err != nil || string(out) != `{"n":2}` {
			t.Fatalf("%s, %v", out, err)
		}
		cancel()
	}
}

// TestLargeInputs reads documents and contexts that are too large to convert.
func TestLargeInputs(t *testing.T) {
	lists := "[" + strings.Repeat("[],", 300_000) + "[]]"
	var wide strings.Builder
	for i := range 130_000 {
		fmt.Fprintf(&wide, `"f%d":1,`, i)
	}
	for _, tt := range []struct{ source, doc, context, message string }{
		{"doc.x = doc.a.len()", `{"id":1,"a":` + lists + `}`, "", "too many operations"},
		{"doc.x = doc.id", `{"id":1,"a":` + lists + `}`, "", ""},
		{"doc.x = 1", `{"id":1}`, `{"a":` + lists + `}`, "too many operations"},
		{"doc.x = doc.a.len()", `{"id":1,"a":[` + strings.Repeat(`"é",`, 1000) + `{"b":null}]}`, "", ""},
		{"doc.x = 1", `{` + wide.String() + `"id":1}`, "", "too many fields"},
	} {
		f, err := Compile(tt.source, []byte(tt.context))
		if err != nil {
			t.Fatal(err)
		}
		f.deadline = time.Hour // for slow machines
		_, err = f.Edit(t.Context(), []byte(tt.doc))
		if (err == nil) != (tt.message == "") || err != nil && !strings.Contains(err.Error(), tt.message) {
			t.Errorf("%s on %.40s: %v, want … %s", tt.source, tt.doc, err, tt.message)
		}
	}
}

// TestTranslationsAreBounded translates deeply nested sources: each must be refused or stay small.
func TestTranslationsAreBounded(t *testing.T) {
	repeat := func(pre, unit string, n int, post string) string { return pre + strings.Repeat(unit, n) + post }
	for _, line := range []string{
		repeat("doc.x=", "1+", maxOperators-1, "1;\n"), repeat("doc.x=", "a&&", maxOperators-1, "a;\n"), repeat("doc.x=", "a??", maxOperators-1, "a;\n"),
		repeat("doc", ".a", maxLinks-1, "=1;\n"), repeat("doc", "[0]", maxLinks-1, "=1;\n"), repeat("doc", "[0]", maxLinks-1, ".trim();\n"), repeat("doc.x=doc", "?.a", maxLinks-1, ";\n"),
		repeat("doc.x=", "(", 60, "1"+strings.Repeat(")", 60)+";\n"), repeat("", "{", 100, " 1 "+strings.Repeat("}", 100)+";\n"), repeat("", "if true {", 40, "1"+strings.Repeat("}", 40)+"\n"),
		repeat("doc.x=", "||", 60, "1;\n"), repeat("doc.x=", "f(", 60, "1"+strings.Repeat(")", 60)+";\n"), repeat("doc.x=", "-", 120, "1;\n"), repeat("doc.x=", "1**", 60, "1;\n"),
		repeat("doc.x=", "`${", 60, "1"+strings.Repeat("}`", 60)+";\n"), repeat("doc.x=[", "{1},", 10000, "1];\n"), repeat("doc.x=[", "[{1}],", 8000, "1];\n"),
		repeat("switch doc.x {", "1 => {1}, ", 5000, "_ => 1 }\n"), repeat("doc.x = #{", "a: {1},", 8000, "};\n"),
	} {
		source := strings.Repeat(line, maxSource/len(line))
		js, err := translate(source)
		if checked := check(source); checked != nil && err == nil {
			t.Errorf("%.20s: checked alone: %v", line, checked)
		}
		if len(js) > maxTranslation+maxSource || err == nil && js == "" {
			t.Errorf("%d times %.20s: %d bytes of JavaScript, %v", maxSource/len(line), line, len(js), err)
		}
	}
	long := strings.Repeat(" ", maxSource)
	if err := Check(long); err != nil {
		t.Error(err)
	}
	if err := Check(long + " "); apierr.From(err).Code != "bad_request" {
		t.Errorf("a source of %d bytes: %v", maxSource+1, err)
	}
}

// TestCheckLeavesLittleGarbage checks sources with the most tokens and statements, also in template strings: requests run such checks one
// after the other, and the garbage is collected at the cost of all.
func TestCheckLeavesLittleGarbage(t *testing.T) {
	for _, line := range []string{`"";`, `1;`, "a;", "()", "`${1}`;", "`${1;1;1;1;1;1;1;1}`;"} {
		source := strings.Repeat(line, maxSource/len(line))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Check(source)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 30*maxSource {
			t.Errorf("%s: %d bytes for each of the source: %v", line, took/maxSource, err)
		}
	}
}

// TestMakesWay lets a run pause for a search. It is stopped when it has worked for too long; pauses do not count.
func TestMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Compile(`let i = 0; while i < 10000 { i += 1; } doc.n = i;`, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.deadline = 10 * time.Millisecond
		searches := new(pace.Searches)
		for _, searching := range []bool{true, false} {
			ctx, want := pace.Beside(t.Context(), searches), time.Duration(0)
			if searching {
				searches.Begin()
				want = 3 * f.deadline
			}
			began := time.Now().Add(f.deadline)
			time.Sleep(f.deadline) // work, for the pace; what the function itself works takes no time here
			out, err := f.Edit(ctx, []byte(`{"n":1}`))
			if err != nil || string(out) != `{"n":10000}` {
				t.Errorf("searches run: %v: %s, %v", searching, out, err)
			}
			if rested := time.Since(began); rested != want {
				t.Errorf("searches run: %v: it rested for %v, want %v", searching, rested, want)
			}
			if searching {
				searches.End()
				time.Sleep(time.Second)
			}
		}
	})
}
