package template

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"svc/internal/budget"
)

// longTemplates returns templates, each long in one way.
func longTemplates(n int) map[string]string {
	repeated := func(s string) string { return strings.Repeat(s, n/len(s)) }
	return map[string]string{
		"text": repeated("x"), "outputs": repeated("{{1}}"), "texts": repeated("{{''}}"), "lines": repeated("\n"), "variables": repeated("{{a}}"),
		"assigns": repeated("{%assign a=1%}"), "members": "{{a" + repeated(".a") + "}}", "filters": "{{a" + repeated("|abs") + "}}", "or": "{%if a" + repeated(" or a") + "%}{%endif%}",
		"and": "{%if a" + repeated(" and 1") + "%}{%endif%}", "whens": "{%case a%}" + repeated("{%when 1%}") + "{%endcase%}", "choices": "{%case a%}{%when 1" + repeated(",1") + "%}{%endcase%}",
		"elsifs": "{%if a%}" + repeated("{%elsif a%}") + "{%endif%}", "loops": repeated("{%for a in a%}{%endfor%}"), "cycles": repeated("{%cycle 1,2%}"), "cycle": "{%cycle 1" + repeated(",1") + "%}",
		"captures": repeated("{%capture a%}{%endcapture%}"), "nested": repeated(strings.Repeat("{%if a%}", 90) + strings.Repeat("{%endif%}", 90)),
		"ifchanged": repeated("{%ifchanged%}{%endifchanged%}"), "increments": repeated("{%increment a%}"), "breaks": repeated("{%break%}"), "raw": repeated("{%raw%}{%endraw%}"),
		"comments": repeated("{%comment%}{%endcomment%}"), "nested comments": repeated("{%comment%}") + repeated("{%endcomment%}"), "signs": "{{" + repeated("=") + "}}",
		"quotes": repeated("{{'}}'") + "'", "both quotes": repeated(`{{'}}"'"`) + `'"`, "opened": repeated("{{"), "half tags": repeated("{%"), "closings": repeated("}}"), "braces": repeated("{"),
		"keys": repeated("{{a['b'][c]}}"), "nested keys": repeated("{{" + strings.Repeat("a[", 90) + "1" + strings.Repeat("]", 90) + "}}"), "trimmed": repeated("{{-1-}} "),
		"ranges": repeated("{%for a in (1..2) reversed limit:1 offset:2%}{%endfor%}"), "tables": repeated("{%tablerow a in a cols:2%}{%endtablerow%}"),
	}
}

// TestParsingIsCharged parses long templates, alone and in values.
func TestParsingIsCharged(t *testing.T) {
	const fixed = 3 << 10
	for name, source := range longTemplates(MaxSource / 4) {
		quoted, err := json.Marshal([]string{source})
		if err != nil {
			t.Fatal(err)
		}
		for kind, read := range map[string]func(m *meter){
			"template": func(m *meter) { _, _ = parse(m, source) },
			"value":    func(m *meter) { _ = new(JSON).read(m, quoted) },
		} {
			took, made := math.MaxInt, 0
			for n := 0; n < 3 && took > made*11/10+fixed; n++ { // other goroutines allocate, too
				var before, after runtime.MemStats
				m := newParseMeter(Work{})
				runtime.ReadMemStats(&before)
				read(m)
				runtime.ReadMemStats(&after)
				took, made = int(after.TotalAlloc-before.TotalAlloc), m.made
			}
			if took > made*11/10+fixed {
				t.Errorf("%s of %s: %d bytes allocate %d, charged %d", kind, name, len(source), took, made)
			}
		}
	}
	many := []byte("[" + strings.TrimSuffix(strings.Repeat(`"",`, MaxSource/3), ",") + "]")
	account := budget.New(1<<20, nil).Open(1)
	if _, err := ParseJSON(Work{Account: account}, many); !errors.Is(err, budget.ErrFull) {
		t.Errorf("many strings, with little room: %v", err)
	}
	if _, err := Parse(Work{Account: account}, longTemplates(MaxSource)["outputs"]); !errors.Is(err, budget.ErrFull) {
		t.Errorf("many outputs, with little room: %v", err)
	}
	over := errors.New("over")
	if _, err := Parse(Work{Yield: func() error { return over }}, longTemplates(MaxSource)["outputs"]); err != over {
		t.Errorf("an interrupted parse: %v", err)
	}
}

func TestLongestSource(t *testing.T) {
	if _, err := Parse(Work{}, strings.Repeat("x", MaxSource)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(Work{}, strings.Repeat("x", MaxSource+1)); err == nil {
		t.Error("a template beyond the limit is accepted")
	}
	if _, err := ParseJSON(Work{}, []byte(`"`+strings.Repeat("x", MaxSource)+`"`)); err == nil {
		t.Error("a value beyond the limit is accepted")
	}
}

// TestQuotes parses quotes that are not closed.
func TestQuotes(t *testing.T) {
	for source, want := range map[string]string{
		"{% comment it's %}a{% endcomment %}b": "b", `{{ "}}" }}it's`: "}}it's", `{{ '}}' }}"`: `}}"`, `{{ "'}}" }}{{ '"' }}`: `'}}"`,
	} {
		if got, err := render(t, source, sample); err != nil || got != want {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
}
