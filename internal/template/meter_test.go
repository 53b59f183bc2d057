package template

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"math/rand/v2"

	"svc/internal/budget"
)

func TestSizesOfValues(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"a value":   {reflect.TypeFor[value]().Size(), valueBytes},
		"a member":  {reflect.TypeFor[member]().Size(), memberBytes},
		"an object": {reflect.TypeFor[object]().Size(), objectBytes},
	} {
		if size[0] > size[1] {
			t.Errorf("%s has %d bytes, charged %d", name, size[0], size[1])
		}
	}
}

// dear returns values as JSON, each large in one way.
func dear(n int) map[string]string {
	list := func(item string) string { return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]" }
	quoted := func(s string) string { return `"` + strings.Repeat(s, n) + `"` }
	var members, texts strings.Builder
	for i := range n {
		fmt.Fprintf(&members, `,"k%d":%d`, i, i)
		fmt.Fprintf(&texts, `,"t%d"`, i*7919%n)
	}
	return map[string]string{
		"letters": quoted("ab"), "capitals": quoted("Ab Cd,"), "growing": quoted("ɐ"), "apostrophes": quoted("'"), "entities": quoted("&amp;nGt;"),
		"lines": quoted(`\r\n`), "breaks": quoted(`\n`), "tags": quoted("<a>"), "scripts": quoted("<script>"), "percents": quoted("%41"), "signs": quoted("%"),
		"blanks": quoted(" "), "escapes": quoted(`\u0001`), "digits": `"` + strings.Repeat("1", n) + `"`, "date": `"2026-11-05 16:03:09"`, "format": quoted("%c%^B"),
		"number": strings.Repeat("1", n), "float": "1e308", "whole": "3", "negative": "-2", "long number": "0." + strings.Repeat("1", n), "nil": "null", "true": "true",
		"numbers": list("1"), "floats": list("1e308"), "lists": list("[1]"), "objects": list(`{"k":1}`), "empty texts": list(`""`), "nils": list("null"),
		"texts": "[" + texts.String()[1:] + "]", "members": "{" + members.String()[1:] + "}", "nested": strings.Repeat("[", 99) + strings.Repeat("]", 99),
		"shared": `[` + quoted("ab") + `,` + quoted("ab") + `]`,
	}
}

// dearDocument returns a document that has all of them as fields.
func dearDocument(n int) []byte {
	doc := []byte(`{"k":"k"`)
	values := dear(n)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		doc = fmt.Appendf(doc, `,"%s":%s`, name, values[name])
	}
	return append(doc, '}')
}

// charges renders a template, and compares the bytes allocated with those charged.
func charges(t *testing.T, source string, doc []byte, o *object) {
	t.Helper()
	const fixed = 3 << 10
	parsed := mustParse(t, source)
	var allocated, charged int
	for range 3 { // other goroutines allocate, too
		m := newMeter(Work{}, len(doc))
		globals := &object{}
		fresh := &object{members: slices.Clone(o.members), index: o.index}
		globals.set("doc", value{kind: kindObject, object: fresh})
		if parsed.fields {
			globals.set("fields", fieldsOf(m, fresh, everything))
		}
		var before, after runtime.MemStats
		m.made = 0
		runtime.ReadMemStats(&before)
		_, _ = parsed.run(m, globals, 0)
		runtime.ReadMemStats(&after)
		allocated, charged = int(after.TotalAlloc-before.TotalAlloc), m.made
		if allocated <= charged*5/4+fixed { // allocations are rounded up to size classes
			return
		}
	}
	t.Errorf("%s: %d bytes allocated, %d charged", source, allocated, charged)
}

