package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestOperations applies one operation to one document.
func TestOperations(t *testing.T) {
	deep := strings.Repeat("a.", MaxDepth-1) + "a"
	for _, tt := range []struct{ doc, op, want string }{
		{`{"id":1}`, `{"id":1,"set":{"a":2}}`, `{"id":1,"a":2}`},
		{`{"id":1,"a":1}`, `{"id":1,"set":{"a":2}}`, `{"id":1,"a":2}`},
		{`{"id":1,"a":{"b":1}}`, `{"id":1,"set":{"a.b":[{"x":null}]}}`, `{"id":1,"a":{"b":[{"x":null}]}}`},
		{`{"id":1}`, `{"id":1,"set":{"a.b.c":2,"a.d":3}}`, `{"id":1,"a":{"b":{"c":2},"d":3}}`},
		{`{"id":1,"a":{}}`, `{"id":1,"set":{"a.b":2}}`, `{"id":1,"a":{"b":2}}`},
		{`{"id":1,"a.b":1,"a":{"b":1}}`, `{"id":1,"set":{"a.b":2}}`, `{"id":1,"a.b":2,"a":{"b":1}}`},
		{`{"id":1,"a":{"b":1},"a.b":1}`, `{"id":1,"set":{"a.b":2}}`, `{"id":1,"a":{"b":1},"a.b":2}`},
		{`{"id":1,"a":{"b":1},"a.b":{}}`, `{"id":1,"set":{"a.b.c":2}}`, `inapplicable_document_operation`},
		{`{"id":1,"a":{"d":1},"a.b":{"c":1}}`, `{"id":1,"set":{"a.b.c":2}}`, `{"id":1,"a":{"d":1},"a.b":{"c":2}}`},
		{`{"id":1,"\u0061":{"\u0062":1}}`, `{"id":1,"set":{"a.b":2}}`, `{"id":1,"\u0061":{"\u0062":2}}`},
		{`{"id":1}`, `{"id":1,"set":{"é\"x":2}}`, `{"id":1,"é\"x":2}`},
		{`{"id":1,"a":3}`, `{"id":1,"set":{"a.b":2}}`, `inapplicable_document_operation`},
		{`{"id":1,"a":[{"b":1}]}`, `{"id":1,"set":{"a.b":2}}`, `inapplicable_document_operation`},
		{`{"id":1,"a":null}`, `{"id":1,"set":{"a.b":2}}`, `inapplicable_document_operation`},
		{`{"id":1,"a":1,"b":2,"c":3}`, `{"id":1,"unset":["b","x","a.y"]}`, `{"id":1,"a":1,"c":3}`},
		{`{"id":1,"a":1}`, `{"id":1,"unset":["a"]}`, `{"id":1}`},
		{`{"a":1,"id":1}`, `{"id":1,"unset":["a"]}`, `{"id":1}`},
		{`{"id":1,"a":{"b":1}}`, `{"id":1,"unset":["a.b"]}`, `{"id":1,"a":{}}`},
		{`{"id":1}`, `{"id":1,"increment":{"n":2}}`, `{"id":1,"n":2}`},
		{`{"id":1,"n":null}`, `{"id":1,"increment":{"n":2}}`, `{"id":1,"n":2}`},
		{`{"id":1,"n":5}`, `{"id":1,"increment":{"n":-7}}`, `{"id":1,"n":-2}`},
		{`{"id":1,"n":0.5}`, `{"id":1,"increment":{"n":1}}`, `{"id":1,"n":1.5}`},
		{`{"id":1,"n":1.5}`, `{"id":1,"increment":{"n":0.5}}`, `{"id":1,"n":2.0}`},
		{`{"id":1,"n":9223372036854775807}`, `{"id":1,"increment":{"n":1}}`, `{"id":1,"n":9223372036854775808}`},
		{`{"id":1,"n":18446744073709551615}`, `{"id":1,"increment":{"n":-1}}`, `{"id":1,"n":18446744073709551614}`},
		{`{"id":1,"n":18446744073709551615}`, `{"id":1,"increment":{"n":1}}`, `inapplicable_document_operation`},
		{`{"id":1,"n":-9223372036854775808}`, `{"id":1,"increment":{"n":-1}}`, `inapplicable_document_operation`},
		{`{"id":1,"n":1e308}`, `{"id":1,"increment":{"n":1e308}}`, `inapplicable_document_operation`},
		{`{"id":1,"n":"5"}`, `{"id":1,"increment":{"n":1}}`, `inapplicable_document_operation`},
		{`{"id":1}`, `{"id":1,"increment":{"n":"1"}}`, `invalid_document_operation`},
		{`{"id":1,"t":["a"]}`, `{"id":1,"append":{"t":["b","a"]}}`, `{"id":1,"t":["a","b","a"]}`},
		{`{"id":1,"t":[]}`, `{"id":1,"append":{"t":{"x":1}}}`, `{"id":1,"t":[{"x":1}]}`},
		{`{"id":1}`, `{"id":1,"append":{"o.t":"b"}}`, `{"id":1,"o":{"t":["b"]}}`},
		{`{"id":1,"t":null}`, `{"id":1,"append":{"t":"b"}}`, `{"id":1,"t":["b"]}`},
		{`{"id":1,"t":"a"}`, `{"id":1,"append":{"t":"b"}}`, `inapplicable_document_operation`},
		{`{"id":1,"t":["a",1]}`, `{"id":1,"addToSet":{"t":["b","a",1.0,"b",{"x":1,"y":2},{"y":2,"x":1}]}}`, `{"id":1,"t":["a",1,"b",{"x":1,"y":2}]}`},
		{`{"id":1}`, `{"id":1,"addToSet":{"t":["b","\u0062"]}}`, `{"id":1,"t":["b"]}`},
		{`{"id":1,"t":["a","b","a"]}`, `{"id":1,"remove":{"t":["a","c"]}}`, `{"id":1,"t":["b"]}`},
		{`{"id":1,"t":["a"]}`, `{"id":1,"remove":{"t":"a"}}`, `{"id":1,"t":[]}`},
		{`{"id":1,"t":null}`, `{"id":1,"remove":{"t":"a","x":"y"}}`, `{"id":1,"t":null}`},
		{`{"id":1,"t":4}`, `{"id":1,"remove":{"t":4}}`, `inapplicable_document_operation`},
		// Verbs run in their own order, not in that of the members.
		{`{"id":1,"a":9}`, `{"id":1,"increment":{"a":1},"set":{"a":2}}`, `{"id":1,"a":3}`},
		{`{"id":1,"a":9}`, `{"id":1,"increment":{"a":1},"unset":["a"]}`, `{"id":1,"a":1}`},
		{`{"id":1}`, `{"id":1,"sets":{"a":2}}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"set":[]}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"set":{"":1}}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"set":{"a..b":1}}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"unset":{"a":1}}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"unset":[1]}`, `invalid_document_operation`},
		{`{"id":1}`, `{"id":1,"ifMissing":"never"}`, `invalid_document_if_missing`},
		{`{"id":1}`, `{"id":1,"ifMissing":null}`, `invalid_document_if_missing`},
		{`{"id":1}`, `{"id":1,"set":{"` + deep + `":1}}`, nestedAs(deep, "1")},
		{`{"id":1}`, `{"id":1,"set":{"` + deep + `":[]}}`, `inapplicable_document_operation`},
		{`{"id":1}`, `{"id":1,"append":{"` + deep + `":1}}`, `inapplicable_document_operation`},
		{`{"id":1}`, `{"id":1,"increment":{"` + deep + `":1}}`, nestedAs(deep, "1")},
		{`{"id":1}`, `{"id":1,"increment":{"` + deep + `.a":1}}`, `inapplicable_document_operation`},
		{`{"id":1}`, `{"id":1,"increment":{"` + strings.Repeat("a.", 10_000_000) + `a":1}}`, `inapplicable_document_operation`},
		{`{"id":1,"t":[-9223372036854775808]}`, `{"id":1,"remove":{"t":-9223372036854775808.0}}`, `{"id":1,"t":[]}`},
	} {
		var o Operation
		var p Patcher
		got, err := []byte(nil), o.Read([]byte(tt.op), "id", SkipMissing)
		if err == nil {
			got, err = p.Apply([]byte(tt.doc), &o)
		}
		if err != nil {
			got = []byte(apierr.From(err).Code)
		}
		if string(got) != tt.want {
			t.Errorf("%s on %s: got %s, want %s (%v)", tt.op, tt.doc, got, tt.want, err)
		}
	}
}

