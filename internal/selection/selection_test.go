package selection

import (
	"encoding/json"
	"reflect"
	"testing"

	"svc/internal/settings"
)

const saltRoad = `{"id":1,"title":"The salt road","author":{"name":"Ida Wren","born":{"place":"Cork","year":1950}},"editions":[{"year":1990,"note":"first"},{"year":2001,"note":"second"}],"secret":"salt cellar","a.b":"dotted"}`

func TestSelection(t *testing.T) {
	bread := `{"id":2,"author":{"name":"Sal","born":null},"editions":[],"mixed":["x",{"y":1},[{"y":2},3]],"none":{}}`
	tests := []struct {
		doc    string
		fields []string
		want   string
	}{
		{saltRoad, nil, saltRoad},
		{saltRoad, []string{"title", "*"}, saltRoad},
		{saltRoad, []string{}, `{}`},
		{saltRoad, []string{"title"}, `{"title":"The salt road"}`},
		{saltRoad, []string{"author", "id"}, `{"id":1,"author":{"name":"Ida Wren","born":{"place":"Cork","year":1950}}}`},
		{saltRoad, []string{"author.name", "author.born.year"}, `{"author":{"name":"Ida Wren","born":{"year":1950}}}`},
		{saltRoad, []string{"author.name", "author"}, `{"author":{"name":"Ida Wren","born":{"place":"Cork","year":1950}}}`},
		{saltRoad, []string{"editions.year"}, `{"editions":[{"year":1990},{"year":2001}]}`},
		{saltRoad, []string{"author.nope", "title.*", "auth", "TITLE", "a", "editions.nope"}, `{"author":{},"editions":[]}`},
		{saltRoad, []string{"title.x"}, `{}`},
		{saltRoad, []string{"a.b"}, `{"a.b":"dotted"}`},
		{bread, []string{"author.born.place"}, `{"author":{"born":null}}`},
		{bread, []string{"editions.year", "none.x"}, `{"editions":[],"none":{}}`},
		{bread, []string{"mixed.y"}, `{"mixed":[{"y":1},[{"y":2}]]}`},
		{`{"\u0061":{"b\"":[true]}}`, []string{`a.b"`}, `{"\u0061":{"b\"":[true]}}`},
	}
	for _, test := range tests {
		got, err := Of(test.fields).AppendParts([]byte("x"), []byte(test.doc))
		if err != nil || string(got) != "x"+test.want {
			t.Errorf("%v: %s, %v, want %s", test.fields, got, err, test.want)
		}
	}
}

func TestRetrievedFields(t *testing.T) {
	all, none := []string(nil), []string{}
	tests := []struct{ displayed, requested, want []string }{
		{all, all, all}, {all, none, none}, {all, []string{"a", "*"}, all}, {all, []string{"a"}, []string{"a"}},
		{[]string{"a.b"}, all, []string{"a.b"}}, {[]string{"a.b"}, []string{"a"}, []string{"a.b"}}, {[]string{"a"}, []string{"a.b"}, []string{"a.b"}},
		{[]string{"a.b", "c", "a.d", "ab"}, []string{"a", "c"}, []string{"a.b", "a.d", "c"}}, {[]string{"a.b.c"}, []string{"a.b"}, []string{"a.b.c"}},
		{[]string{"a", "b"}, []string{"c", "b"}, []string{"b"}}, {none, all, none}, {none, []string{"a"}, []string{"a"}},
		{all, []string{"a", "no.document"}, []string{"a"}}, {all, []string{"none"}, none},
	}
	fields := settings.Resolve([]string{"a", "a.b", "b", "c"}, settings.Default(), "")
	for _, test := range tests {
		if got := Retrieved(fields, test.displayed, test.requested); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q %q: %q, want %q", test.displayed, test.requested, got, test.want)
		}
	}
}

func FuzzSelection(f *testing.F) {
	for _, doc := range []string{saltRoad, `{}`, `{"a":[1,{"b":[]}]}`, `{"a":`, `[`, `{"a":}`, `{"a":1,}`, `{"a" :1}`, `{"a":[}]}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		out, err := Of([]string{"a.b", "author.born"}).AppendParts(nil, doc)
		if err == nil && json.Valid(doc) && !json.Valid(out) {
			t.Errorf("%s gives %s", doc, out)
		}
	})
}
