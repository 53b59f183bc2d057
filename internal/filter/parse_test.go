package filter

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"svc/internal/apierr"
)

func TestPrint(t *testing.T) {
	tests := []struct{ src, want string }{
		{`a = 1`, `a = 1`},
		{` a=1 `, `a = 1`},
		{`'a' = "1"`, `a = 1`},
		{`a.b-c_d != -1.5e3`, `a.b-c_d != -1.5e3`},
		{`a>1`, `a > 1`}, {`a >= 1`, `a >= 1`}, {`a<1`, `a < 1`}, {`a<=1`, `a <= 1`},
		{`ünïcode = 東京`, `ünïcode = 東京`},
		{`a = 'it\'s'`, `a = "it's"`},
		{`a = "say \"hi\""`, `a = "say \"hi\""`},
		{`a = 'back\\slash \x \t'`, `a = "back\\slash \\x \t"`},
		{`a = ''`, `a = ""`},
		{`'AND' = 'NOT'`, `"AND" = "NOT"`},
		{`to a TO zz`, `to a TO zz`},
		{`a -5 TO 0`, `a -5 TO 0`},
		{`a IN []`, `a IN []`}, {`a IN[x,'y z',]`, `a IN [x, "y z"]`}, {`a NOT   IN [x]`, `NOT a IN [x]`},
		{`a EXISTS`, `a EXISTS`}, {`a NOT EXISTS`, `NOT a EXISTS`}, {`NOT a NOT EXISTS`, `a EXISTS`},
		{`a IS  NULL`, `a IS NULL`}, {`a IS NOT EMPTY`, `NOT a IS EMPTY`},
		{`a CONTAINS b`, `a CONTAINS b`}, {`a NOT STARTS WITH ''`, `NOT a STARTS WITH ""`},
		{`a=1 AND b=2 OR c=3`, `(a = 1 AND b = 2) OR c = 3`},
		{`a=1 AND (b=2 OR c=3)`, `a = 1 AND (b = 2 OR c = 3)`},
		{`(a=1 AND (b=2 AND c=3))`, `a = 1 AND b = 2 AND c = 3`},
		{`NOT a=1 AND b=2`, `NOT a = 1 AND b = 2`},
		{`NOT(a=1 AND b=2)`, `NOT (a = 1 AND b = 2)`},
		{`NOT NOT NOT (a=1)`, `NOT a = 1`},
		{`( a=1 )AND( b=2 )`, `a = 1 AND b = 2`},
		{"a = 1\n\tOR b = 2", `a = 1 OR b = 2`},
		{`_geoRadius( 5.06292e1 , 3,70000.5)`, `_geoRadius(50.6292, 3, 70000.5)`},
		{`_geoRadius(1,2,3,100)`, `_geoRadius(1, 2, 3, 100)`},
		{`_geoBoundingBox([1,2],[-0,1])`, `_geoBoundingBox([1, 2], [0, 1])`},
		{`_geoPolygon([1,2],[3,4],[5,6],)`, `_geoPolygon([1, 2], [3, 4], [5, 6])`},
		{`_geo.lat > 0`, `_geo.lat > 0`},
		{`_foreign( author , land = FR OR land = VN )`, `_foreign(author, land = FR OR land = VN)`},
		{`_vectors EXISTS`, `_vectors EXISTS`}, {`_vectors.e NOT EXISTS`, `NOT _vectors."e" EXISTS`},
		{`_vectors.'a.b'.fragments.'f' EXISTS`, `_vectors."a.b".fragments."f" EXISTS`},
		{`_vectors.e.userProvided EXISTS`, `_vectors."e".userProvided EXISTS`},
		{`_shard NOT IN [a]`, `NOT _shard IN [a]`},
		{`v.{c = red AND n > 40}`, `v.{c = red AND n > 40}`},
		{`a.b.{c.d EXISTS OR e.{f NOT IN [1]}}`, `a.b.{c.d EXISTS OR e.{NOT f IN [1]}}`},
		{`'my v'.{c = 1}`, `"my v".{c = 1}`}, {`"v".{c = 1}`, `v.{c = 1}`}, {`'v.'.{c = 1}`, `v..{c = 1}`}, {`'AND'.{'NOT' = 1}`, `"AND".{"NOT" = 1}`},
		{`NOT v.{(c=1)}AND(a=2)`, `NOT v.{c = 1} AND a = 2`},
		{`v.{_geoRadius(1,2,3) AND _geoBoundingBox([1,2],[-0,1])}`, `v.{_geoRadius(1, 2, 3) AND _geoBoundingBox([1, 2], [0, 1])}`},
		{`v.{_foreign(brand, x.{y = 1} AND z = 2)}`, `v.{_foreign(brand, x.{y = 1} AND z = 2)}`},
		{`_foreign(brand, v.{c = 1})`, `_foreign(brand, v.{c = 1})`},
	}
	for _, test := range tests {
		e, err := Parse(test.src)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		if got := e.String(); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
		again, err := Parse(test.want)
		if err != nil || !same(e, again) {
			t.Errorf("%s: %v, or the tree differs", test.want, err)
		}
	}
}