func nestedAs(path, value string) string {
	return `{"id":1,` + strings.TrimPrefix(string(appendNested(nil, path, []byte(value))), "{") + `}`
}

// TestIDsOfOperations reads ids under primary keys that are names of other members, and creates documents with them.
func TestIDsOfOperations(t *testing.T) {
	for _, tt := range []struct{ key, line, want string }{
		{"id", `{"id":7}`, `{"id":7}`},
		{"id", `{"id":"x"}`, `{"id":"x"}`},
		{"o.id", `{"o":{"id":7,"y":1}}`, `{"o":{"id":7}}`},
		{"o.id", `{"o.id":7}`, `{"o":{"id":7}}`},
		{"set", `{"set":7}`, `{"set":7}`},
	} {
		var o Operation
		if err := o.Read([]byte(tt.line), tt.key, CreateMissing); err != nil || o.IfMissing != CreateMissing || len(o.changes) != 0 {
			t.Errorf("%s: %v", tt.line, err)
		}
		if got, err := Create(nil, []byte(tt.line), tt.key); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v", tt.line, got, err)
		}
	}
}

// TestCreateWithDeepKey creates documents under primary keys with as many levels as a document may have, and with more.
func TestCreateWithDeepKey(t *testing.T) {
	for _, levels := range []int{MaxDepth, MaxDepth + 1, 10_000_000} {
		key := strings.Repeat("a.", levels-1) + "a"
		got, err := Create(nil, []byte(`{"`+key+`":7}`), key)
		switch {
		case levels > MaxDepth:
			if err == nil || apierr.From(err).Code != "inapplicable_document_operation" {
				t.Errorf("%d levels: %v", levels, err)
			}
		case err != nil || Fault(got) != "":
			t.Errorf("%d levels: %s, %v", levels, got, err)
		}
	}
}

