package fastapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// situation is a small index with requests and expected results. Each file of testdata/situations covers a fault that users of search
// engines reported, and similar cases: other operators, routes, languages and kinds of search.
type situation struct {
	About     string
	Settings  json.RawMessage
	Documents json.RawMessage
	Steps     [][]json.RawMessage // method, path, body; {i} is the index
	Checks    []struct {
		Request  []json.RawMessage
		IDs, Set []any
		Count    *int
		Get      []any // a path of members and indexes separated by dots, and its value; null: missing
	}
}

func TestSituations(t *testing.T) {
	files, err := filepath.Glob("testdata/situations/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d situations: %v", len(files), err)
	}
	o := Options{}
	openInstance(t, &o)
	c := newClient(t, o)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s situation
			if err := readNumbers(raw, &s); err != nil {
				t.Fatal(err)
			}
			own := *c
			own.t = t
			s.check(&own)
		})
	}
}

func (s *situation) check(c *client) {
	succeed := func(r reply) {
		c.t.Helper()
		if body := c.settled(r); r.status >= 300 || strings.Contains(body, `"status":"failed"`) {
			c.t.Fatalf("%d %s", r.status, body)
		}
	}
	c.settled(c.send("DELETE", "/indexes/case", nil))
	succeed(c.json("POST", "/indexes", `{"uid": "case", "primaryKey": "id"}`))
	if s.Settings != nil {
		succeed(c.json("PATCH", "/indexes/case/settings", string(s.Settings)))
	}
	if s.Documents != nil {
		succeed(c.json("POST", "/indexes/case/documents", string(s.Documents)))
	}
	for _, step := range s.Steps {
		succeed(c.ask3(step))
	}
	for _, k := range s.Checks {
		r := c.ask3(k.Request)
		var answer any
		body := c.settled(r)
		if err := readNumbers([]byte(body), &answer); err != nil {
			c.t.Fatalf("%s: %v", r.body, err)
		}
		var got, want any
		switch {
		case k.Get != nil:
			got, want = at(answer, k.Get[0].(string)), k.Get[1]
		case k.Count != nil:
			got, want = cmp.Or(at(answer, "totalHits"), at(answer, "estimatedTotalHits")), json.Number(strconv.Itoa(*k.Count))
		default:
			want = k.IDs
			ids, ok := idsOf(answer)
			if k.IDs == nil {
				want = byText(k.Set)
				ids = byText(ids)
			}
			if got = any(ids); !ok {
				got = body
			}
		}
		if !reflect.DeepEqual(exact(got), exact(want)) {
			c.t.Errorf("%s\n got %v\nwant %v", k.Request, got, want)
		}
	}
}

// ask3 sends a request given as method, path and optional body.
func (c *client) ask3(request []json.RawMessage) reply {
	c.t.Helper()
	var method, path string
	if err := json.Unmarshal(request[0], &method); err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(request[1], &path); err != nil {
		c.t.Fatal(err)
	}
	path = strings.ReplaceAll(path, "{i}", "case")
	if len(request) == 2 {
		return c.send(method, path, nil)
	}
	return c.json(method, path, string(request[2]))
}

// settled returns the body of a reply, or its task once that has ended.
func (c *client) settled(r reply) string {
	if r.status == 202 {
		return c.wait(r)
	}
	return r.body
}

// readNumbers decodes JSON and keeps numbers as written.
func readNumbers(raw []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return d.Decode(into)
}

// exact converts the numbers of a value to fractions, however they are written.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if x, ok := new(big.Rat).SetString(v.String()); ok {
			return "#" + x.RatString()
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = exact(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, x := range v {
			out[key] = exact(x)
		}
		return out
	}
	return v
}

// at returns the value at a path, or nil. Names of members may have dots.
func at(v any, path string) any {
	switch v := v.(type) {
	case []any:
		index, rest, more := strings.Cut(path, ".")
		i, err := strconv.Atoi(index)
		switch {
		case err != nil || i >= len(v):
			return nil
		case more:
			return at(v[i], rest)
		}
		return v[i]
	case map[string]any:
		if x, ok := v[path]; ok {
			return x
		}
		for i, b := range []byte(path) {
			if x, ok := v[path[:i]]; ok && b == '.' {
				return at(x, path[i+1:])
			}
		}
	}
	return nil
}

// idsOf returns the ids of the hits or documents of an answer.
func idsOf(answer any) ([]any, bool) {
	list, ok := cmp.Or(at(answer, "hits"), at(answer, "results")).([]any)
	ids := []any{}
	for _, h := range list {
		ids = append(ids, at(h, "id"))
	}
	return ids, ok
}

func byText(list []any) []any {
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}
