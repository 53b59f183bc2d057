package document

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, tt := range []struct{ text, want string }{ // want "!": refused
		{`{"l":[]}`, ""},
		{` { "l" : [ ] , "a" : [ 1 , { } ] } `, `a=[1,{}]`},
		{`{"a":1,"l":[{"m":1},{"x":[{"m":2}],"m":{"n":3},"y":4}],"b":"l"}`, `a=1 b="l" {"m":1} m=1 {"x":[{"m":2}],"m":{"n":3},"y":4} m={"n":3}`},
		{"{\"a\": 1,\n\"l\": [\n{\"m\": 1 , \"k\" : 2}\t]}", `a=1 {"m":1,"k":2} m=1`},
		{"{\"a\":1,\"l\":[{\"m\":1,\"k\":2},{\"m\":3 ,\"k\":4},{ \"k\":5,\"m\":6}], \"b\":7}", `a=1 b=7 {"m":1,"k":2} m=1 {"m":3,"k":4} m=3 {"k":5,"m":6} m=6`},
		{`{"l":[{}]}`, "!"},
		{`{"l":[{"m":1},{"k":1}]}`, "!"},
		{`{"l":[{"m":1},{"k":{"m":1}}]}`, "!"},
		{`{"\u006c":[{"\u006d":1}]}`, `{"\u006d":1} m=1`},
		{`{"l":[{"m":1,"b":` + deep(MaxHitDepth-1) + `}]}`, `{"m":1,"b":` + deep(MaxHitDepth-1) + `} m=1`},
		{`{"l":[{"m":1,"b":` + deep(MaxHitDepth) + `}]}`, "!"},
		{`{"a":1}`, "!"},
		{`{}`, "!"},
		{"", "!"},
		{`[]`, "!"},
		{`{"l":{}}`, "!"},
		{`{"l":[1]}`, "!"},
		{`{"l":[{}`, "!"},
		{`{"l":[{}],}`, "!"},
		{`{"l":[{},]}`, "!"},
		{`{"l":[{"m":1,}]}`, "!"},
		{`{"l":[],"l":[]}`, "!"},
		{`{"l":[{"m":1,"m":2}]}`, "!"},
		{`{"l":[]}x`, "!"},
		{`{"l":[{"m":"` + "\xff" + `"}]}`, "!"},
	} {
		got, err := outlined(t, []byte(tt.text))
		if err != nil {
			got = "!"
		}
		if got != tt.want {
			t.Errorf("%.60q is %.60q, %v, want %.60q", tt.text, got, err, tt.want)
		}
	}
}

// outlined describes what Outline finds, the members beside the list first.
func outlined(t testing.TB, text []byte) (string, error) {
	others := map[string]string{}
	var order []string
	var elements []Element
	compact, err := Outline(text, "l", "m", func(name, value []byte) error {
		if others[string(name)] == "" {
			order = append(order, string(name))
		}
		others[string(name)] = string(value)
		return nil
	}, func(i int, e Element) error {
		if i > len(elements) {
			t.Errorf("element %d comes after %d", i, len(elements))
		}
		if i < len(elements) {
			if before := elements[i]; !bytes.Equal(before.Object, e.Object) || before.Value != e.Value {
				t.Errorf("element %d is %q, later %q", i, before.Object, e.Object)
			}
			return nil
		}
		elements = append(elements, e)
		return nil
	})
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, compact); err != nil || !bytes.Equal(b.Bytes(), compact) {
		t.Errorf("%q is not compact JSON: %v", compact, err)
	}
	var parts []string
	for _, name := range order {
		parts = append(parts, name+"="+others[name])
	}
	for _, e := range elements {
		parts = append(parts, string(e.Object), "m="+string(e.Object[e.Value:e.Ends]))
	}
	return strings.Join(parts, " "), nil
}

// FuzzOutline compares Outline with encoding/json.
func FuzzOutline(f *testing.F) {
	f.Add([]byte(`{"l":[{"m":1},{"a":{"m":2}}],"b":[{"m":3}]}`))
	f.Add([]byte(" {\"a\": 1,\n\"l\": [ {\"m\": 1 } ]}"))
	f.Add([]byte(`{"l":[{"m":1,"m":2}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		elements := 0
		_, err := Outline(bytes.Clone(text), "l", "m", func(_, value []byte) error {
			if !json.Valid(value) {
				t.Errorf("the member %q is not JSON", value)
			}
			return nil
		}, func(i int, e Element) error {
			if !json.Valid(e.Object) || !json.Valid(e.Object[e.Value:e.Ends]) || e.Object[e.Member] != '"' {
				t.Errorf("the element %q is not JSON", e.Object)
			}
			elements = max(elements, i+1)
			return nil
		})
		if err != nil {
			return
		}
		var want struct {
			L []struct{ M json.RawMessage }
		}
		if err := json.Unmarshal(text, &want); err != nil {
			if json.Valid(text) {
				return // names that differ only in case
			}
			t.Fatalf("%q is accepted: %v", text, err)
		}
		if !bytes.ContainsAny(text, "LM") && elements != len(want.L) {
			t.Errorf("%q has %d objects, want %d", text, elements, len(want.L))
		}
	})
}
