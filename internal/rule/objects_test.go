package rule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

const (
	badConditions = "invalid_dynamic_search_rule_conditions"
	badActions    = "invalid_dynamic_search_rule_actions"
)

func TestReadChange(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	pins := func(n int) string {
		return `{"actions":{"pin":[` + strings.TrimSuffix(strings.Repeat(`{"id":"1","position":0},`, n), ",") + `]}}`
	}
	for _, tt := range []struct{ given, want string }{ // the shown rule after "active", or the error code
		{`{}`, `"conditions":{},"actions":[]`},
		{`{"actions":null,"conditions":null,"active":null,"precedence":null,"description":null}`, `"conditions":{},"actions":[]`},
		{`{"actions":[]}`, `"conditions":{},"actions":[]`},
		{`{"actions":{}}`, `"conditions":{},"actions":{}`},
		{`{"uid":"r"}`, "bad_request"},
		{`{"priority":1}`, "bad_request"},
		{`{"lastUpdatedAt":null}`, "bad_request"},
		{`[]`, "bad_request"}, {`1`, "bad_request"},
		{`{"description":1}`, "invalid_dynamic_search_rule_description"},
		{`{"description":"` + strings.Repeat("d", maxDescription+1) + `"}`, "invalid_dynamic_search_rule_description"},
		{`{"active":"x"}`, "invalid_dynamic_search_rule_active"},
		{`{"precedence":-1}`, "invalid_dynamic_search_rule_priority"},
		{`{"precedence":1.5}`, "invalid_dynamic_search_rule_priority"},
		{`{"precedence":"1"}`, "invalid_dynamic_search_rule_priority"},
		{`{"precedence":[]}`, "invalid_dynamic_search_rule_priority"},

		{`{"conditions":{"query":{"words":" call  History "}}}`, `"conditions":{"query":{"words":" call  History "}},"actions":[]`},
		{`{"conditions":{"query":{"isEmpty":false,"words":"a","contains":"b"}}}`, `"conditions":{"query":{"isEmpty":false,"words":"a","contains":"b"}},"actions":[]`},
		{`{"conditions":{"query":null,"time":{},"filter":null}}`, `"conditions":{},"actions":[]`},
		{`{"conditions":[]}`, badConditions}, {`{"conditions":"x"}`, badConditions}, {`{"conditions":1}`, badConditions},
		{`{"conditions":{"mood":{}}}`, "bad_request"},
		{`{"conditions":{"query":[]}}`, badConditions},
		{`{"conditions":{"query":{"word":"a"}}}`, "bad_request"},
		{`{"conditions":{"query":{"words":["a"]}}}`, badConditions},
		{`{"conditions":{"query":{"words":"` + long + `"}}}`, badConditions},
		{`{"conditions":{"query":{"isEmpty":"true"}}}`, badConditions},
		{`{"conditions":{"query":{"isEmpty":true,"words":"a"}}}`, "bad_request"},
		{`{"conditions":{"query":{"isEmpty":true,"contains":"a"}}}`, "bad_request"},
		{`{"conditions":{"time":{"start":"2030-01-01T00:00:00+01:00","end":null}}}`, `"conditions":{"time":{"start":"2030-01-01T00:00:00+01:00"}},"actions":[]`},
		{`{"conditions":{"time":{"start":"2030-01-01T00:00:00Z","end":"2029-01-01T00:00:00Z"}}}`, "bad_request"},
		{`{"conditions":{"time":{"start":"noon"}}}`, badConditions},
		{`{"conditions":{"time":{"from":"2030-01-01T00:00:00Z"}}}`, "bad_request"},
		{`{"conditions":{"filter":{"values":{"color": "red", "size": {"eu": [38, 39.0]}}}}}`, `"conditions":{"filter":{"values":{"color":"red","size":{"eu":[38,39.0]}}}},"actions":[]`},
		{`{"conditions":{"filter":{"values":{}}}}`, `"conditions":{},"actions":[]`},
		{`{"conditions":{"filter":{}}}`, badConditions},
		{`{"conditions":{"filter":{"values":[]}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":null}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":["x",null]}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"":"x"}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"` + long + `":"x"}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":"` + long + `"}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":[` + strings.Repeat("1,", maxFacets) + `2]}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":` + strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1) + `}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":` + strings.Repeat(`{"a":`, maxNesting+1) + `1` + strings.Repeat("}", maxNesting+1) + `}}}}`, badConditions},
		{`{"conditions":{"filter":{"values":{"a":` + strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting) + `}}}}`, `"conditions":{},"actions":[]`},
		{`{"conditions":{"filter":{"values":{"a":1},"x":1}}}`, "bad_request"},

		{`{"actions":[{"selector":{"indexUid":"i","id":"1"},"action":{"type":"pin","position":3}}]}`,
			`"conditions":{},"actions":[{"selector":{"indexUid":"i","id":"1"},"action":{"type":"pin","position":3}}]`},
		{`{"actions":{"scale":[{"weight":0.5,"filter":["a = 1",["b = 2"]],"ids":["1","2"]}],"pin":[{"indexUid":"i","id":"1","position":3},{"position":0,"id":"2"}]}}`,
			`"conditions":{},"actions":{"pin":[{"id":"1","position":3,"indexUid":"i"},{"id":"2","position":0}],"scale":[{"weight":0.5,"ids":["1","2"],"filter":["a = 1",["b = 2"]]}]}`},
		{`{"actions":{"pin":null,"scale":null}}`, `"conditions":{},"actions":{}`},
		{`{"actions":"x"}`, badActions}, {`{"actions":[{}]}`, badActions}, {`{"actions":[1]}`, badActions},
		{`{"actions":{"hide":[]}}`, "bad_request"},
		{`{"actions":{"pin":{}}}`, badActions},
		{`{"actions":{"pin":[1]}}`, badActions},
		{`{"actions":{"pin":[{"position":1}]}}`, badActions},
		{`{"actions":{"pin":[{"id":1,"position":1}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"` + strings.Repeat("i", maxID+1) + `","position":1}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1"}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1","position":-1}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1","position":4294967296}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1","position":"0"}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1","position":0,"indexUid":"not ok"}]}}`, badActions},
		{`{"actions":{"pin":[{"id":"1","position":0,"weight":1}]}}`, "bad_request"},
		{pins(maxPins + 1), badActions},
		{`{"actions":{"scale":[{}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":-1}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":"2"}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":1e999}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"ids":"1"}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"ids":[1]}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"ids":[null]}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"ids":[` + strings.Repeat(`"1",`, maxIDs) + `"2"]}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"filter":"a ="}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"filter":"_foreign(a, b = 1)"}]}}`, badActions},
		{`{"actions":{"scale":[{"weight":2,"factor":1}]}}`, "bad_request"},
	} {
		c, err := ReadChange(json.RawMessage(tt.given))
		if err != nil {
			if string(code(err)) != tt.want || len(err.Error()) > 1<<10 || strings.Contains(err.Error(), "``") {
				t.Errorf("%.200s: %.300v, want %s", tt.given, err, tt.want)
			}
			continue
		}
		r := &Rule{UID: "r", Active: true, Form: c.Form}
		c.apply(r)
		want := `{"uid":"r","active":true,` + tt.want + `}`
		shown := string(r.AppendJSON(nil))
		if shown != want {
			t.Errorf("%s: %s, want %s", tt.given, shown, want)
		}
		again, err := Read([]byte(shown))
		must(t, err)
		if got := string(again.AppendJSON(nil)); got != want {
			t.Errorf("%s: reads back as %s", tt.given, got)
		}
	}
}