// TestRenderingIsCharged passes dear values through every filter and every tag.
func TestRenderingIsCharged(t *testing.T) {
	const n = 400
	doc := dearDocument(n)
	o, err := readDocument(newMeter(Work{}, len(doc)), doc)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(dear(n)))
	arguments := []string{"doc['letters']", "doc['texts']", "doc['format']", "'a'", "''", "2"}
	for _, name := range filterNames() {
		f := filters[name]
		for _, of := range names {
			v := "doc['" + of + "']"
			for count := f.least; count <= f.most; count++ {
				for _, a := range arguments[:1+(len(arguments)-1)*min(count, 1)] {
					for _, b := range arguments[:1+(len(arguments)-1)*max(count-1, 0)] {
						args := []string{"", ": " + a, ": " + a + ", " + b}[count]
						charges(t, "{{ "+v+" | "+name+args+" | size }}", doc, o)
					}
				}
			}
		}
	}
	each := func(body string) []string {
		var all []string
		for _, name := range names {
			all = append(all, strings.ReplaceAll(body, "$", "doc['"+name+"']"))
		}
		return all
	}
	byTag := map[string][]string{
		"assign":  each("{% assign a = $ %}{% assign b = $ | size %}"),
		"capture": each("{% capture a %}{{ $ }}{{ $ }}{% endcapture %}{% capture b %}{{ a }}{% endcapture %}"),
		"case":    each("{% case $ %}{% when $ %}{% when 'a', doc.texts or 3 %}{% endcase %}"),
		"cycle":   each("{% for i in (1..9) %}{% cycle $, 'b' %}{% cycle $: 'a', $ %}{% endfor %}"),
		"for": slices.Concat(each("{% if $.first or $.size %}{% if doc.k == nil or $.size == 3 %}{% endif %}{% endif %}{% if $ %}{{ $ }}{% endif %}"), []string{
			"{% for x in doc.members %}{{ x }}{% endfor %}", "{% for x in doc.floats %}{{ x }}{% else %}{% endfor %}", "{% for x in doc.lists %}{{ x }}{{ forloop.index }}{% endfor %}",
			"{% for i in (1..500) %}{% assign f = forloop %}{% for j in (1..3) %}{% assign g = forloop %}{{ g.parentloop.index }}{% endfor %}{% endfor %}",
			"{% for p in doc.members %}{% for q in p %}{% endfor %}{% endfor %}", "{% for f in fields %}{{ f.name }}{{ f.value }}{% endfor %}", "{% for f in fields %}{% for m in f %}{{ m }}{% endfor %}{% endfor %}",
		}),
		"tablerow":  {"{% tablerow x in doc.texts cols: 2 %}{{ x }}{% endtablerow %}", "{% tablerow x in (1..500) %}{% endtablerow %}"},
		"if":        each("{% if $ == $ %}{% endif %}{% if $ contains $ %}{% endif %}{% if $ < $ or $ == blank or $ == empty %}{% endif %}{% if doc.texts contains $ %}{% endif %}{% if doc.members contains $ %}{% endif %}"),
		"unless":    each("{% unless $ != doc.lists or doc.members == $ %}{% endunless %}{% unless doc[$] %}{% endunless %}"),
		"ifchanged": each("{% for i in (1..5) %}{% ifchanged %}{{ $ }}{{ i }}{% endifchanged %}{% endfor %}"),
		"increment": {"{% for i in (1..500) %}{% increment a %}{% endfor %}"}, "decrement": {"{% for i in (1..500) %}{% decrement a %}{% endfor %}"},
		"break": {"{% for i in doc.texts %}{% break %}{% endfor %}"}, "continue": {"{% for i in doc.texts %}{% continue %}{% endfor %}"},
		"include": {"{% include doc.letters %}"}, "render": {"{% render doc.letters %}"},
	}
	for name := range tags {
		if byTag[name] == nil {
			t.Errorf("this test has no template for the tag %s", name)
		}
		for _, source := range byTag[name] {
			charges(t, source, doc, o)
		}
	}
	for _, source := range slices.Concat(each("{{ $ }}{{ $.size }}"), each("{{ $.first }}{{ doc[$] }}"), each("{{ $.first.first }}"), each("{{ $[0] }}{{ $[doc.k] }}"),
		[]string{"{{ missing }}", "{{ doc.missing }}", "{{ doc.members.missing }}", "{{ doc.members[doc.letters] }}"}) {
		charges(t, source, doc, o)
	}
}

// TestTheDocumentIsCharged renders documents with very many fields.
func TestTheDocumentIsCharged(t *testing.T) {
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, `,"%d":1`, i)
	}
	doc := []byte("{" + b.String()[1:] + "}")
	for _, source := range []string{"{{ doc.size }}", "{{ fields.size }}"} {
		account := budget.New(1<<20, nil).Open(1)
		if _, err := mustParse(t, source).Render(Work{Account: account}, doc, everything, 0); !errors.Is(err, budget.ErrFull) {
			t.Errorf("%s: %v with little room", source, err)
		}
		if account.Held() != 0 {
			t.Errorf("%s: %d bytes are still held", source, account.Held())
		}
	}
}

// TestAccount renders with enough room for the result, and with less.
func TestAccount(t *testing.T) {
	const source = "{% assign a = 'x' %}{% for i in (1..20) %}{% assign a = a | append: a %}{% endfor %}{% assign b = a | split: '' %}{{ b | size }}"
	for limit, want := range map[int64]error{300 << 20: nil, 4 << 20: budget.ErrFull, 64 << 10: budget.ErrFull} {
		account := budget.New(limit, nil).Open(1)
		most := int64(0)
		w := Work{Account: account, Yield: func() error { most = max(most, account.Held()); return nil }}
		doubled := strings.ReplaceAll(source, "(1..20)", "(1..17)") // within the limits of a rendering
		got, err := mustParse(t, doubled).Render(w, []byte(sample), everything, 0)
		if !errors.Is(err, want) || err == nil && got != "131072" {
			t.Errorf("limit %d: %q, %v", limit, got, err)
		}
		if want == nil && most < 131072*valueBytes {
			t.Errorf("at most %d bytes are held", most)
		}
		if account.Held() != int64(len(got)) {
			t.Errorf("limit %d: %d bytes are held for a text of %d", limit, account.Held(), len(got))
		}
		j, err := ParseJSON(Work{}, []byte(`["`+doubled+`","`+doubled+`"]`))
		if err != nil {
			t.Fatal(err)
		}
		value, err := j.RenderDocument(w, []byte(sample))
		if !errors.Is(err, want) || account.Held() != int64(len(got)+len(value)) {
			t.Errorf("limit %d: %s, %v, %d bytes are held", limit, value, err, account.Held())
		}
	}
}

