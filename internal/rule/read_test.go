package rule

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// code returns the code of an error for users, or "".
func code(err error) apierr.Code {
	if err == nil {
		return ""
	}
	if e := (*apierr.Error)(nil); !errors.As(err, &e) {
		return "no error of the API"
	}
	return apierr.From(err).Code
}

func TestReadConditions(t *testing.T) {
	for _, tt := range []struct{ given, want string }{ // the shown form, or the error code
		{`[]`, `[]`},
		{`null`, `[]`},
		{`"x"`, "invalid_dynamic_search_rule_conditions"},
		{`{}`, "invalid_dynamic_search_rule_conditions"},
		{`[null]`, "invalid_dynamic_search_rule_conditions"},
		{`["x"]`, "invalid_dynamic_search_rule_conditions"},
		{`[{}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": null}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": 1}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "Query", "isEmpty": true}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "moon"}]`, "invalid_dynamic_search_rule_conditions"},

		{`[{"scope": "query", "isEmpty": true}]`, `[{"scope":"query","isEmpty":true}]`},
		{`[{"isEmpty": false, "scope": "query", "note": [1]}]`, `[{"scope":"query","isEmpty":false}]`},
		{`[{"scope": "query", "contains": " É\u0041\"\n"}]`, `[{"scope":"query","contains":" ÉA\"\n"}]`},
		{`[{"scope": "query", "contains": ""}]`, `[{"scope":"query","contains":""}]`},
		{`[{"scope": "query", "contains": "a", "isEmpty": null}]`, `[{"scope":"query","contains":"a"}]`},
		{`[{"scope": "query", "isEmpty": true, "start": 3}]`, `[{"scope":"query","isEmpty":true}]`},
		{`[{"scope": "query"}]`, "bad_request"},
		{`[{"scope": "query", "isEmpty": null}]`, "bad_request"},
		{`[{"scope": "query", "isEmpty": false, "contains": "a"}]`, "bad_request"},
		{`[{"scope": "query", "isEmpty": 1}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "query", "isEmpty": "true"}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "query", "contains": 1}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "query", "contains": ["a"]}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "query", "isEmpty": true}, {"scope": "query"}]`, "bad_request"},

		{`[{"scope": "time"}]`, `[{"scope":"time"}]`},
		{`[{"scope": "time", "start": null, "end": null}]`, `[{"scope":"time"}]`},
		{`[{"scope": "time", "start": "2001-01-01T02:00:00+02:00"}]`, `[{"scope":"time","start":"2001-01-01T02:00:00+02:00"}]`},
		{`[{"scope": "time", "end": "2001-01-01t02:00:00.5000z"}]`, `[{"scope":"time","end":"2001-01-01T02:00:00.5Z"}]`},
		{`[{"scope": "time", "start": "2001-01-01T00:00:00Z", "end": "2001-01-01T00:00:00Z"}]`, `[{"scope":"time","start":"2001-01-01T00:00:00Z","end":"2001-01-01T00:00:00Z"}]`},
		{`[{"scope": "time", "start": "2001-01-01T00:00:00Z", "end": "2001-01-01T00:59:59+01:00"}]`, "bad_request"},
		{`[{"scope": "time", "start": "2001-01-01"}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "time", "start": "2001-01-01T00:00:00"}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "time", "start": "2001-02-30T00:00:00Z"}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "time", "start": ""}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "time", "end": 1000000000}]`, "invalid_dynamic_search_rule_conditions"},

		{`[{"scope": "filter", "values": {"size": 3, "color": "red", "new": true}}]`, `[{"scope":"filter","values":{"color":"red","new":true,"size":3}}]`},
		{`[{"scope": "filter"}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": null}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": {}}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": ["a"]}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": {"a": null}}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": {"a": ["b"]}}]`, "invalid_dynamic_search_rule_conditions"},
		{`[{"scope": "filter", "values": {"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}]`, "invalid_dynamic_search_rule_conditions"},
	} {
		conditions, err := ReadConditions(json.RawMessage(tt.given))
		got := string(code(err))
		if err == nil {
			shown := string((&Rule{Conditions: conditions}).AppendJSON(nil))
			shown = shown[strings.Index(shown, `"conditions":`)+len(`"conditions":`):]
			got = strings.TrimSuffix(shown, `,"actions":[]}`)
		}
		if got != tt.want {
			t.Errorf("%s: %s (%v), want %s", tt.given, got, err, tt.want)
		}
	}
}