// same compares trees without positions.
func same(a, b *Expr) bool {
	forget := func(n node) error {
		switch n := n.(type) {
		case *condition:
			n.at = position{}
		case *radius:
			n.at, n.center.at = position{}, position{}
		case *box:
			n.at, n.topRight.at, n.bottomLeft.at = position{}, position{}, position{}
		case *polygon:
			n.at = position{}
			for i := range n.points {
				n.points[i].at = position{}
			}
		case *vectors:
			n.at = position{}
		case *foreign:
			n.at = position{}
		case *elements:
			n.at = position{}
		}
		return nil
	}
	walk(a.root, forget)
	walk(b.root, forget)
	return reflect.DeepEqual(a.root, b.root)
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		src          string
		line, column int
		message      string // part of the message
	}{
		{`a`, 1, 2, "an operator"},
		{`a =`, 1, 4, "a value"},
		{`a = true AND`, 1, 13, "an attribute"},
		{`AND a = 1`, 1, 1, "reserved"},
		{`a = OR`, 1, 5, "reserved"},
		{`a = true and b = true`, 1, 10, "AND or OR"},
		{`a == true`, 1, 4, "a value"},
		{`é = 1 AND 🦀`, 1, 11, "an attribute"},
		{"a = 1\nAND\n  b ~ 2", 3, 5, "operator"},
		{`(a = 1`, 1, 7, "`)`"},
		{`a = 1)`, 1, 6, "the end of the filter"},
		{`a = 'x`, 1, 5, "not closed"},
		{`a = x'`, 1, 6, "not closed"},
		{`a ! 1`, 1, 3, ""},
		{`a IN [x y]`, 1, 9, "`]`"},
		{`a IN [,x]`, 1, 7, "a value"},
		{`a NOT NULL`, 1, 7, "IN, EXISTS"},
		{`a IS NOT`, 1, 9, "NULL or EMPTY"},
		{`a STARTS  WITH b`, 1, 11, "WITH"},
		{`a 1 2`, 1, 5, "TO"},
		{`_geo EXISTS`, 1, 1, "_geoRadius"},
		{`'_geoPoint' = 3`, 1, 1, "_geoRadius"},
		{`_geoRadius (1, 2, 3)`, 1, 1, "parentheses"},
		{`_geoRadius('1', 2, 3)`, 1, 12, "a number"},
		{`_geoRadius(1, 2, -3)`, 1, 18, "negative"},
		{`_geoRadius(1, 2, 3, 2)`, 1, 21, "corners"},
		{`_geoRadius(1, 2, 1e999)`, 1, 18, "a number"},
		{`_geoPolygon([1, 2], [3, 4])`, 1, 1, "3 points"},
		{`_foreign(a, _foreign(b, c = 1))`, 1, 13, "nested"},
		{`_foreign(a)`, 1, 11, "`,`"},
		{`_vectors.e = 1`, 1, 12, "EXISTS"},
		{`_vectors. EXISTS`, 1, 1, "embedder"},
		{`_vectors.e.other EXISTS`, 1, 1, "embedder"},
		{`_vectors.e.fragments EXISTS`, 1, 1, "embedder"},
		{`_vectors.e.userProvided.x EXISTS`, 1, 1, "embedder"},
		{`_shard > x`, 1, 1, "_shard"},
		{`v.{c = 1`, 1, 9, "`}`"}, {`v.{}`, 1, 4, "an attribute"}, {`v.{c = 1}}`, 1, 10, "the end"}, {`v.c = 1}`, 1, 8, "the end"},
		{`.{c = 1}`, 1, 1, "needs an attribute"}, {`''.{c = 1}`, 1, 1, "needs an attribute"}, {`v. {c = 1}`, 1, 4, "an operator"}, {`v{c = 1}`, 1, 2, "an operator"},
		{`v.{_vectors EXISTS}`, 1, 4, "outside the braces"}, {`v.{_geoPolygon([1, 2], [3, 4], [5, 6])}`, 1, 4, "shapes"},
		{strings.Repeat("v", 2049) + `.{c = 1}`, 1, 1, "the limit is 2048"}, {`a.{` + strings.Repeat("v", 2047) + `.{c = 1}}`, 1, 4, "the limit is 2048"},
		{`v.{_geo = 1}`, 1, 4, "_geoRadius"}, {`v.{c = 1) `, 1, 9, "`}`"}, {`_foreign(a, v.{_foreign(b, c = 1)})`, 1, 16, "nested"},
		{strings.Repeat("v.{", 300) + "a = 1" + strings.Repeat("}", 300), 1, 603, "200 deep"},
		{strings.Repeat("(", 300) + "a = 1" + strings.Repeat(")", 300), 1, 201, "200 deep"},
		{strings.Repeat("NOT ", 201) + "a = 1", 1, 801, "200 deep"},
		{strings.Repeat("(", 1<<20), 1, 201, "200 deep"},
		{strings.Repeat(" ", maxBytes+1), 1, 1, "at most"},
	}
	for _, test := range tests {
		e, err := Parse(test.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%.60s: got %v, %v", test.src, e, err)
			continue
		}
		if syntax.Line != test.line || syntax.Column != test.column || !strings.Contains(syntax.Message, test.message) {
			t.Errorf("%.60s: got %v, want %d:%d and %q", test.src, err, test.line, test.column, test.message)
		}
	}
	for _, src := range []string{strings.Repeat("NOT ", 200) + "a = 1", strings.Repeat("(", 200) + "a = 1" + strings.Repeat(")", 200), "(((a=1)))" + strings.Repeat(" OR (((b=2)))", 1000)} {
		if _, err := Parse(src); err != nil {
			t.Errorf("%.60s: %v", src, err)
		}
	}
}

