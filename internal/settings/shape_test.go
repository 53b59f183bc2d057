package settings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestShapesAgreeWithTheParsers compares the schema of each setting with its parser. A member outside the schema must be refused with an
// error that lists the members, and a member or value of another type must be refused.
func TestShapesAgreeWithTheParsers(t *testing.T) {
	for _, s := range Shapes() {
		t.Run(s.Key, func(t *testing.T) {
			if _, err := ParseOne(s.Route, []byte("null"), allFeatures); err != nil {
				t.Errorf("null: %v", err)
			}
			walkShape(t, s.Route, s.Schema, "%s")
		})
	}
}

// walkShape tries wrong values in place of the %s of form, a body.
func walkShape(t *testing.T, route string, s Schema, form string) {
	t.Helper()
	try := func(value string) error {
		_, err := ParseOne(route, fmt.Appendf(nil, form, value), allFeatures)
		return err
	}
	var alternatives []Schema
	if any, ok := s["anyOf"].([]any); ok {
		for _, one := range any {
			alternatives = append(alternatives, one.(Schema))
		}
	} else {
		alternatives = []Schema{s}
	}
	taken := map[string]bool{}
	for _, one := range alternatives {
		switch types := one["type"].(type) {
		case string:
			taken[types] = true
		case []any:
			for _, name := range types {
				taken[name.(string)] = true
			}
		}
	}
	if len(taken) == 0 {
		return // any value is allowed
	}
	taken["number"] = taken["number"] || taken["integer"]
	for kind, value := range map[string]string{"string": `"\u0000 none"`, "boolean": "true", "number": "-0.5", "array": `[["none"]]`, "object": `{"none such": {"a": [0]}}`} {
		if !taken[kind] && try(value) == nil {
			t.Errorf(form+" is accepted, want %v", value, taken)
		}
	}
	for _, one := range alternatives {
		walkMembers(t, route, one, form, try)
	}
}

func walkMembers(t *testing.T, route string, s Schema, form string, try func(string) error) {
	if names, ok := s["enum"].([]any); ok {
		for _, name := range names {
			if err := try(fmt.Sprintf("%q", name)); err != nil && strings.Contains(err.Error(), "must be") {
				t.Errorf(form+": %v", fmt.Sprintf("%q", name), err)
			}
		}
	}
	for _, bound := range []struct {
		key  string
		step float64
	}{{"minimum", -1}, {"maximum", 1}} {
		var edge float64
		switch n := s[bound.key].(type) {
		case int:
			edge = float64(n)
		default:
			continue
		}
		if b, _ := json.Marshal(edge + bound.step); try(string(b)) == nil {
			t.Errorf(form+" is beyond the %s", string(b), bound.key)
		}
	}
	if items, ok := s["items"].(Schema); ok {
		walkShape(t, route, items, fmt.Sprintf(form, "[%s]"))
	}
	if values, ok := s["additionalProperties"].(Schema); ok {
		walkShape(t, route, values, fmt.Sprintf(form, `{"some": %s}`))
	}
	properties, ok := s["properties"].(Schema)
	if !ok {
		return
	}
	if s["additionalProperties"] == false {
		err := try(`{"zz-none-such-zz": null}`)
		if err == nil {
			t.Errorf(form+" is accepted", `{"zz-none-such-zz": null}`)
			return
		}
		for name := range properties {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %s is not among the members: %v", form, name, err)
			}
		}
		_, list, _ := strings.Cut(err.Error(), "the known ones are ")
		if n := len(strings.Split(strings.TrimSuffix(list, "."), ", ")); n != len(properties) {
			t.Errorf("%s has %d members: %v", form, len(properties), err)
		}
	}
	for name, of := range properties {
		walkShape(t, route, of.(Schema), fmt.Sprintf(form, fmt.Sprintf(`{%q: %%s}`, name)))
	}
}