// slowApply is the reference implementation of one change, on decoded JSON. ok is false if it does not apply.
func slowApply(doc map[string]any, v verb, path string, value any) (ok bool) {
	if _, literal := doc[path]; !literal {
		if name, rest, nested := strings.Cut(path, "."); nested {
			inner, there := doc[name]
			o, object := inner.(map[string]any)
			switch {
			case !there && (v == unset || v == removeFrom):
				return true
			case !there:
				o = map[string]any{}
				doc[name] = o
			case !object:
				return v == unset || v == removeFrom
			}
			return slowApply(o, v, rest, value)
		}
	}
	was, there := doc[path]
	values, many := value.([]any)
	if !many {
		values = []any{value}
	}
	list, isList := was.([]any)
	isList = isList || was == nil
	number := func(x any) *big.Int {
		n, _ := new(big.Int).SetString(fmt.Sprint(x), 10)
		return n
	}
	equal := func(a any) func(any) bool { return func(b any) bool { return reflect.DeepEqual(a, b) } }
	switch v {
	case set:
		doc[path] = value
	case unset:
		delete(doc, path)
	case increment:
		if was == nil {
			was = json.Number("0")
		}
		n, ok := was.(json.Number)
		if !ok {
			return false
		}
		doc[path] = json.Number(new(big.Int).Add(number(n), number(value)).String())
	case appendTo, addToSet:
		if !isList {
			return false
		}
		if was == nil {
			list = []any{}
		}
		for _, x := range values {
			if v == appendTo || !slices.ContainsFunc(list, equal(x)) {
				list = append(list, x)
			}
		}
		doc[path] = list
	case removeFrom:
		if !isList {
			return false
		}
		if there && was != nil {
			doc[path] = slices.DeleteFunc(slices.Clone(list), func(x any) bool { return slices.ContainsFunc(values, equal(x)) })
		}
	}
	return true
}