func TestFromJSON(t *testing.T) {
	tests := []struct{ body, want string }{ // want: the printed filter, or "!" and a part of the error
		{`null`, ``}, {`""`, ``}, {`" \n"`, ``}, {`[]`, ``}, {`[[]]`, ``}, {`[" ", [""]]`, ``},
		{`"a = 1 OR b = 2"`, `a = 1 OR b = 2`},
		{`["a = 1"]`, `a = 1`},
		{`["a = 1", "b = 2"]`, `a = 1 AND b = 2`},
		{`["a = 1 OR b = 2", "c = 3"]`, `(a = 1 OR b = 2) AND c = 3`},
		{`["c = 3", ["a = 1", "b = 2"], []]`, `c = 3 AND (a = 1 OR b = 2)`},
		{`[["a = 1 OR b = 2", "c = 3"]]`, `a = 1 OR b = 2 OR c = 3`},
		{`[["a = 1 AND b = 2", "c = 3"]]`, `(a = 1 AND b = 2) OR c = 3`},
		{`"[\"a = 1\", [\"b = 2\", \"c = 3\"]]"`, `a = 1 AND (b = 2 OR c = 3)`},
		{`"[a = 1]"`, `!Filter, 1:1`},
		{`5`, `!a number`}, {`true`, `!a boolean`}, {`{"a":1}`, `!an object`}, {`[null]`, `!Filter[0]`}, {`["a = 1", ["b = 2", 2]]`, `!Filter[1][1]`},
		{`[[["a = 1"]]]`, `!Filter[0][0] is a third level`}, {`["a = 1", ["b ="]]`, `!Filter[1][0], 1:4`}, {`"a`, `!JSON`}, {strings.Repeat("[", 1<<20), `!JSON`},
	}
	for _, test := range tests {
		e, err := FromJSON([]byte(test.body), "invalid_document_filter")
		if want, ok := strings.CutPrefix(test.want, "!"); ok {
			if err == nil || apierr.From(err).Code != "invalid_document_filter" || !strings.Contains(err.Error(), want) {
				t.Errorf("%.60s: got %v, want code invalid_document_filter and %q", test.body, err, want)
			}
			continue
		}
		if err != nil || e.String() != test.want || (e == nil) != (test.want == "") {
			t.Errorf("%s: got %s, %v, want %s", test.body, e, err, test.want)
		}
	}
	// A filter nested as deep as allowed prints in a form that can be parsed.
	deep := `[["` + strings.Repeat("NOT (x = 1 OR ", 99) + "a = 1" + strings.Repeat(")", 99) + `", "b = 2"], "c = 3"]`
	e, err := FromJSON([]byte(deep), "invalid_search_filter")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(e.String()); err != nil || !same(e, again) {
		t.Errorf("a printed deep filter is refused: %v", err)
	}
}

