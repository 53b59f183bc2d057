package fastapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apiDocument is the part of the OpenAPI document that tests read.
type apiDocument struct {
	OpenAPI string
	Paths   map[string]map[string]json.RawMessage
}

type apiOperation struct {
	OperationID string
	Parameters  []struct{ Name, In string }
	RequestBody *struct {
		Content map[string]struct {
			Schema struct{ Properties map[string]any }
		}
	}
	Responses map[string]any
	Security  []any
}

// TestTheDocumentHasEveryRoute compares the document with the table of routes: paths, methods, rights, parameters, bodies and statuses.
// TestTheDocumentMatchesTheServer in cmd/svc compares it with the handlers.
func TestTheDocumentHasEveryRoute(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, "a-master-key-of-16+bytes"), Pprof: true, Version: Version{Package: "1.42.1"}})
	r := c.get("/openapi.json") // needs no key
	var d apiDocument
	if err := json.Unmarshal([]byte(r.body), &d); err != nil || r.status != 200 || d.OpenAPI != "3.1.0" {
		t.Fatalf("%d %v %.100s", r.status, err, r.body)
	}
	ids := map[string]bool{}
	for _, route := range append(routes(), pprofRoutes()...) {
		name := route.method + " " + route.path
		var o apiOperation
		if err := json.Unmarshal(d.Paths[route.path][strings.ToLower(route.method)], &o); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		delete(d.Paths[route.path], strings.ToLower(route.method))
		if route.op.does == "" || ids[o.OperationID] {
			t.Errorf("%s has the operationId %q, want %q", name, o.OperationID, route.op.does)
		}
		ids[o.OperationID] = true
		if (len(o.Security) == 0) != (route.action == public) {
			t.Errorf("%s: security %v", name, o.Security)
		}
		if (o.RequestBody != nil) != (route.op.body != nil) || len(o.Parameters) != len(route.op.query) {
			t.Errorf("%s: body %v, parameters %v", name, o.RequestBody, o.Parameters)
		}
		want := map[string]bool{}
		for _, status := range append(route.statuses(), route.op.answers...) {
			want[strconv.Itoa(status)] = true
		}
		if route.op.answers == nil {
			want["200"] = true
		}
		if got := slices.Sorted(maps.Keys(o.Responses)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("%s: responses %v, want %v", name, got, want)
		}
	}
	for path, rest := range d.Paths {
		delete(rest, "parameters")
		for method := range rest {
			t.Errorf("%s %s is not a route", method, path)
		}
	}
}

// TestParametersHaveShapes checks that the document describes each parameter, except those that accept anything.
func TestParametersHaveShapes(t *testing.T) {
	anything := map[string]bool{"media": true, "inline": true, "previousShards": true}
	seen := 0
	for _, r := range routes() {
		for i := range r.op.query {
			if len(r.op.query[i].inQuery()) == 0 {
				t.Errorf("%s %s: %s has no shape", r.method, r.path, r.op.query[i].name)
			}
			seen++
		}
		if r.op.body == nil {
			continue
		}
		walkShapes(r.op.body.schema, "", func(path string, s schema) {
			seen++
			name := path[strings.LastIndexByte(path, '.')+1:]
			rest := len(s)
			if s["x-error-code"] != nil {
				rest--
			}
			if rest == 0 && !anything[name] && name != "request" && name != "response" {
				t.Errorf("%s %s: %s has no shape", r.method, r.path, path)
			}
		})
	}
	if seen < 300 {
		t.Errorf("%d parameters", seen)
	}
}

// walkShapes calls see for each member of a schema.
func walkShapes(s schema, path string, see func(string, schema)) {
	for _, key := range []string{"items", "additionalProperties"} {
		if in, ok := s[key].(schema); ok {
			walkShapes(in, path, see)
		}
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		for _, a := range alternatives {
			walkShapes(a.(schema), path, see)
		}
	}
	if properties, ok := s["properties"].(schema); ok {
		for name, of := range properties {
			see(path+"."+name, of.(schema))
			walkShapes(of.(schema), path+"."+name, see)
		}
	}
}
