package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	apiRequests = flag.Int("api-requests", 1500, "how many requests TestRandomRequestsOfTheDocument makes")
	apiSeed     = flag.Uint64("api-seed", 1, "which ones")
	apiTime     = flag.Duration("api-time", time.Minute, "when it stops making more")
)

const apiMasterKey = "a-master-key-of-16+bytes"

// api is the OpenAPI document of a running server.
type api struct {
	url        string
	schemas    map[string]any
	operations []apiOperation
}

type apiOperation struct {
	method, path string
	parameters   []apiParameter
	body         map[string]any // content by media type; nil: none
	responses    map[string]any
	loose        bool // accepts undeclared parameters
}

type apiParameter struct {
	Name, In string
	Schema   map[string]any
	Code     string `json:"x-error-code"`
}

// startAPI starts a server with an index and all features that need no other server.
func startAPI(t *testing.T) *api {
	t.Helper()
	t.Setenv(asProgram, "1")
	s := startServer(t, os.Args[0], filepath.Join(t.TempDir(), "data"), "--master-key", apiMasterKey, "--experimental-allowed-ip-networks", "127.0.0.0/8", "--analytics-retention", "30d")
	a := &api{url: s.url}
	a.prepare(t)
	var d struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]any }
	}
	_, b := a.send(t, "GET", "/openapi.json", nil)
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	a.schemas = d.Components.Schemas
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		var inPath []apiParameter
		if err := json.Unmarshal(d.Paths[path]["parameters"], &inPath); err != nil {
			t.Fatal(err)
		}
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			if method == "parameters" {
				continue
			}
			var o struct {
				Parameters  []apiParameter
				RequestBody struct{ Content map[string]any }
				Responses   map[string]any
			}
			if err := json.Unmarshal(d.Paths[path][method], &o); err != nil {
				t.Fatal(err)
			}
			a.operations = append(a.operations, apiOperation{
				strings.ToUpper(method), path, append(slices.Clone(inPath), o.Parameters...), o.RequestBody.Content, o.Responses, strings.HasSuffix(path, "/stats") || path == "/metrics",
			})
		}
	}
	t.Cleanup(func() { s.stop(t) })
	return a
}

// prepare enables every feature and creates an index with some documents.
func (a *api) prepare(t *testing.T) {
	t.Helper()
	_, b := a.send(t, "GET", "/experimental-features", nil)
	var features map[string]bool
	if err := json.Unmarshal(b, &features); err != nil {
		t.Fatal(err)
	}
	for name := range features {
		features[name] = true
	}
	features["tasksStreamingRoute"], features["renderRoute"] = true, true
	b, _ = json.Marshal(features)
	for _, r := range []struct{ method, path, body string }{
		{"PATCH", "/experimental-features", string(b)},
		{"PATCH", "/indexes/films/settings", `{"filterableAttributes": ["year"], "sortableAttributes": ["year"], "embedders": {"m": {"source": "userProvided", "dimensions": 2}}}`},
		{"POST", "/indexes/films/documents", `[{"id": 1, "title": "Metropolis", "year": 1927, "_vectors": {"m": [0, 1]}}, {"id": 2, "title": "Stalker", "year": 1979, "_vectors": {"m": [1, 0]}}]`},
	} {
		if status, answer := a.send(t, r.method, r.path, []byte(r.body), "Content-Type", "application/json"); status > 299 {
			t.Fatalf("%s %s: %d %s", r.method, r.path, status, answer)
		}
	}
}

// send sends a request, and reads the start of an endless answer.
func (a *api) send(t *testing.T, method, path string, body []byte, headers ...string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiMasterKey)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s %.300s: %v", method, path, body, err)
	}
	defer resp.Body.Close()
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/event-stream"), kind == "application/octet-stream" && strings.HasPrefix(path, "/logs"):
		return resp.StatusCode, nil
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, b
}

var quotedNames = regexp.MustCompile("`([^`]*)`")

