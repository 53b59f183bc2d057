package fastapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/template"
)

// templateFixed is the memory that any rendering may allocate, including allocations caused by its garbage.
const templateFixed = 128 << 20

// templates are renderings with each filter and tag, of growing values and texts.
var templates = []growth{
	{"a filter", func(_ *route, n int) (list []grown) {
		for _, name := range listedIn("{{ a | nope }}") {
			for kind, begin := range map[string]string{"text": "{% assign a = 'x' %}", "list": "{% assign a = 'x,y' | split: ',' %}"} {
				for _, args := range []string{"", ": a", ": 'k', a"} {
					again := "{% assign a = a | " + name + args + " %}"
					list = append(list, renderedFor(name+args+" of "+kind, begin+strings.Repeat(again, 40)+"{{ a }}", `{}`))
				}
			}
			values := grownValues(n / 8)
			for _, kind := range []string{"text", "objects"} {
				of := values[kind]
				for _, args := range []string{"", ": doc.x", ": 1, doc.x"} {
					list = append(list, renderedFor(name+args+" of "+kind, "{{ doc.x | "+name+args+" | size }}", `{"x":`+of+`}`))
				}
			}
		}
		return list
	}},
	{"a tag", func(_ *route, n int) (list []grown) {
		for _, name := range append(listedIn("{% nope %}"), "comment", "raw") {
			list = append(list, renderedFor(name+", often", strings.Repeat("{% "+name+" a %}", min(n, template.MaxSource)/(len(name)+8)), `{}`))
			values := grownValues(n)
			for _, kind := range []string{"text", "objects"} {
				list = append(list, renderedFor(name+" of "+kind, tagged[name], `{"x":`+values[kind]+`}`))
			}
		}
		return list
	}},
	{"a value", func(_ *route, n int) (list []grown) {
		for kind, of := range grownValues(n) {
			list = append(list, renderedFor("default of "+kind, template.Default, `{"x":`+of+`}`), renderedFor("fields of "+kind, "{% for f in fields %}{{ f.value.size }}{% endfor %}", of))
		}
		list = append(list, renderedFor("quotes", strings.Repeat("{{'}}'", min(n, template.MaxSource-1)/6)+"'", "{}"))
		return list
	}},
	{"a fragment", func(r *route, n int) (list []grown) {
		for _, of := range []string{`"{{q}}"`, `""`, `{"{{q}}":1}`, `"{% for i in (1..100000) %}x{% endfor %}"`} {
			list = append(list, grown{what: of, path: samplePath(r.path), kind: contentJSON, body: `{"template":{"kind":"inlineFragment","inline":[` + repeated(of, min(n, template.MaxSource-2)/(len(of)+1)) +
				`]},"input":{"kind":"inlineSearch","inline":{"q":"` + strings.Repeat("x", 1000) + `"}}}`})
		}
		return list
	}},
}

// tagged are templates of tags over doc.x, which ends up in them many times.
var tagged = map[string]string{
	"assign":    "{% assign a = doc.x %}{% assign b = a %}{{ b }}{{ a }}",
	"capture":   "{% capture a %}{{ doc.x }}{% endcapture %}" + strings.Repeat("{% capture a %}{{ a }}{{ a }}{% endcapture %}", 30),
	"case":      "{% for i in (1..100000) %}{% case doc.x %}{% when doc.x %}{% endcase %}{% endfor %}",
	"cycle":     "{% for i in (1..100000) %}{% cycle doc.x, doc.x %}{% endfor %}",
	"for":       "{% for a in doc.x %}{% for b in doc.x %}{% for c in doc.x %}{{ c }}{% endfor %}{% endfor %}{% endfor %}{% for i in (1..100000) %}{% for j in (1..100000) %}{% endfor %}{% endfor %}",
	"tablerow":  "{% tablerow a in doc.x %}{% tablerow b in doc.x %}{{ b }}{% endtablerow %}{% endtablerow %}",
	"if":        "{% for i in (1..100000) %}{% if doc.x == doc.x or doc.x contains doc.x or nothing or doc.nothing %}{% endif %}{% if nothing or doc.nothing.x %}{% endif %}{% endfor %}",
	"unless":    "{% for i in (1..100000) %}{% unless doc.x == doc.x and nothing %}{% endunless %}{% endfor %}",
	"ifchanged": "{% for i in (1..100000) %}{% ifchanged %}{{ doc.x }}{{ i }}{% endifchanged %}{% endfor %}",
	"increment": "{% for i in (1..1000000) %}{% increment a %}{% endfor %}", "decrement": "{% for i in (1..1000000) %}{% decrement a %}{% endfor %}",
	"break": "{% for i in (1..1000000) %}{% for j in (1..10) %}{% break %}{% endfor %}{% endfor %}", "continue": "{% for i in (1..10000000) %}{% continue %}{% endfor %}",
	"include": "{% include doc.x %}", "render": "{% render doc.x %}", "comment": "{% comment %}{{ doc.x }}{% endcomment %}{{ doc.x }}", "raw": "{% raw %}{{ doc.x }}{% endraw %}{{ doc.x }}",
}

// grownValues returns JSON values of about n bytes each.
func grownValues(n int) map[string]string {
	return map[string]string{
		"text": `"` + strings.Repeat("<script>", n/8) + `"`, "escapes": `"` + strings.Repeat(`\n`, n/2) + `"`, "numbers": "[" + repeated("1", n/2) + "]", "floats": "[" + repeated("1e308", n/6) + "]",
		"objects": "[" + repeated(`{"k":1}`, n/8) + "]", "members": "{" + numbered(n/12, `"k%d":"x"`) + "}", "texts": "[" + numbered(n/10, `"t%d"`) + "]",
	}
}

// renderedFor returns a request that renders a template for a document.
func renderedFor(what, source, doc string) grown {
	return grown{what: what, path: "/render-template", kind: contentJSON,
		body: fmt.Sprintf(`{"template":{"kind":"inlineDocumentTemplate","inline":%s},"input":{"kind":"inlineDocument","inline":%s}}`, appendString(nil, source), doc)}
}

// listedIn returns the names that the error for an unknown one lists.
func listedIn(source string) []string {
	_, err := template.Parse(template.Work{}, source)
	_, names, _ := strings.Cut(err.Error(), "s are ")
	return strings.Split(names, ", ")
}

// TestTemplatesAreAttacked checks that the cost tests cover all filters and tags.
func TestTemplatesAreAttacked(t *testing.T) {
	if filters := listedIn("{{ a | nope }}"); len(filters) < 40 || !slices.Contains(filters, "truncatewords") {
		t.Errorf("there are the filters %v", filters)
	}
	tags := listedIn("{% nope %}")
	if len(tags) < 10 || !slices.Contains(tags, "tablerow") {
		t.Errorf("there are the tags %v", tags)
	}
	for _, name := range tags {
		if tagged[name] == "" {
			t.Errorf("the tag %s has no templates in the cost test", name)
		}
	}
}