// TestYield stops long renderings, in each way in which they can be long.
func TestYield(t *testing.T) {
	over := errors.New("over")
	doc := dearDocument(20_000)
	for _, source := range []string{
		"{% for i in (1..100000) %}{% for j in (1..100000) %}{% endfor %}{% endfor %}",
		"{{ doc.texts | sort }}", "{{ doc.objects | where: 'k', 2 }}", "{{ doc.floats }}", "{{ doc.numbers | uniq }}", "{% if doc.objects == doc.objects %}{% endif %}",
		"{% if doc.texts contains 'none' %}{% endif %}", "{{ doc.letters | split: '' }}", Default + " ",
	} {
		calls := 0
		w := Work{Yield: func() error {
			if calls++; calls == 3 {
				return over
			}
			return nil
		}}
		if _, err := mustParse(t, source).Render(w, doc, everything, 0); err != over || calls != 3 {
			t.Errorf("%s: %v after %d calls", source, err, calls)
		}
	}
	parsed := mustParse(t, Default)
	if _, err := parsed.Render(Work{Yield: func() error { return over }}, doc, everything, 0); err != over {
		t.Errorf("the default template: %v", err)
	}
	j, err := ParseJSON(Work{}, []byte(`["{{ doc.texts | sort }}"]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.RenderDocument(Work{Yield: func() error { return over }}, doc); err != over {
		t.Errorf("a value: %v", err)
	}
}

// TestCutOffEarly renders long values, and numbers that are longer than their JSON: no memory may be used for what is cut off.
func TestCutOffEarly(t *testing.T) {
	doc := []byte(`{"floats":` + dear(50_000)["floats"] + `}`)
	for _, source := range []string{Default, Default + "{{ doc.floats }}", "{{ doc.floats }}{{ doc.floats }}"} {
		m := Work{Account: budget.New(32<<20, nil).Open(1)}
		got, err := mustParse(t, source).Render(m, doc, everything, 400)
		if err != nil || len(got) != 400 {
			t.Errorf("%s: %d bytes, %v", cut(source, 40), len(got), err)
		}
	}
	account := budget.New(1<<20, nil).Open(1)
	if got, err := mustParse(t, Default).Render(Work{Account: account}, doc, everything, 400); err != nil || len(got) != 400 || account.Held() != 400 {
		t.Errorf("the default template: %d bytes, %v, %d held", len(got), err, account.Held())
	}
}

// TestLoopsAreSettled checks the value of forloop when it is assigned.
func TestLoopsAreSettled(t *testing.T) {
	for source, want := range map[string]string{
		"{% for i in (1..4) %}{% if i == 2 %}{% assign f = forloop %}{% endif %}{% endfor %}{{ f.index }}{{ f.last }}":                                            "2false",
		"{% for i in (1..3) %}{% for j in (1..3) %}{% if i == 2 and j == 3 %}{% assign f = forloop %}{% endif %}{% endfor %}{% endfor %}{{ f.parentloop.index }}": "2",
		"{% for i in (1..2) %}{{ forloop.size }}{% for j in (1..1) %}{{ forloop.size }}{% endfor %}{% endfor %}":                                                  "7878",
		"{% tablerow i in (1..1) %}{{ tablerowloop.size }}{% endtablerow %}":                                                                                      `<tr class="row1"><td class="col1">12</td></tr>`,
	} {
		if got, err := render(t, source, sample); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", source, got, err, want)
		}
	}
}

// TestStripHTML compares strip_html with the regular expression that defines it.
func TestStripHTML(t *testing.T) {
	slow := regexp.MustCompile(`(?is)<script.*?</script>|<style.*?</style>|<!--.*?-->|<.*?>`)
	pieces := []string{"<", ">", "<script", "</script>", "<STYLE", "</Style>", "<!--", "-->", "a", "é", "\n", "<b>", "<ſcript>", "</ſCRIPT>", "<!-", "->", "</style"}
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		want := slow.ReplaceAllString(b.String(), "")
		if got := stripHTML(b.String()); got != want {
			t.Fatalf("%q: %q, want %q", b.String(), got, want)
		}
		if len(want) < b.Len() {
			taken++
		}
	}
	if taken < 5000 {
		t.Errorf("only %d texts have something to strip", taken)
	}
}

// TestNewlines compares the filters of line ends with a regular expression.
func TestNewlines(t *testing.T) {
	end := regexp.MustCompile(`\r?\n`)
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var b strings.Builder
		for range r.IntN(10) {
			b.WriteString([]string{"\r", "\n", "a", "\r\n"}[r.IntN(4)])
		}
		if got, want := stripNewlines(b.String()), end.ReplaceAllString(b.String(), ""); got != want {
			t.Fatalf("%q: %q, want %q", b.String(), got, want)
		}
		if got, want := newlineToBreak(b.String()), end.ReplaceAllString(b.String(), "<br />\n"); got != want {
			t.Fatalf("%q: %q, want %q", b.String(), got, want)
		}
	}
}
