package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// plainMembers splits an object with encoding/json alone.
func plainMembers(v value) (members []member, err error) {
	d := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		members = append(members, member{t.(string), value{raw, v.path + "." + t.(string), v.code}})
	}
	return members, nil
}

// FuzzMembers compares members with a slow reference: names in the same order, repeated names included, with the same bytes as values.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2,"b":{"c":[1,{"d":null}]}}`, `{"":"","\u0061":"\u0000","\ud83d\ude00":1}`, `{"\ud800":1,"a\udc00b":"\ud800"}`, "{\"\u2028\x7f\":\"\ufffd\"}",
		`{"n":[-0,1e999,0.1e-400,123456789012345678901234567890]}`, `{"a\"b\\":"\"{[,:"}`, ` { "a" : [ 1 , 2 ] , "b" : true } `,
		`{"deep":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`, `{"synonyms":{"a":["b","c"],"é":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := parse(body, "bad_request")
		if err != nil || v.raw[0] != '{' || deeper(v.raw, 500) { // requests are not nested deeper
			return
		}
		want, err := plainMembers(v)
		if err != nil {
			t.Fatalf("%s: %v", v.raw, err)
		}
		got, err := v.members()
		if err != nil || !slices.EqualFunc(got, want, func(a, b member) bool { return a.key == b.key && a.path == b.path && bytes.Equal(a.raw, b.raw) }) {
			t.Fatalf("%s is split into %q, want %q (%v)", v.raw, got, want, err)
		}
	})
}

// deeper reports whether compact JSON may be nested deeper than a limit.
func deeper(b []byte, limit int) bool {
	return bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > limit
}

// BenchmarkMembers splits a large synonyms object.
func BenchmarkMembers(b *testing.B) {
	var body bytes.Buffer
	for i := range 20000 {
		body.WriteString(",\"word" + strings.Repeat("x", i%10) + string(rune('a'+i%26)) + "\":[\"one\",\"other\"]")
	}
	v, err := parse(append([]byte("{"+body.String()[1:]), '}'), "bad_request")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if members, err := v.members(); err != nil || len(members) != 20000 {
			b.Fatal(len(members), err)
		}
	}
}
