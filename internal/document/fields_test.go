package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
)

func TestFields(t *testing.T) {
	var got []string
	add := func(name, value []byte) error {
		got = append(got, string(name)+"="+string(value))
		return nil
	}
	doc := `{"a":1,"b c":"x,}\"","\u00e9\n":[{"z":"]"},2],"":null,"d":{"e":{}}}`
	want := []string{"a=1", `b c="x,}\""`, "é\n=" + `[{"z":"]"},2]`, "=null", `d={"e":{}}`}
	if err := Fields([]byte(doc), add); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if err := Fields([]byte(doc), func(_, _ []byte) error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want io.EOF", err)
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":"x}`, `{"a":[}`, `{,"a":1}`, `{"a":1"b":2}`, `{"a":1}}`} {
		if err := Fields([]byte(bad), func(_, _ []byte) error { return nil }); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestElements(t *testing.T) {
	for array, want := range map[string]string{
		`[]`: ``, `[1]`: `1`, `[1,-2.5e3,null,true]`: `1;-2.5e3;null;true`, `[[1,[2]],{"a":[3]},"],"]`: `[1,[2]];{"a":[3]};"],"`,
	} {
		var got []string
		err := Elements([]byte(array), func(v []byte) error { got = append(got, string(v)); return nil })
		if err != nil || strings.Join(got, ";") != want {
			t.Errorf("%s: got %q, %v; want %s", array, got, err, want)
		}
	}
	if err := Elements([]byte(`[1,2]`), func([]byte) error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want io.EOF", err)
	}
	for _, bad := range []string{``, `[`, `{}`, `3`, `[,]`, `[1,]`, `[,1]`, `[1`, `[[1]`, `["]`, `["a"1]`, `[1]]`} {
		if err := Elements([]byte(bad), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestMerge(t *testing.T) {
	tests := []struct{ old, change, want string }{
		{`{}`, `{}`, `{}`},
		{`{"id":1}`, `{}`, `{"id":1}`},
		{`{}`, `{"id":1}`, `{"id":1}`},
		{`{"id":1,"name":"delta","span":210}`, `{"id":1,"colour":"blue"}`, `{"id":1,"name":"delta","span":210,"colour":"blue"}`},
		{`{"id":1,"span":210,"x":2}`, `{"y":0,"span":[1,2],"id":1}`, `{"id":1,"span":[1,2],"x":2,"y":0}`},
		{`{"hull":{"length":9,"top":1}}`, `{"hull":{"length":10},"hull.length":12}`, `{"hull":{"length":10},"hull.length":12}`},
		{`{"caf\u00e9":1,"b":2}`, `{"café":3}`, `{"caf\u00e9":3,"b":2}`},
	}
	for _, test := range tests {
		if got, err := AppendMerge(nil, []byte(test.old), []byte(test.change)); err != nil || string(got) != test.want {
			t.Errorf("%s + %s: got %s, %v; want %s", test.old, test.change, got, err, test.want)
		}
	}
	for _, bad := range []string{``, `5`, `{"a":`, `{"a":1]}`} {
		if _, err := AppendMerge(nil, []byte(bad), []byte(`{}`)); err == nil {
			t.Errorf("old %q: no error", bad)
		}
		if _, err := AppendMerge(nil, []byte(`{}`), []byte(bad)); err == nil {
			t.Errorf("change %q: no error", bad)
		}
	}
}

// TestMergeTwin compares AppendMerge with merging maps.
func TestMergeTwin(t *testing.T) {
	g := newGenerator(t, false)
	doc := func() []byte {
		var b strings.Builder
		fields := g.IntN(30)
		for range fields {
			key, _ := json.Marshal(fmt.Sprint("k", g.IntN(40)))
			fmt.Fprintf(&b, ",%s:%s", key, g.value(2))
		}
		line, _, err := convert(t, JSON, 0, "{"+strings.TrimPrefix(b.String(), ",")+"}")
		if err != nil {
			t.Fatal(err)
		}
		return []byte(strings.TrimSuffix(line, "\n"))
	}
	for range 1000 {
		old, change := doc(), doc()
		const before = "before"
		got, err := AppendMerge([]byte(before), old, change)
		if err != nil || string(got[:len(before)]) != before {
			t.Fatalf("%s: %v", got, err)
		}
		got = got[len(before):]
		checkDocument(t, string(got)+"\n")
		var want map[string]any
		for _, d := range [][]byte{old, change} {
			if err := json.Unmarshal(d, &want); err != nil {
				t.Fatal(err)
			}
		}
		if !equalJSON(t, got, want) {
			t.Fatalf("%s + %s = %s, want %v", old, change, got, want)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1]}}`), []byte(`{"b":2,"\u0061":"x"}`))
	f.Fuzz(func(t *testing.T, old, change []byte) {
		got, err := AppendMerge(nil, old, change)
		if err != nil {
			return
		}
		valid := func(doc []byte) bool {
			var out strings.Builder
			n, err := Convert(&out, strings.NewReader(string(doc)), NDJSON, 0)
			return err == nil && n == 1 && out.String() == string(doc)+"\n"
		}
		if valid(old) && valid(change) && !valid(got) {
			t.Fatalf("%s + %s = %s", old, change, got)
		}
	})
}

func TestExternalID(t *testing.T) {
	long := strings.Repeat("x", MaxIDBytes)
	tests := []struct {
		doc, key, want string
		code           apierr.Code
	}{
		{`{"id":0}`, "id", "0", ""},
		{`{"a":{"id":5},"id":-3}`, "id", "-3", ""},
		{`{"id":18446744073709551615}`, "id", "18446744073709551615", ""},
		{`{"id":-9223372036854775808}`, "id", "-9223372036854775808", ""},
		{`{"id":18446744073709551616}`, "id", "", "invalid_document_id"},
		{`{"id":-9223372036854775809}`, "id", "", "invalid_document_id"},
		{`{"id":"8"}`, "id", "8", ""},
		{`{"id":"00012"}`, "id", "00012", ""},
		{`{"id":"A-Z_9"}`, "id", "A-Z_9", ""},
		{`{"id":"\u0061b"}`, "id", "ab", ""},
		{`{"\u0069d":1}`, "id", "1", ""},
		{`{"id":"` + long + `"}`, "id", long, ""},
		{`{"id":"` + long + `x"}`, "id", "", "invalid_document_id"},
		{`{"id":""}`, "id", "", "invalid_document_id"},
		{`{"id":" "}`, "id", "", "invalid_document_id"},
		{`{"id":"a b"}`, "id", "", "invalid_document_id"},
		{`{"id":"a.b"}`, "id", "", "invalid_document_id"},
		{`{"id":"é"}`, "id", "", "invalid_document_id"},
		{`{"id":"a/b"}`, "id", "", "invalid_document_id"},
		{`{"id":1.5}`, "id", "", "invalid_document_id"},
		{`{"id":1.0}`, "id", "", "invalid_document_id"},
		{`{"id":1e3}`, "id", "", "invalid_document_id"},
		{`{"id":-0}`, "id", "", "invalid_document_id"},
		{`{"id":true}`, "id", "", "invalid_document_id"},
		{`{"id":null}`, "id", "", "invalid_document_id"},
		{`{"id":[]}`, "id", "", "invalid_document_id"},
		{`{"id":[1]}`, "id", "", "invalid_document_id"},
		{`{"id":{"a":1}}`, "id", "", "invalid_document_id"},
		{`{}`, "id", "", "missing_document_id"},
		{`{"ID":4}`, "id", "", "missing_document_id"},
		{`{"meta":{"key":"k1"}}`, "meta.key", "k1", ""},
		{`{"meta.key":"k2"}`, "meta.key", "k2", ""},
		{`{"a":{"b.c":{"d":7}}}`, "a.b.c.d", "7", ""},
		{`{"meta":{"other":1}}`, "meta.key", "", "missing_document_id"},
		{`{"meta":5}`, "meta.key", "", "missing_document_id"},
		{`{"meta":[{"key":1}]}`, "meta.key", "", "missing_document_id"},
		{`{"meta":{"key":"k9"},"meta.key":"k8"}`, "meta.key", "", "invalid_document_id"},
		{`{"meta":{"key":["a"]}}`, "meta.key", "", "invalid_document_id"},
	}
	for _, test := range tests {
		got, err := ExternalID([]byte(test.doc), test.key)
		if test.code != "" {
			if apierr.From(err).Code != test.code {
				t.Errorf("%.60s: error %v, want %s", test.doc, err, test.code)
			}
		} else if err != nil || string(got) != test.want {
			t.Errorf("%.60s: %q, %v; want %q", test.doc, got, err, test.want)
		}
	}
	if _, err := ExternalID([]byte(`{"a":`), "id"); err == nil {
		t.Error("a damaged document has an id")
	}
}

// TestLookupStops compares values at paths with those that Fields finds, and checks that only paths with a dot read the whole document.
func TestLookupStops(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 3))
	found := 0
	for range 300 {
		var b strings.Builder
		for i, n := range rng.Perm(8)[:1+rng.IntN(8)] {
			fmt.Fprintf(&b, `%c"k%d":%s`, "{,"[min(i, 1)], n, []string{`1`, `"k1"`, `[2,{"k2":5}]`, `{"k3":7}`}[rng.IntN(4)])
		}
		doc := []byte(b.String() + "}")
		key := fmt.Sprintf("k%d", rng.IntN(8))
		var want []byte
		if err := Fields(doc, func(name, value []byte) error {
			if string(name) == key {
				want = value
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		value, n, err := lookup(doc, key)
		if string(value) != string(want) || (n > 0) != (want != nil) || n > 1 || err != nil {
			t.Fatalf("%s: %s is %q (%d, %v), want %q", doc, key, value, n, err, want)
		}
		if n > 0 {
			found++
		}
	}
	if found < 50 {
		t.Errorf("%d keys were found", found)
	}
	damaged := []byte(`{"id":1,"a.b":2,"c":}`)
	if value, _, err := lookup(damaged, "id"); string(value) != "1" || err != nil {
		t.Errorf("id is %q (%v)", value, err)
	}
	if _, _, err := lookup(damaged, "a.b"); err == nil {
		t.Error("a path with a dot does not read the whole document")
	}
}

func TestInferPrimaryKey(t *testing.T) {
	tests := []struct {
		doc, want string
		code      apierr.Code
	}{
		{`{"id":1,"name":"x"}`, "id", ""},
		{`{"bookId":"b1","name":"x"}`, "bookId", ""},
		{`{"PID":3}`, "PID", ""},
		{`{"user_id":4,"identity":2}`, "user_id", ""},
		{`{"valid":1}`, "valid", ""},
		{`{"name":"x","a":{"id":1}}`, "", "index_primary_key_no_candidate_found"},
		{`{}`, "", "index_primary_key_no_candidate_found"},
		{`{"id":1,"doc_id":2}`, "", "index_primary_key_multiple_candidates_found"},
		{`{"uuid":"u","sid":"s","x":1}`, "", "index_primary_key_multiple_candidates_found"},
	}
	for _, test := range tests {
		got, err := InferPrimaryKey([]byte(test.doc))
		if got != test.want || test.code != "" && apierr.From(err).Code != test.code || test.code == "" && err != nil {
			t.Errorf("%s: %q, %v; want %q, %s", test.doc, got, err, test.want, test.code)
		}
	}
}
