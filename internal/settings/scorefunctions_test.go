package settings

import (
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestScoreFunctions checks that the setting is shown and stored in the form in which it is read.
func TestScoreFunctions(t *testing.T) {
	for body, want := range map[string]string{
		`[]`: `[]`,
		`[{"function":"log","scale":100,"attribute":"sold","name":"popular","missing":0,"weight":1}]`: `[{"name":"popular","attribute":"sold","function":"log","scale":100,"missing":0}]`,
		`{"levels":20,"functions":[{"name":"a","function":"filter","filter":["x = 1"],"weight":-2}]}`: `[{"name":"a","function":"filter","filter":["x = 1"],"weight":-2}]`,
		`{"functions":[],"levels":3}`: `{"levels":3,"functions":[]}`,
		`[{"name":"n","function":"decay","attribute":"at","origin":"now","scale":86400,"unit":"milliseconds"}]`:                               `[{"name":"n","attribute":"at","function":"decay","curve":"exp","origin":"now","unit":"milliseconds","scale":86400}]`,
		`[{"name":"n","function":"decay","attribute":"at","origin":"2026-01-02","scale":1,"curve":"gauss","offset":3,"decay":0.25}]`:          `[{"name":"n","attribute":"at","function":"decay","curve":"gauss","origin":"2026-01-02","scale":1,"offset":3,"decay":0.25}]`,
		`[{"name":"n","function":"decay","attribute":"_geo","origin":{"lng":1.5,"lat":-2},"scale":1000,"curve":"linear"}]`:                    `[{"name":"n","attribute":"_geo","function":"decay","curve":"linear","origin":{"lat":-2,"lng":1.5},"scale":1000}]`,
		`[{"name":"n","function":"decay","attribute":"a.b","origin":7,"scale":1},{"name":"m","function":"sqrt","attribute":"a.b","scale":1}]`: `[{"name":"n","attribute":"a.b","function":"decay","curve":"exp","origin":7,"scale":1},{"name":"m","attribute":"a.b","function":"sqrt","scale":1}]`,
		`[{"name":"r","function":"reciprocal","attribute":"p","scale":0.5},{"name":"l","function":"linear","attribute":"p","scale":5}]`:       `[{"name":"r","attribute":"p","function":"reciprocal","scale":0.5},{"name":"l","attribute":"p","function":"linear","scale":5}]`,
	} {
		s := mustApply(t, Default(), `{"scoreFunctions":`+body+`}`)
		if one, err := s.One("score-functions"); err != nil || string(one) != want {
			t.Errorf("%s: %s, %v", body, one, err)
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if one, _ := again.One("score-functions"); string(one) != want {
			t.Errorf("%s: stored as %s", body, one)
		}
		if got, err := ParseScoreFunctions(s.ScoreFunctions.JSON(), "p", "invalid_search_score_functions"); err != nil || string(got.JSON()) != want {
			t.Errorf("%s: sent as %s, %v", body, got.JSON(), err)
		}
		u, err := ParseUpdate([]byte(`{"scoreFunctions":`+body+`}`), Features{})
		if err != nil || string(u.ScoreFunctions().JSON()) != want {
			t.Errorf("%s: the update has %s, %v", body, u.ScoreFunctions().JSON(), err)
		}
		if cleared := mustApply(t, s, `{"scoreFunctions":null}`); cleared.ScoreFunctions != nil || strings.Contains(string(cleared.Full()), "scoreFunctions") {
			t.Errorf("%s: reset to %+v", body, cleared.ScoreFunctions)
		}
	}
	if strings.Contains(string(Default().Full()), "scoreFunctions") || ResetAll().ScoreFunctions() != nil {
		t.Error("score functions are shown before they are set")
	}
}

func TestScoreFunctionsRefused(t *testing.T) {
	const name = `"name":"a",`
	for _, body := range []string{
		`1`, `"log"`, `{}`, `{"levels":20}`, `{"levels":1,"functions":[]}`, `{"levels":1001,"functions":[]}`, `{"levels":2.5,"functions":[]}`, `{"functions":{}}`, `{"functions":[],"level":3}`, `[1]`, `[{}]`,
		`[{` + name + `"function":"cube","attribute":"x","scale":1}]`, `[{` + name + `"function":7}]`, `[{"function":"log","attribute":"x","scale":1}]`,
		`[{"name":"","function":"log","attribute":"x","scale":1}]`, `[{"name":"` + strings.Repeat("n", 101) + `","function":"log","attribute":"x","scale":1}]`,
		`[{` + name + `"function":"log","attribute":"x"}]`, `[{` + name + `"function":"log","scale":1}]`, `[{` + name + `"function":"log","attribute":"","scale":1}]`,
		`[{` + name + `"function":"log","attribute":"x","scale":0}]`, `[{` + name + `"function":"log","attribute":"x","scale":-1}]`, `[{` + name + `"function":"log","attribute":"x","scale":1e16}]`,
		`[{` + name + `"function":"log","attribute":"x","scale":"1"}]`, `[{` + name + `"function":"log","attribute":"x","scale":1,"missing":null}]`,
		`[{` + name + `"function":"log","attribute":"x","scale":1,"weight":1e7}]`, `[{` + name + `"function":"log","attribute":"x","scale":1,"curve":"exp"}]`,
		`[{` + name + `"function":"log","attribute":"_geo","scale":1}]`, `[{` + name + `"function":"log","attribute":"_vectors.e","scale":1}]`,
		`[{` + name + `"function":"decay","attribute":"x","scale":1}]`, `[{` + name + `"function":"decay","attribute":"x","origin":"noon","scale":1}]`, `[{` + name + `"function":"decay","attribute":"x","origin":true,"scale":1}]`,
		`[{` + name + `"function":"decay","attribute":"x","origin":{"lat":1,"lng":2},"scale":1}]`, `[{` + name + `"function":"decay","attribute":"_geo","origin":7,"scale":1}]`,
		`[{` + name + `"function":"decay","attribute":"_geo","origin":{"lat":91,"lng":2},"scale":1}]`, `[{` + name + `"function":"decay","attribute":"_geo","origin":{"lat":1},"scale":1}]`,
		`[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"unit":"milliseconds"}]`, `[{` + name + `"function":"decay","attribute":"x","origin":"now","scale":1,"unit":"hours"}]`,
		`[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"decay":1}]`, `[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"decay":0}]`,
		`[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"offset":-1}]`, `[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"curve":"round"}]`,
		`[{` + name + `"function":"decay","attribute":"x","origin":7,"scale":1,"missing":1}]`, `[{` + name + `"function":"decay","attribute":"_geojson","origin":7,"scale":1}]`,
		`[{` + name + `"function":"filter"}]`, `[{` + name + `"function":"filter","filter":{}}]`, `[{` + name + `"function":"filter","filter":"x = 1","attribute":"x"}]`,
		`[{` + name + `"function":"filter","filter":"x = 1"},{` + name + `"function":"filter","filter":"x = 2"}]`,
		`[` + strings.TrimSuffix(strings.Repeat(`{},`, MaxScoreFunctions+1), ",") + `]`,
	} {
		if _, err := ParseOne("score-functions", []byte(body), Features{}); err == nil || apierr.From(err).Code != "invalid_settings_score_functions" {
			t.Errorf("%s: %v", body, err)
		}
		if _, err := ParseScoreFunctions([]byte(body), "scoreFunctions", "invalid_search_score_functions"); err == nil || apierr.From(err).Code != "invalid_search_score_functions" {
			t.Errorf("%s, in a request: %v", body, err)
		}
	}
}