func TestReadActions(t *testing.T) {
	const refused = "invalid_dynamic_search_rule_actions"
	pin := func(selector, action string) string {
		return `[{"selector": ` + selector + `, "action": ` + action + `}]`
	}
	for _, tt := range []struct{ given, want string }{ // the shown form, or the error code
		{`null`, refused}, {`[]`, refused}, {`{}`, refused}, {`"x"`, refused}, {`[null]`, refused}, {`[{}]`, refused}, {`[[]]`, refused},
		{`[{"selector": {}}]`, refused},
		{`[{"action": {"type": "pin", "position": 0}}]`, refused},
		{pin(`null`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{}`, `null`), refused},
		{pin(`{}`, `"pin"`), refused},
		{pin(`{}`, `{"position": 0}`), refused},
		{pin(`{}`, `{"type": null, "position": 0}`), refused},
		{pin(`{}`, `{"type": "hide"}`), refused},
		{pin(`{}`, `{"type": 1, "position": 0}`), refused},
		{pin(`{}`, `{"type": "pin"}`), refused},
		{pin(`{}`, `{"type": "pin", "position": null}`), refused},
		{pin(`{}`, `{"type": "pin", "position": -1}`), refused},
		{pin(`{}`, `{"type": "pin", "position": 1.0}`), refused},
		{pin(`{}`, `{"type": "pin", "position": 1e1}`), refused},
		{pin(`{}`, `{"type": "pin", "position": 4294967296}`), refused},
		{pin(`{}`, `{"type": "pin", "position": 0, "x": 1}`), refused},
		{pin(`{"x": 1}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"filter": "a = 1"}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"id": 1}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"id": "1", "indexUid": 2}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"id": "1", "indexUid": "not ok"}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"id": "1", "indexUid": ""}`, `{"type": "pin", "position": 0}`), refused},
		{pin(`{"id": "1", "indexUid": "a*"}`, `{"type": "pin", "position": 0}`), refused},
		{`[{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}, "x": 1}]`, refused},

		{pin(`{"id": "1", "indexUid": "a_B-9"}`, `{"position": 4294967295, "type": "pin"}`), `[{"selector":{"indexUid":"a_B-9","id":"1"},"action":{"type":"pin","position":4294967295}}]`},
		{pin(`{"id": null, "indexUid": null}`, `{"type": "pin", "position": 0}`), `[{"selector":{},"action":{"type":"pin","position":0}}]`},
		{pin(`{"id": "no id ä"}`, `{"type": "pin", "position": 0}`), `[{"selector":{"id":"no id ä"},"action":{"type":"pin","position":0}}]`},

		{pin(`{"filter": "a = 1 AND b > 2"}`, `{"type": "scale", "factor": 2}`), `[{"selector":{"filter":"a = 1 AND b > 2"},"action":{"type":"scale","factor":2}}]`},
		{pin(`{"filter": [["a = 1", "b = 2"], "c = 3"], "id": "x", "indexUid": "i"}`, `{"type": "scale", "factor": 0.25}`),
			`[{"selector":{"indexUid":"i","id":"x","filter":[["a = 1","b = 2"],"c = 3"]},"action":{"type":"scale","factor":0.25}}]`},
		{pin(`{"filter": null}`, `{"type": "scale", "factor": -0}`), `[{"selector":{},"action":{"type":"scale","factor":0}}]`},
		{pin(`{}`, `{"type": "scale", "factor": 1e-9}`), `[{"selector":{},"action":{"type":"scale","factor":1e-09}}]`},
		{pin(`{}`, `{"type": "scale"}`), refused},
		{pin(`{}`, `{"type": "scale", "factor": null}`), refused},
		{pin(`{}`, `{"type": "scale", "factor": "2"}`), refused},
		{pin(`{}`, `{"type": "scale", "factor": -0.1}`), refused},
		{pin(`{}`, `{"type": "scale", "factor": 1e999}`), refused},
		{pin(`{}`, `{"type": "scale", "factor": 1, "position": 1}`), refused},
		{pin(`{"filter": "a ="}`, `{"type": "scale", "factor": 1}`), refused},
		{pin(`{"filter": 3}`, `{"type": "scale", "factor": 1}`), refused},
		{pin(`{"filter": "_foreign(a, b = 1)"}`, `{"type": "scale", "factor": 1}`), refused},
		{pin(`{"filter": "_shard = a"}`, `{"type": "scale", "factor": 1}`), refused},
	} {
		actions, err := ReadActions(json.RawMessage(tt.given))
		got := string(code(err))
		if err == nil {
			shown := string((&Rule{Actions: actions}).AppendJSON(nil))
			got = strings.TrimSuffix(shown[strings.Index(shown, `"actions":`)+len(`"actions":`):], "}")
		}
		if got != tt.want {
			t.Errorf("%s: %s (%v), want %s", tt.given, got, err, tt.want)
		}
	}
}

// FuzzRead checks that a parsed rule survives formatting, and that nothing panics.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"uid":"r","description":"d","priority":18446744073709551615,"active":false,"conditions":[{"scope":"query","contains":"é"},{"scope":"time","start":"2001-01-01T02:00:00.25+02:00"}],"actions":[{"selector":{"indexUid":"a","id":"1"},"action":{"type":"pin","position":3}}]}`,
		`{"uid":"r","conditions":[{"scope":"filter","values":{"a":"b","c":1e3,"d":true}},{"scope":"query","isEmpty":true}],"actions":[{"selector":{"filter":["a = 1"]},"action":{"type":"scale","factor":0.5}}]}`,
		`{"uid":"","actions":[null]}`, `{"uid":"a","actions":[{"selector":{"filter":"\ud800 = 1"},"action":{"type":"scale","factor":-0}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(b)
		if err != nil {
			return
		}
		shown := r.AppendJSON(nil)
		again, err := Read(shown)
		if err != nil {
			t.Fatalf("%s reads as %s, which cannot be read: %v", b, shown, err)
		}
		if s := again.AppendJSON(nil); string(s) != string(shown) {
			t.Fatalf("%s reads as %s", shown, s)
		}
	})
}
