package main

import (
	"fmt"
	"slices"
)

// figureKinds are kinds of searches of one word with members that other servers do not know.
var figureKinds = []struct{ name, members string }{
	{"one word, stats", `"aggregations":{"size":{"stats":"installedSize"}}`},
	{"one word, terms with two stats", `"aggregations":{"sections":{"terms":"section","aggregations":{"a":{"stats":"installedSize"},"b":{"stats":"installedSize"}}}}`},
	{"one word, groups", `"groupBy":{"attribute":"section"}`},
	{"one word, two score functions", `"scoreFunctions":[{"name":"large","function":"log","attribute":"installedSize","scale":1000000},{"name":"usual","function":"decay","attribute":"installedSize","origin":500,"scale":500}]`},
}

// scoreSettings adds the rule that score functions need to the others, which are those by default.
const scoreSettings = `{"rankingRules":["words","typo","score","proximity","attributeRank","sort","wordPosition","exactness"]}`

// drawFigures returns the kinds of searches with aggregations, groups and score functions: those of one word, with members, and some
// without words.
func drawFigures(kinds []queryKind) []queryKind {
	word := kinds[slices.IndexFunc(kinds, func(k queryKind) bool { return k.name == "one word" })]
	var out []queryKind
	for _, f := range figureKinds {
		k := queryKind{name: f.name}
		for _, body := range word.bodies {
			k.bodies = append(k.bodies, fmt.Appendf(nil, "%s,%s}", body[:len(body)-1], f.members))
		}
		out = append(out, k)
	}
	for _, kind := range []string{"stats", "percentiles"} {
		k := queryKind{name: "placeholder, " + kind}
		for i := range word.bodies { // no two are the same: svc caches answers
			k.bodies = append(k.bodies, fmt.Appendf(nil, `{"q":"","offset":%d,"aggregations":{"size":{%q:"installedSize"}}}`, i, kind))
		}
		out = append(out, k)
	}
	return out
}