// fill returns the path of the operation with existing objects.
func (o *apiOperation) fill() string {
	return strings.NewReplacer("{index_uid}", "films", "{alias}", "pictures", "{document_id}", "1", "{task_id}", "0", "{batch_id}", "0", "{workspace}", "w", "{rule_uid}", "r",
		"{key}", "k", "{webhook}", "9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f").Replace(o.path)
}

// unlike lists members whose values are not checked, or are refused with the code of something else.
var unlike = map[string]bool{
	"POST /export filter":            true, // read by the task
	"PATCH /network previousRemotes": true, // sent only between instances of a network
}

// twoForms lists bodies with one of two forms, which their members determine. A body without such members is refused as one of the forms.
var twoForms = map[string]bool{"PATCH /dynamic-search-rules/{rule_uid}": true}

// TestTheDocumentMatchesTheServer sends each route an unknown parameter and an unknown body member. The error lists the known names, which
// must be those of the document. Values of other types must be refused with the documented code.
func TestTheDocumentMatchesTheServer(t *testing.T) {
	a := startAPI(t)
	const nobody = "zz-none-such-zz"
	compared := 0
	compare := func(what, message string, declared []string) {
		_, list, ok := strings.Cut(message, "Use one of ")
		if !ok && !(len(declared) == 0 && strings.Contains(message, "has no parameters")) {
			t.Errorf("%s: %.200s", what, message)
			return
		}
		known := []string{}
		for _, m := range quotedNames.FindAllStringSubmatch(list, -1) {
			known = append(known, m[1])
		}
		slices.Sort(known)
		slices.Sort(declared)
		if !slices.Equal(known, declared) {
			t.Errorf("%s has %v, the document has %v", what, known, declared)
		}
		compared++
	}
	for i := range a.operations {
		o := &a.operations[i]
		name := o.method + " " + o.path
		var query []string
		for _, p := range o.parameters {
			if p.In == "query" {
				query = append(query, p.Name)
			}
		}
		if len(query) > 0 && !o.loose {
			_, b := a.send(t, o.method, o.fill()+"?"+nobody+"=1", []byte("{}"), "Content-Type", "application/json")
			compare(name, a.message(b), query)
		}
		if name == "PATCH /indexes/{index_uid}/documents" {
			continue // its task refuses invalid operations one by one
		}
		schema := o.jsonSchema()
		if schema == nil || strings.Contains(o.path, "/settings") && strings.HasPrefix(o.path, "/indexes") {
			continue // settings are compared in their own test
		}
		send := func(v any) []byte {
			body, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			_, b := a.send(t, o.method, o.fill(), body, "Content-Type", "application/json")
			return b
		}
		a.walk(schema, func(v any) any { return v }, func(s map[string]any, place func(any) any) {
			properties, _ := s["properties"].(map[string]any)
			if s["additionalProperties"] == false && !twoForms[name] {
				compare(name, a.message(send(place(map[string]any{nobody: nil}))), slices.Collect(maps.Keys(properties)))
			}
			for member, of := range properties {
				of := of.(map[string]any)
				if unlike[name+" "+member] {
					continue
				}
				for _, wrong := range []any{true, "\u00e9\u0000 no", -7, 0.5, []any{[]any{-1.5}}, map[string]any{nobody: []any{}}} {
					if of["not"] == nil && a.fits(of, wrong) == "" {
						continue
					}
					b := send(place(map[string]any{member: wrong}))
					var e struct{ Code, Link string }
					if json.Unmarshal(b, &e) != nil || e.Code == "" {
						t.Errorf("%s accepts %v for %s: %.100s", name, wrong, member, b)
					}
					if want, _ := of["x-error-code"].(string); want != "" && e.Code != want && !strings.HasPrefix(e.Code, strings.TrimSuffix(want, "_query")) && e.Code != "bad_request" {
						t.Errorf("%s answers %v for %s with %s, want %s", name, wrong, member, e.Code, want)
					}
				}
			}
		})
	}
	if compared < 60 {
		t.Errorf("only %d tables were compared", compared)
	}
}

