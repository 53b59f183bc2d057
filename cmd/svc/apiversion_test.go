package main

import (
	"strings"
	"testing"
)

// TestAPIVersionOption starts servers of both API versions on one data directory: both must accept and show its rules.
func TestAPIVersionOption(t *testing.T) {
	in := newMember(t, "a")
	says := func(want string) {
		t.Helper()
		if _, text, err := in.ask("GET", "/version", "", nil); err != nil || !strings.Contains(text, `"pkgVersion":"`+want+`"`) {
			t.Errorf("%s %v, want %s", text, err, want)
		}
	}
	says("1.42.1")
	in.must("PATCH", "/experimental-features", `{"dynamicSearchRules":true}`, nil)
	in.must("PATCH", "/dynamic-search-rules/old", `{"priority":1,"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}]}`, nil)
	in.must("PATCH", "/dynamic-search-rules/new", `{"precedence":2,"actions":{"pin":[{"id":"2","position":1}]}}`, nil)
	in.finishAll()
	_, before, _ := in.ask("POST", "/dynamic-search-rules", `{}`, nil)
	for _, options := range [][]string{{"--api-version", "1.54"}, {"--api-version", "1.42"}} {
		in.kill()
		in.options = options
		in.start()
		says(map[string]string{"1.54": "1.54.0", "1.42": "1.42.1"}[options[1]])
		if _, after, err := in.ask("POST", "/dynamic-search-rules", `{}`, nil); err != nil || after != before || !strings.Contains(after, `"total":2`) {
			t.Errorf("with %q the rules are %s (%v), want %s", options, after, err, before)
		}
	}
	if code, out := runProgram(nil, "--api-version", "1.50"); code != exitUsage || !strings.Contains(out, "1.54") {
		t.Errorf("an unknown version: %d %s", code, out)
	}
	for _, name := range []string{"rule-query-words", "rule-active-rules", "rule-pins", "rule-word-combinations", "rule-filter-combinations", "rule-filter-or", "rule-filter-and", "rule-filter-depth"} {
		if code, out := runProgram(nil, "--"+name, "0"); code == 0 || !strings.Contains(out, name) {
			t.Errorf("--%s 0: %d %s", name, code, out)
		}
	}
}