func TestFormOf(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "?", `{"active":true,"description":"d"}`: "?", `{"actions":null}`: "?", `{"conditions":null}`: "?", `{"conditions":{}}`: "?", `{"actions":{}}`: "?", `x`: "?",
		`{"actions":[]}`: "?", `{"actions":[],"conditions":{}}`: "?",
		`{"priority":null}`: "0", `{"conditions":[]}`: "0", `{"conditions":[],"actions":{}}`: "0",
		`{"precedence":null}`: "1", `{"precedence":1,"actions":[]}`: "1", `{"actions":[],"conditions":{"query":{}}}`: "1", `{"precedence":1,"priority":1}`: "1",
		`{"actions":{"pin":[]}}`: "2", `{"actions":{"pin":null},"precedence":1}`: "2",
	} {
		got := "?"
		if f, decided := FormOf(json.RawMessage(body)); decided {
			got = fmt.Sprint(f)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// shownBut returns the shown rules of a store, with 12:00 in place of times.
func shownBut(s *Store) string { return strings.TrimSuffix(s.shown(), "\n") }

func TestApply(t *testing.T) {
	fsys := vfs.NewMem()
	s := open(t, fsys)
	at := noon
	apply := func(updates ...string) []error {
		t.Helper()
		var list []Update
		for _, u := range updates {
			at = at.Add(time.Second)
			uid, body, _ := strings.Cut(u, " ")
			one := Update{UID: uid, AskedAt: at}
			if body != "" {
				one.Rule = json.RawMessage(body)
			}
			list = append(list, one)
		}
		refused, err := s.Apply(list)
		must(t, err)
		return refused
	}
	check := func(want ...string) {
		t.Helper()
		for _, s := range []*Store{s, open(t, fsys)} {
			if got := shownBut(s); got != strings.Join(want, "\n") {
				t.Fatalf("%s\nwant %s", got, strings.Join(want, "\n"))
			}
		}
	}
	refused := apply(`b {"precedence":2}`, `a {"conditions":{"query":{"words":"x"}}}`, `b {"description":"d"}`, `a {"conditions":1}`, `c {}`, `c`, `none`, `no/uid {}`)
	for i, want := range []apierr.Code{3: badConditions, 7: "dynamic_search_rule_not_found"} {
		if got := code(refused[i]); got != want {
			t.Errorf("%d: %v, want %s", i, refused[i], want)
		}
	}
	const words = `{"uid":"a","active":true,"conditions":{"query":{"words":"x"}},"actions":[],"lastUpdatedAt":"2026-06-01T12:00:02Z"}`
	check(words, `{"uid":"b","description":"d","precedence":2,"active":true,"conditions":{},"actions":[],"lastUpdatedAt":"2026-06-01T12:00:03Z"}`)

	// The form follows the actions that are sent. Members of the previous form stay if the new form can express them.
	apply(`b {"actions":[{"selector":{"id":"1"},"action":{"type":"scale","factor":2}}]}`)
	check(words, `{"uid":"b","description":"d","precedence":2,"active":true,"conditions":{},"actions":[{"selector":{"id":"1"},"action":{"type":"scale","factor":2}}],"lastUpdatedAt":"2026-06-01T12:00:09Z"}`)
	apply(`b {"actions":{"scale":[{"weight":2,"ids":["1"]}]},"precedence":null}`)
	const scales = `{"uid":"b","description":"d","active":true,"conditions":{},"actions":{"scale":[{"weight":2,"ids":["1"]}]},"lastUpdatedAt":"2026-06-01T12:00:10Z"}`
	check(words, scales)
	if _, _, err := s.Put("b", Change{}); code(err) != "bad_request" {
		t.Errorf("ids in an array: %v", err)
	}
	if _, _, err := s.Put("a", pinning("1", 0)); code(err) != "bad_request" {
		t.Errorf("words in an array: %v", err)
	}
	check(words, scales)
	put := pinning("1", 0)
	put.Conditions = &[]Condition{{Query: &QueryCondition{Contains: new(string)}}, {Query: &QueryCondition{Contains: new(string)}}}
	_, created, err := s.Put("a", put)
	must(t, err)
	if created {
		t.Error("a rule of another form is not counted")
	}
	const listed = `{"uid":"a","active":true,"conditions":[{"scope":"query","contains":""},{"scope":"query","contains":""}],"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}]}`
	check(listed, scales)
	if refused := apply(`a {"precedence":1}`); code(refused[0]) != "bad_request" {
		t.Errorf("two conditions on the query in an object: %v", refused[0])
	}
	apply(`a {"precedence":1,"conditions":{"query":{"contains":"y"}}}`)
	check(`{"uid":"a","precedence":1,"active":true,"conditions":{"query":{"contains":"y"}},"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}],"lastUpdatedAt":"2026-06-01T12:00:12Z"}`, scales)

	n, err := s.Clear()
	if must(t, err); n != 2 {
		t.Errorf("%d rules are deleted", n)
	}
	check("")
	if n, err := s.Clear(); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// TestLargeRulesKeepTheirForm creates rules of the form Lists that exceed a limit of the other forms. A change to such a form must be
// refused, because a start could not read the rule again.
func TestLargeRulesKeepTheirForm(t *testing.T) {
	fsys := vfs.NewMem()
	s := open(t, fsys)
	long := func(n int) *string { s := strings.Repeat("x", n); return &s }
	description := long(maxDescription + 1)
	for uid, part := range map[string]struct {
		change Change
		sent   string
	}{
		"description": {Change{Description: &description}, `"description":"d"`},
		"conditions":  {Change{Conditions: &[]Condition{{Query: &QueryCondition{Contains: long(maxText + 1)}}}}, `"conditions":{}`},
		"actions":     {Change{Actions: slices.Repeat(pinning("1", 0).Actions, maxPins)}, `"actions":{}`},
	} {
		put := pinning("1", 0)
		put.Description, put.Conditions, put.Actions = part.change.Description, part.change.Conditions, append(put.Actions, part.change.Actions...)
		_, _, err := s.Put(uid, put)
		must(t, err)
		want := s.shown()
		refused, err := s.Apply([]Update{{uid, json.RawMessage(`{"precedence":1}`), noon}})
		must(t, err)
		if code(refused[0]) != "bad_request" || !strings.Contains(refused[0].Error(), part.sent[1:8]) {
			t.Errorf("%s: %v", uid, refused[0])
		}
		if got := open(t, fsys).shown(); got != want {
			t.Errorf("%s: %.200s, want %.200s", uid, got, want)
		}
		refused, err = s.Apply([]Update{{uid, json.RawMessage(`{"precedence":1,` + part.sent + `}`), noon}})
		must(t, err)
		if refused[0] != nil {
			t.Errorf("%s is sent: %v", uid, refused[0])
		}
		open(t, fsys)
	}
}

// TestApplyNothing checks that the file is not rewritten if all updates of a batch are refused, or if the deleted rules do not exist.
func TestApplyNothing(t *testing.T) {
	s := open(t, vfs.NewMem())
	_, err := s.Apply([]Update{{"a", json.RawMessage(`{}`), noon}})
	must(t, err)
	before := s.Set()
	_, err = s.Apply([]Update{{"a", json.RawMessage(`{"active":1}`), noon}, {"none", nil, noon}})
	must(t, err)
	if s.Set() != before {
		t.Error("the rules were rewritten")
	}
	_, err = s.Apply([]Update{{"a", nil, noon}})
	must(t, err)
	if s.Set() == before {
		t.Error("a deletion was not stored")
	}
}

// TestApplyAgain applies updates twice, as a batch that runs again after a crash does.
func TestApplyAgain(t *testing.T) {
	s := open(t, vfs.NewMem())
	updates := []Update{{"a", json.RawMessage(`{"precedence":1}`), noon}, {"b", json.RawMessage(`{"conditions":{"query":{"words":"x"}}}`), noon}, {"a", nil, noon}}
	_, err := s.Apply(updates)
	must(t, err)
	want := s.shown()
	for _, u := range updates {
		_, err := s.Apply([]Update{u})
		must(t, err)
	}
	if got := s.shown(); got != want || !strings.Contains(got, `"uid":"b"`) {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestObjectsByDefault(t *testing.T) {
	s, err := Open(Options{FS: vfs.NewMem(), File: "rules.json", Objects: true, Log: silent})
	must(t, err)
	_, err = s.Apply([]Update{{"a", json.RawMessage(`{}`), noon}, {"b", json.RawMessage(`{"actions":[]}`), noon}, {"a", json.RawMessage(`{"active":false}`), noon}})
	must(t, err)
	const at = `,"lastUpdatedAt":"2026-06-01T12:00:00Z"}`
	if got, want := s.shown(), `{"uid":"a","active":false,"conditions":{},"actions":{}`+at+"\n"+`{"uid":"b","active":true,"conditions":{},"actions":[]`+at+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNewestAndFind(t *testing.T) {
	s := open(t, vfs.NewMem())
	_, _, err := s.Put("zz", pinning("1", 0))
	must(t, err)
	_, _, err = s.Put("aa", pinning("1", 0))
	must(t, err)
	var updates []Update
	for i, body := range []string{
		`{"description":"Winter sale of coats"}`, `{"description":"refund","conditions":{"query":{"words":"money back"}}}`, `{"description":"winter"}`,
		`{"conditions":{"query":{"contains":"sale"}}}`, `{"description":"Übergrößen"}`, `{"description":"the refunds of winter"}`,
	} {
		updates = append(updates, Update{fmt.Sprintf("r%d", i), json.RawMessage(body), noon.Add(time.Duration(i) * time.Second)})
	}
	_, err = s.Apply(updates)
	must(t, err)
	uids := func(all []*Rule) string {
		var b strings.Builder
		for _, r := range all {
			b.WriteString(" " + r.UID)
		}
		return strings.TrimSpace(b.String())
	}
	if got := uids(s.Set().Newest()); got != "r5 r4 r3 r2 r1 r0 aa zz" {
		t.Errorf("newest: %s", got)
	}
	for words, want := range map[string]string{
		"": "r5 r4 r3 r2 r1 r0 aa zz", " - ": "r5 r4 r3 r2 r1 r0 aa zz",
		"winter": "r5 r2 r0", "wintre": "r5 r2 r0", "wnter ": "r5 r2 r0", "wxxter": "", "win": "r5 r2 r0", "win ": "",
		"winter sale": "r0 r5 r2", "sale winter": "r0 r3", "sale": "r3 r0", "slae": "",
		"refund": "r5 r1", "refund ": "r1 r5", "rfund ": "r1", "money": "r1", "back money": "r1", "ubergroßen": "r4", "zz": "",
	} {
		if got := uids(s.Set().Find(words)); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