func (a *api) message(b []byte) string {
	var e struct{ Message string }
	if json.Unmarshal(b, &e) != nil {
		return string(b)
	}
	return e.Message
}

// jsonSchema returns the schema of the JSON body of the operation, or nil.
func (o *apiOperation) jsonSchema() map[string]any {
	content, _ := o.body["application/json"].(map[string]any)
	schema, _ := content["schema"].(map[string]any)
	return schema
}

// walk calls see for each object in a schema. place puts a value in the position of that object in a body.
func (a *api) walk(s map[string]any, place func(any) any, see func(map[string]any, func(any) any)) {
	if alternatives, ok := s["anyOf"].([]any); ok {
		for _, alternative := range alternatives {
			a.walk(alternative.(map[string]any), place, see)
		}
		return
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		see(s, place)
		for name, of := range properties {
			if name != "settings" {
				a.walk(of.(map[string]any), func(v any) any { return place(map[string]any{name: v}) }, see)
			}
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		a.walk(items, func(v any) any { return place([]any{v}) }, see)
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		a.walk(values, func(v any) any { return place(map[string]any{"some": v}) }, see)
	}
}

// fits describes the part of a value that the schema refuses, or returns "". It ignores patterns and formats.
func (a *api) fits(s map[string]any, v any) string {
	if ref, ok := s["$ref"].(string); ok {
		s = a.schemas[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any)
	}
	if s["not"] != nil {
		return "nothing fits"
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		why := ""
		for _, alternative := range alternatives {
			if why = a.fits(alternative.(map[string]any), v); why == "" {
				break
			}
		}
		if why != "" {
			return why
		}
	}
	if types := typesOf(s); len(types) > 0 && !slices.ContainsFunc(types, func(name string) bool { return isType(v, name) }) {
		return fmt.Sprintf("%v is none of %v", v, types)
	}
	if values, ok := s["enum"].([]any); ok && !slices.Contains(values, v) {
		return fmt.Sprintf("%v is none of %v", v, values)
	}
	if want, ok := s["const"]; ok && v != want {
		return fmt.Sprintf("%v is not %v", v, want)
	}
	switch v := v.(type) {
	case int:
		return a.fits(s, float64(v))
	case float64:
		if least, ok := s["minimum"].(float64); ok && v < least {
			return fmt.Sprint(v, " is less than ", least)
		}
		if most, ok := s["maximum"].(float64); ok && v > most {
			return fmt.Sprint(v, " is more than ", most)
		}
	case []any:
		if items, ok := s["items"].(map[string]any); ok {
			for _, e := range v {
				if why := a.fits(items, e); why != "" {
					return why
				}
			}
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, of := range v {
			if p, ok := properties[name].(map[string]any); ok {
				if why := a.fits(p, of); why != "" {
					return name + ": " + why
				}
			} else if s["additionalProperties"] == false {
				return name + " is not declared"
			} else if values, ok := s["additionalProperties"].(map[string]any); ok {
				if why := a.fits(values, of); why != "" {
					return name + ": " + why
				}
			}
		}
		needed, _ := s["required"].([]any)
		for _, name := range needed {
			if _, ok := v[name.(string)]; !ok {
				return name.(string) + " is missing"
			}
		}
	}
	return ""
}

func typesOf(s map[string]any) []string {
	switch types := s["type"].(type) {
	case string:
		return []string{types}
	case []any:
		names := []string{}
		for _, name := range types {
			names = append(names, name.(string))
		}
		return names
	}
	return nil
}

func isType(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case int:
		return name == "integer" || name == "number"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// generator generates values for schemas, often at their bounds, and makes some of them invalid.
type generator struct {
	*rand.Rand
	api   *api
	spoil float64 // probability of a value of another type
}

var (
	someTexts   = []string{"", "metropolis", "year", "year > 1900", "year:asc", "m", "films", "*", "1", "é", "\u0000", "{{doc.title}}", `" OR "`, "_geoRadius(1,2,3)", strings.Repeat("x", 2000)}
	someNumbers = []any{0, 1, -1, 2, 20, 0.5, 1.5, 255, 256, 1<<31 - 1, 1 << 32, 1e18, 1e300, math.Copysign(0, -1)}
	someNames   = []string{"films", "none", "a", "year", "m", "default", "é", ""}
)

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

func (g *generator) value(s map[string]any, depth int) any {
	if g.Float64() < g.spoil {
		return g.anything(depth)
	}
	if s["not"] != nil {
		return g.anything(depth)
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		return g.value(pick(g, alternatives).(map[string]any), depth)
	}
	if values, ok := s["enum"].([]any); ok {
		return pick(g, values)
	}
	if v, ok := s["const"]; ok {
		return v
	}
	types := typesOf(s)
	if len(types) == 0 {
		return g.anything(depth)
	}
	switch pick(g, types) {
	case "null":
		return nil
	case "boolean":
		return g.IntN(2) == 0
	case "string":
		switch s["format"] {
		case "uuid":
			return fmt.Sprintf("%08x-0000-4000-8000-%012x", g.Uint32(), g.Uint32())
		case "uri":
			return pick(g, []string{"http://127.0.0.1:9/x", "http://127.0.0.1:9", "https://127.0.0.1:9/é"})
		}
		if s["pattern"] != nil {
			return pick(g, []string{"films", "films", "none", "a", "A-_9", strings.Repeat("u", 400)})
		}
		return pick(g, someTexts)
	case "integer", "number":
		bounds := []any{}
		for _, key := range []string{"minimum", "maximum"} {
			if edge, ok := s[key].(float64); ok {
				bounds = append(bounds, edge, edge+1, edge-1)
			}
		}
		if len(bounds) > 0 && g.IntN(3) > 0 {
			return pick(g, bounds)
		}
		return pick(g, someNumbers)
	case "array":
		items, _ := s["items"].(map[string]any)
		list := make([]any, pick(g, []int{0, 1, 2, 3, 3, 30}))
		if least, ok := s["minItems"].(float64); ok && g.IntN(4) > 0 {
			list = make([]any, int(least))
		}
		if depth > 4 {
			list = list[:min(len(list), 1)]
		}
		for i := range list {
			list[i] = g.value(items, depth+1)
		}
		return list
	}
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	needed, _ := s["required"].([]any)
	for _, name := range needed {
		if g.IntN(10) > 0 {
			object[name.(string)] = g.value(properties[name.(string)].(map[string]any), depth+1)
		}
	}
	names := slices.Sorted(maps.Keys(properties))
	for range g.IntN(4) {
		if len(names) > 0 && depth < 5 {
			name := pick(g, names)
			object[name] = g.value(properties[name].(map[string]any), depth+1)
		}
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok && depth < 5 {
		for range g.IntN(3) {
			object[pick(g, someNames)] = g.value(values, depth+1)
		}
	}
	if len(names) == 0 && s["additionalProperties"] == nil && depth < 5 {
		for range g.IntN(3) {
			object[pick(g, someNames)] = g.anything(depth + 1)
		}
	}
	return object
}

func (g *generator) anything(depth int) any {
	switch n := g.IntN(7); {
	case n == 0:
		return nil
	case n == 1:
		return g.IntN(2) == 0
	case n == 2:
		return pick(g, someNumbers)
	case n < 5 || depth > 4:
		return pick(g, someTexts)
	case n == 5:
		return []any{g.anything(depth + 1)}
	}
	return map[string]any{pick(g, someNames): g.anything(depth + 1)}
}

// text formats a value for a path or a query string.
func (g *generator) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		pieces := make([]string, len(v))
		for i, e := range v {
			pieces[i] = g.text(e)
		}
		return strings.Join(pieces, ",")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// TestRandomRequestsOfTheDocument sends requests that the document allows, and some that it does not. No answer may have an undeclared
// status or a server error, and every body must have the documented form.
func TestRandomRequestsOfTheDocument(t *testing.T) {
	a := startAPI(t)
	g := &generator{Rand: rand.New(rand.NewPCG(*apiSeed, 16)), api: a}
	until := time.Now().Add(*apiTime)
	statuses, made := map[int]int{}, 0
	for ; made < *apiRequests && time.Now().Before(until); made++ {
		g.spoil = pick(g, []float64{0, 0, 0.05, 0.5})
		o := &a.operations[made%len(a.operations)]
		if g.IntN(3) == 0 {
			o = &a.operations[g.IntN(len(a.operations))]
		}
		path, query := o.path, url.Values{}
		for _, p := range o.parameters {
			switch {
			case p.In == "path":
				text := g.text(g.value(p.Schema, 0))
				if g.IntN(3) > 0 || text == "" { // an empty value would change the path
					text = strings.TrimPrefix((&apiOperation{path: "{" + p.Name + "}"}).fill(), "{")
				}
				path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
			case g.IntN(4) == 0:
				query.Set(p.Name, g.text(g.value(p.Schema, 0)))
			}
		}
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		var body []byte
		headers := []string{}
		if o.body != nil {
			kind := pick(g, slices.Sorted(maps.Keys(o.body)))
			v := g.value(o.body[kind].(map[string]any)["schema"].(map[string]any), 0)
			if o.path == "/network" {
				if object, ok := v.(map[string]any); ok {
					delete(object, "remotes") // remotes would get every later write
				}
			}
			var err error
			if body, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
			if g.IntN(20) == 0 {
				body = body[:g.IntN(len(body))]
			}
			if g.IntN(20) > 0 {
				headers = append(headers, "Content-Type", kind)
			}
		}
		if g.IntN(30) == 0 {
			headers = append(headers, "Authorization", pick(g, []string{"Bearer wrong", "Basic x", "Bearer ", ""}))
		}
		status, answer := a.send(t, o.method, path, body, headers...)
		statuses[status]++
		what := fmt.Sprintf("request %d of seed %d: %s %.200s %.500s: %d %.300s", made, *apiSeed, o.method, path, body, status, answer)
		declared, ok := o.responses[strconv.Itoa(status)].(map[string]any)
		if !ok {
			t.Errorf("undeclared: %s", what)
			continue
		}
		if status >= 500 && status != http.StatusNotImplemented && status != http.StatusBadGateway &&
			!bytes.Contains(answer, []byte(`"import_task_without_network_task"`)) { // which tells an instance to ask again
			t.Errorf("server error: %s", what)
		}
		a.checkAnswer(t, what, status, declared, answer)
		if made%97 == 0 {
			a.prepare(t)
		}
	}
	t.Logf("%d requests, answered %v", made, statuses)
	if made > 1000 && (statuses[200] < made/20 || statuses[202] < made/50 || statuses[400] < made/20) {
		t.Errorf("all requests have one kind of answer: %v", statuses)
	}
	if status, b := a.send(t, "GET", "/health", nil); status != 200 || !bytes.Contains(b, []byte("available")) {
		t.Errorf("afterwards: %d %s", status, b)
	}
}

// checkAnswer checks a JSON answer against the document.
func (a *api) checkAnswer(t *testing.T, what string, status int, declared map[string]any, answer []byte) {
	t.Helper()
	schema := map[string]any{"$ref": "#/components/schemas/Error"}
	if status < 400 {
		content, _ := declared["content"].(map[string]any)
		json, _ := content["application/json"].(map[string]any)
		schema, _ = json["schema"].(map[string]any)
	}
	if schema == nil || len(answer) == 0 {
		return
	}
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Errorf("not JSON: %s: %v", what, err)
		return
	}
	if why := a.fits(schema, v); why != "" {
		t.Errorf("wrong form: %s: %s", what, why)
	}
}