// TestOperationsAgreeWithAReference applies random operations to random documents.
func TestOperationsAgreeWithAReference(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var value func(depth int) string
	value = func(depth int) string {
		switch n := r.IntN(8); {
		case depth > 0 && n == 0:
			return "[" + value(depth-1) + "," + value(depth-1) + "," + value(0) + "]"
		case depth > 0 && n < 4:
			return `{"` + pick("a", "b", "a.b") + `":` + value(depth-1) + `}`
		}
		return pick("1", "-3", "40", `"x"`, `"y"`, "null", "true", "[]", "{}", `["x"]`)
	}
	applied, refused := 0, 0
	for range 5000 {
		doc := `{"id":1,"` + pick("a", "b", "a.b", "c") + `":` + value(3) + `,"` + pick("d", "d.a") + `":` + value(2) + `}`
		v := verb(r.IntN(verbs))
		path := pick("a", "b", "a.b", "a.a", "a.b.a", "b.a.b", "c", "d", "d.a", "d.a.b")
		arg := value(2)
		member := fmt.Sprintf(`{%q:%s}`, path, arg)
		switch v {
		case unset:
			member = fmt.Sprintf(`[%q]`, path)
		case increment:
			arg = pick("1", "-5", "0")
			member = fmt.Sprintf(`{%q:%s}`, path, arg)
		}
		line := fmt.Sprintf(`{"id":1,%q:%s}`, verbNames[v], member)
		// The reference handles objects on the path, not names with dots beside them.
		if strings.Contains(doc, `"a.b":`) && strings.HasPrefix(path, "a.b.") || strings.Contains(doc, `"d.a":`) && path == "d.a.b" {
			continue
		}
		decode := func(text []byte) (x map[string]any) {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&x); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return x
		}
		if nestedDots(decode([]byte(doc)), path) {
			continue
		}
		var given any
		d := json.NewDecoder(strings.NewReader(arg))
		d.UseNumber()
		if err := d.Decode(&given); err != nil {
			t.Fatal(err)
		}
		want := decode([]byte(doc))
		ok := slowApply(want, v, path, given)
		var o Operation
		var p Patcher
		if err := o.Read([]byte(line), "id", SkipMissing); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := p.Apply([]byte(doc), &o)
		if (err == nil) != ok {
			t.Fatalf("%s on %s: %v, want applied: %v", line, doc, err, ok)
		}
		if err != nil {
			refused++
			continue
		}
		applied++
		if !reflect.DeepEqual(decode(got), want) {
			t.Fatalf("%s on %s\n got %s\nwant %v", line, doc, got, want)
		}
		var again bytes.Buffer
		if _, err := Convert(&again, bytes.NewReader(got), NDJSON, 0); err != nil || string(bytes.TrimSpace(again.Bytes())) != string(got) {
			t.Fatalf("%s on %s gives %s, which is not a compact document: %v", line, doc, got, err)
		}
	}
	if applied < 1000 || refused < 100 {
		t.Errorf("%d operations applied, %d refused", applied, refused)
	}
}

// nestedDots reports whether a name with a dot inside an object is on a path.
func nestedDots(doc map[string]any, path string) bool {
	for name, x := range doc {
		if strings.Contains(name, ".") && strings.HasPrefix(path+".", name+".") && name != path {
			return true
		}
		if o, ok := x.(map[string]any); ok {
			for rest := path; ; {
				_, after, nested := strings.Cut(rest, ".")
				if !nested {
					break
				}
				if nestedDots(o, after) {
					return true
				}
				rest = after
			}
		}
	}
	return false
}

// FuzzOperation applies any JSON: the result must be a document, or the error must be one for users.
func FuzzOperation(f *testing.F) {
	f.Add(`{"id":1,"a":{"b":[1]}}`, `{"id":1,"append":{"a.b":[2]},"set":{"c":{}},"unset":["x"]}`)
	f.Add(`{"a.b":1,"a":{}}`, `{"increment":{"a.b":1e300},"remove":{"a":[]},"addToSet":{"y.z":[1,1]}}`)
	f.Fuzz(func(t *testing.T, docText, opText string) {
		var doc, op bytes.Buffer
		if _, err := Convert(&doc, strings.NewReader(docText), NDJSON, 0); err != nil || bytes.Count(doc.Bytes(), []byte("\n")) != 1 {
			return
		}
		if _, err := Convert(&op, strings.NewReader(opText), NDJSON, 0); err != nil || bytes.Count(op.Bytes(), []byte("\n")) != 1 {
			return
		}
		var o Operation
		var p Patcher
		err := o.Read(bytes.TrimSpace(op.Bytes()), "id", SkipMissing)
		var got []byte
		if err == nil {
			got, err = p.Apply(bytes.TrimSpace(doc.Bytes()), &o)
		}
		if err != nil {
			if apierr.From(err).Code == apierr.Internal {
				t.Fatal(err)
			}
			return
		}
		var again bytes.Buffer
		if _, err := Convert(&again, bytes.NewReader(got), NDJSON, 0); err != nil || string(bytes.TrimSpace(again.Bytes())) != string(got) {
			t.Fatalf("%s on %s gives %s, which is not a compact document: %v", opText, docText, got, err)
		}
	})
}