func TestAnd(t *testing.T) {
	parse := func(src string) *Expr {
		e, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if And() != nil || And(nil, nil) != nil {
		t.Error("And() is not nil")
	}
	if got := And(nil, parse("a=1 OR b=2"), parse("c=3 AND d=4")).String(); got != `(a = 1 OR b = 2) AND c = 3 AND d = 4` {
		t.Errorf("got %s", got)
	}
}

func TestCheck(t *testing.T) {
	for src, feature := range map[string]Features{
		`a = 1 OR NOT b CONTAINS c`:   {Contains: true},
		`_shard = x`:                  {Shards: true},
		`NOT _foreign(a, b = 1)`:      {Foreign: true},
		`a = 1 AND _vectors.e EXISTS`: {Vectors: true},
		`a STARTS WITH b`:             {},
	} {
		e, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Check(feature); err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if err := e.Check(Features{}); feature != (Features{}) && (err == nil || apierr.From(err).Code != "feature_not_enabled") {
			t.Errorf("%s without features: %v", src, err)
		}
	}
	for _, src := range []string{`_shard > x`, `_shard EXISTS`, `a = 1 OR NOT _shard CONTAINS x`, `_shard a TO b`, `_shard IS NULL`, `_shard STARTS WITH x`} {
		e, err := FromJSON([]byte(strconv.Quote(src)), "invalid_document_filter")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Check(Features{Contains: true}); err == nil || apierr.From(err).Code != "feature_not_enabled" {
			t.Errorf("%s without the feature: %v", src, err)
		}
		if err := And(InShard("y"), e).Check(Features{Contains: true, Shards: true}); err == nil || apierr.From(err).Code != "invalid_document_filter" {
			t.Errorf("%s with the feature: %v", src, err)
		}
		if _, err := Parse(src); err == nil {
			t.Errorf("%s is accepted", src)
		}
	}
}

// FuzzParse checks that any bytes give a tree or an error with a position, and that a printed tree parses to the same tree.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `a = 1`, `NOT (a > 'x\'y' AND "b c" 1 TO 2) OR c NOT IN [d, "e",]`, `a IS NOT NULL AND b STARTS WITH x`, `_geoRadius(1, 2, 3, 4)`,
		`_geoBoundingBox([1, 2], [0, 1])`, `_geoPolygon([1, 2], [3, 4], [5, 6],)`, `_foreign(a, b CONTAINS "\\\t\n")`, `_vectors.'e'.fragments."f" EXISTS`,
		`_shard != a`, "a = '\xff\n'", `((((`, `v.{c = red AND NOT s.{k > 4 OR _geoRadius(1, 2, 3)}}`, `"a b".{_foreign(x, 'y'.{z EXISTS})} OR v..{c IN [1]}`, `a = -0`, `_geo.lat 1e-300 TO 9`, "\u2003a = e\u0301",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Parse(src)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 || syntax.Message == "" {
				t.Fatalf("error without position: %#v", err)
			}
			return
		}
		if e == nil {
			if strings.TrimSpace(src) != "" {
				t.Fatalf("%q gives neither a tree nor an error", src)
			}
			return
		}
		again, err := Parse(e.String())
		if err != nil || !same(e, again) {
			t.Fatalf("%q prints as %q, which gives %v, %v", src, e, again, err)
		}
	})
}
