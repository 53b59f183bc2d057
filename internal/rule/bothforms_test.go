package rule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/filter"
	"svc/internal/vfs"
)

// filterTree is a random filter in the representation of the tests.
type filterTree struct {
	op   string // AND, OR, NOT, or the operator of a condition
	kids []filterTree
	attr string
	args []string
}

func (f *filterTree) String() string {
	var parts []string
	for i := range f.kids {
		parts = append(parts, "("+f.kids[i].String()+")")
	}
	switch f.op {
	case "AND", "OR":
		return strings.Join(parts, " "+f.op+" ")
	case "NOT":
		return "NOT " + parts[0]
	case "IN", "NOT IN":
		return f.attr + " " + f.op + " [" + strings.Join(f.args, ", ") + "]"
	case "TO":
		return f.attr + " " + f.args[0] + " TO " + f.args[1]
	case "EXISTS", "NOT EXISTS":
		return f.attr + " " + f.op
	}
	return f.attr + " " + f.op + " " + f.args[0]
}

// alternatives is the reference conversion of a filter to an OR of ANDs of conditions. IN is an OR.
func (f *filterTree) alternatives(contrary bool) [][]naiveTest {
	switch f.op {
	case "NOT":
		return f.kids[0].alternatives(!contrary)
	case "AND", "OR":
		if (f.op == "OR") != contrary {
			var all [][]naiveTest
			for i := range f.kids {
				all = append(all, f.kids[i].alternatives(contrary)...)
			}
			return all
		}
		all := [][]naiveTest{nil}
		for i := range f.kids {
			var next [][]naiveTest
			for _, a := range all {
				for _, b := range f.kids[i].alternatives(contrary) {
					next = append(next, slices.Concat(a, b))
				}
			}
			all = next
		}
		return all
	case "IN":
		if !contrary {
			var all [][]naiveTest
			for _, v := range f.args {
				all = append(all, []naiveTest{{filterTree{op: "=", attr: f.attr, args: []string{v}}, false}})
			}
			return all
		}
	case "NOT IN":
		return (&filterTree{op: "IN", attr: f.attr, args: f.args}).alternatives(!contrary)
	case "CONTAINS":
		return [][]naiveTest{nil}
	}
	return [][]naiveTest{{{*f, contrary}}}
}

type naiveTest struct {
	filterTree
	contrary bool
}

func (t *naiveTest) passes(value string) bool {
	x, err := strconv.Atoi(value)
	isNumber := err == nil
	compare := func(bound string) (c int, ok bool) {
		y, err := strconv.Atoi(bound)
		switch {
		case isNumber && err != nil:
			return 0, false
		case isNumber:
			return x - y, true
		}
		return strings.Compare(value, bound), true
	}
	in := false
	switch t.op {
	case "=", "IN":
		in = slices.Contains(t.args, value)
	case "!=":
		in = !slices.Contains(t.args, value)
	case ">":
		c, ok := compare(t.args[0])
		in = ok && c > 0
	case "<=":
		c, ok := compare(t.args[0])
		in = ok && c <= 0
	case "TO":
		lo, ok1 := compare(t.args[0])
		hi, ok2 := compare(t.args[1])
		in = ok1 && ok2 && lo >= 0 && hi <= 0
	case "EXISTS":
		in = true
	}
	return in != t.contrary
}

// satisfied tries all assignments of a separate test to each value.
func satisfied(values []filter.Pair, tests []naiveTest) bool {
	if len(values) == 0 {
		return true
	}
	for i := range tests {
		if tests[i].attr == values[0].Attribute && tests[i].passes(values[0].Value) &&
			satisfied(values[1:], slices.Delete(slices.Clone(tests), i, i+1)) {
			return true
		}
	}
	return false
}

// slowly is the reference implementation for both forms: it asks rule by rule. f may be nil.
func slowly(all []*Rule, index, query string, tree *filterTree, f *filter.Expr, now time.Time) Effects {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *Rule) int {
		switch {
		case a.precedence() < b.precedence():
			return -1
		case a.precedence() > b.precedence():
			return 1
		}
		return 0
	})
	var effects Effects
	for _, r := range all {
		ok := r.Active
		for _, c := range r.Conditions {
			if t := c.Time; t != nil {
				ok = ok && (t.Start == nil || !now.Before(*t.Start)) && (t.End == nil || !now.After(*t.End))
			}
			if q := c.Query; q != nil {
				ok = ok && (q.IsEmpty == nil || *q.IsEmpty == (strings.TrimSpace(query) == ""))
				ok = ok && (q.Contains == nil || strings.Contains(fold(query), fold(strings.TrimSpace(*q.Contains))))
				if q.Words != nil {
					for _, w := range strings.Fields(*q.Words) {
						ok = ok && slices.Contains(strings.Fields(query), w)
					}
				}
			}
			if c.Filter != nil && c.Filter.raw == nil {
				var keys []string
				for _, v := range c.Filter.Values {
					keys = append(keys, v.Key())
				}
				ok = ok && f.Fixes(keys)
			} else if c.Filter != nil {
				var values []filter.Pair
				for _, v := range c.Filter.Values {
					values = append(values, v.Pair)
				}
				ok = ok && tree != nil && slices.ContainsFunc(tree.alternatives(false), func(tests []naiveTest) bool { return satisfied(values, tests) })
			}
		}
		for i := range r.Actions {
			a := &r.Actions[i]
			switch {
			case !ok || a.Selector.IndexUID != nil && *a.Selector.IndexUID != index:
			case a.Scale != nil:
				effects.Scales = append(effects.Scales, Scale{r.UID, &a.Selector, *a.Scale})
			case !slices.ContainsFunc(effects.Pins, func(p Pin) bool { return p.ID == *a.Selector.ID }):
				effects.Pins = append(effects.Pins, Pin{*a.Selector.ID, *a.Pin})
			}
		}
	}
	slices.SortStableFunc(effects.Pins, func(a, b Pin) int { return int(a.Position) - int(b.Position) })
	return effects
}

func (e Effects) String() string {
	var b strings.Builder
	for _, p := range e.Pins {
		fmt.Fprintf(&b, "%s@%d ", p.ID, p.Position)
	}
	for _, s := range e.Scales {
		fmt.Fprintf(&b, "%s×%g ", s.Rule, s.Factor)
	}
	return b.String()
}

// TestBothFormsAgreeWithAskingEveryRule matches changing random rules of both forms with random filters.
func TestBothFormsAgreeWithAskingEveryRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	attr := func() string { return pick("a", "b", "c.d") }
	value := func() string { return pick("0", "1", "2", "3", "10", "x", "y", "ab") }
	var tree func(depth int) filterTree
	tree = func(depth int) filterTree {
		if depth > 0 && rng.IntN(3) > 0 {
			f := filterTree{op: pick("AND", "AND", "OR", "NOT")}
			n := 2 + rng.IntN(2)
			if f.op == "NOT" {
				n = 1
			}
			for range n {
				f.kids = append(f.kids, tree(depth-1))
			}
			return f
		}
		f := filterTree{op: pick("=", "=", "!=", ">", "<=", "TO", "IN", "NOT IN", "EXISTS", "NOT EXISTS", "CONTAINS"), attr: attr()}
		f.args = []string{value(), value()}
		switch {
		case strings.HasSuffix(f.op, "IN"):
			f.args = append(f.args, value())[:rng.IntN(4)]
		case f.op != "TO":
			f.args = f.args[:1]
		}
		return f
	}
	word := func() string { return pick("call", "history", "sale", "of", "coats") }
	text := func() string {
		return strings.Join([]string{word(), word(), word(), word()}[:rng.IntN(5)], " ")
	}
	moment := func() string { return noon.Add(time.Duration(rng.IntN(20)-10) * time.Second).Format(time.RFC3339) }
	values := func() string {
		kinds := []string{`"a":%s`, `"b":%s`, `"a":[%s,%s]`, `"c":{"d":%s}`, `"b":%s,"c.d":%s`, `"a":%s,"b":[%s,%s]`}
		kind := kinds[rng.IntN(len(kinds))]
		for strings.Contains(kind, "%s") {
			v := value()
			if _, err := strconv.Atoi(v); err != nil || rng.IntN(2) == 0 {
				v = strconv.Quote(v)
			}
			kind = strings.Replace(kind, "%s", v, 1)
		}
		return "{" + kind + "}"
	}
	newer := func() string {
		var conditions []string
		switch rng.IntN(6) {
		case 0:
			conditions = append(conditions, fmt.Sprintf(`"query":{"isEmpty":%t}`, rng.IntN(2) == 0))
		case 1, 2:
			conditions = append(conditions, fmt.Sprintf(`"query":{"words":%q}`, text()))
		case 3:
			conditions = append(conditions, fmt.Sprintf(`"query":{"contains":%q,"isEmpty":false}`, word()[1:]))
		}
		switch rng.IntN(5) {
		case 0:
			conditions = append(conditions, fmt.Sprintf(`"time":{"start":%q}`, moment()))
		case 1:
			conditions = append(conditions, fmt.Sprintf(`"time":{"end":%q}`, moment()))
		}
		if rng.IntN(2) == 0 {
			conditions = append(conditions, `"filter":{"values":`+values()+`}`)
		}
		index := pick("", `,"indexUid":"i"`, `,"indexUid":"j"`)
		actions := fmt.Sprintf(`{"pin":[{"id":"%d","position":%d%s}],"scale":[{"weight":%d%s}]}`, rng.IntN(6), rng.IntN(4), index, 2+rng.IntN(3), index)
		if rng.IntN(3) == 0 {
			actions = `[` + pinOf(pick("", "i", "j"), strconv.Itoa(rng.IntN(6)), rng.IntN(4)) + `]`
		}
		return fmt.Sprintf(`{"precedence":%s,"active":%t,"conditions":{%s},"actions":%s}`, pick("null", "1", "2"), rng.IntN(5) > 0, strings.Join(conditions, ","), actions)
	}
	older := func() Change {
		var conditions []string
		for range rng.IntN(3) {
			conditions = append(conditions, pick(fmt.Sprintf(`{"scope":"query","contains":%q}`, word()[1:]), fmt.Sprintf(`{"scope":"time","start":%q}`, moment()),
				fmt.Sprintf(`{"scope":"filter","values":{%q:%q}}`, attr(), value())))
		}
		made := ruleOf(t, "r", pick("", "1", "2"), strings.Join(conditions, ","), pinOf(pick("", "i", "j"), strconv.Itoa(rng.IntN(6)), rng.IntN(4)))
		return Change{Priority: &made.Priority, Conditions: &made.Conditions, Actions: made.Actions, GivesActions: true}
	}
	met, examined, asks := 0, 0, 0
	for range 40 {
		s := open(t, vfs.NewMem())
		for step := range 12 {
			var updates []Update
			for range 5 {
				updates = append(updates, Update{fmt.Sprintf("r%d", rng.IntN(40)), json.RawMessage(newer()), noon})
			}
			refused, err := s.Apply(updates)
			must(t, err)
			for i := range refused {
				must(t, refused[i])
			}
			_, _, err = s.Put(fmt.Sprintf("r%d", rng.IntN(40)), older())
			must(t, err)
			if step%4 != 3 {
				continue
			}
			set := s.Set()
			for range 60 {
				index, query := pick("i", "j"), text()
				var asTree *filterTree
				var f *filter.Expr
				if rng.IntN(5) > 0 {
					random := tree(3)
					asTree, f = &random, parse(t, random.String())
				}
				now := noon.Add(time.Duration(rng.IntN(40)-20) * time.Second / 2)
				want := slowly(set.List(), index, query, asTree, f, now).String()
				a := asked{set: set, query: query, blank: query == "", filter: f, at: nanos(now), left: set.bounds.FilterCombinations}
				if got := set.match(&a, index).String(); got != want {
					t.Fatalf("%s %q %s at %s: %s, want %s\n%s", index, query, f, now, got, want, s.shown())
				}
				if got := set.Match(index, query, f, now).String(); got != want {
					t.Fatalf("Match: %s, want %s", got, want)
				}
				if want != "" {
					met++
				}
				examined += a.examined
				asks += len(set.rules)
			}
		}
	}
	if met < 3000 || examined*3 > asks*2 {
		t.Errorf("%d searches matched a rule, %d of %d rules were examined", met, examined, asks)
	}
}

// crowd returns n rules of each kind. Each matches only searches for it.
func crowd(t testing.TB, n int) *Set {
	t.Helper()
	var all []*Rule
	for i := range n {
		later := noon.Add(time.Hour + time.Duration(i)*time.Second).Format(time.RFC3339)
		for kind, conditions := range []string{
			fmt.Sprintf(`"query":{"words":"winter sale w%d"}`, i),
			fmt.Sprintf(`"query":{"contains":"winter sale t%d"}`, i),
			fmt.Sprintf(`"filter":{"values":{"brand":"b%d"}}`, i),
			fmt.Sprintf(`"filter":{"values":{"brand":"b%d","color":"red","size":%d}}`, i, i%40),
			fmt.Sprintf(`"filter":{"values":{"price":%d}}`, i),
			fmt.Sprintf(`"time":{"start":%q}`, later),
			fmt.Sprintf(`"query":{"words":"coats"},"time":{"start":%q}`, later),
			fmt.Sprintf(`"query":{"isEmpty":%t},"time":{"start":%q}`, i%2 == 0, later),
		} {
			r, err := Read(fmt.Appendf(nil, `{"uid":"k%d-%06d","precedence":%d,"conditions":{%s},"actions":{"pin":[{"id":"%d","position":0%s}]}}`,
				kind, i, i, conditions, i, []string{"", `,"indexUid":"i"`}[i%2]))
			must(t, err)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Rule) int { return strings.Compare(a.UID, b.UID) })
	return newSet(all, DefaultBounds)
}

// TestCrowd counts the rules that a search examines among thousands, of which it matches none or a few.
func TestCrowd(t *testing.T) {
	set := crowd(t, 500)
	for _, tt := range []struct {
		query, filter, want string
		most                int
	}{
		{"", "", "", 0},
		{"winter sale of coats", "", "", 0},
		{"the w77 sale of winter coats", "", "77@0 ", 1},
		{"winter sale t78", "", "7@0 78@0 ", 2},
		{"x", "brand = none AND size = 3 AND color = red", "", 0},
		{"x", "brand IN [none, b80]", "80@0 ", 1},
		{"x", "price > 498", "499@0 ", 1},
		{"x", "price > 100000 OR price < -1", "", 0},
		{"x", "color = red AND size EXISTS", "", 0},
		{"x", "brand != b1 AND price = 5", "", 500},
	} {
		var f *filter.Expr
		if tt.filter != "" {
			f = parse(t, tt.filter)
		}
		a := asked{set: set, query: tt.query, blank: tt.query == "", filter: f, at: nanos(noon), left: set.bounds.FilterCombinations}
		got := set.match(&a, "i").String()
		if tt.most < 500 && got != tt.want || a.examined > tt.most {
			t.Errorf("%q %s: %s, want %s; %d rules were examined", tt.query, tt.filter, got, tt.want, a.examined)
		}
	}
}

// TestBounds exceeds each bound by one rule.
func TestBounds(t *testing.T) {
	read := func(uid, conditions, actions string) *Rule {
		r, err := Read([]byte(`{"uid":"` + uid + `","conditions":{` + conditions + `},"actions":` + actions + `}`))
		must(t, err)
		return r
	}
	pin := func(id string) string { return `{"pin":[{"id":"` + id + `","position":0}]}` }
	words := func(w string) string { return `"query":{"words":"` + w + `"}` }
	values := func(v string) string { return `"filter":{"values":{` + v + `}}` }
	for _, tt := range []struct {
		name          string
		bounds        func(*Bounds)
		rules         []*Rule
		query, filter string
		want, free    string // result with the bound, and without
	}{
		{"words", func(b *Bounds) { b.Words = 2 }, []*Rule{read("a", words("one"), pin("1")), read("b", words("three"), pin("3"))}, "one two three", "", "1@0 ", "1@0 3@0 "},
		{"rules", func(b *Bounds) { b.Rules = 1 }, []*Rule{read("a", "", pin("1")), read("b", "", pin("2"))}, "x", "", "1@0 ", "1@0 2@0 "},
		{"pins", func(b *Bounds) { b.Pins = 1 }, []*Rule{read("a", "", `{"pin":[{"id":"1","position":0},{"id":"2","position":0}]}`)}, "x", "", "1@0 ", "1@0 2@0 "},
		{"word combinations", func(b *Bounds) { b.WordCombinations = 1 }, []*Rule{read("a", words("one"), pin("1")), read("b", words("two"), pin("2"))}, "two one", "", "1@0 ", "1@0 2@0 "},
		{"filter combinations", func(b *Bounds) { b.FilterCombinations = 1 }, []*Rule{read("a", values(`"k":1`), pin("1")), read("b", values(`"k":2`), pin("2"))}, "x", "k = 1 OR k = 2", "1@0 ", "1@0 2@0 "},
		{"or", func(b *Bounds) { b.Or = 1 }, []*Rule{read("a", values(`"k":1`), pin("1")), read("b", values(`"k":2`), pin("2"))}, "x", "k = 1 OR k = 2", "1@0 ", "1@0 2@0 "},
		{"in", func(b *Bounds) { b.Or = 1 }, []*Rule{read("a", values(`"k":1`), pin("1")), read("b", values(`"k":2`), pin("2"))}, "x", "k IN [1, 2]", "1@0 ", "1@0 2@0 "},
		{"not in", func(b *Bounds) { b.Or = 1 }, []*Rule{read("a", values(`"k":3`), pin("1"))}, "x", "k NOT IN [1, 2]", "", "1@0 "},
		{"and", func(b *Bounds) { b.And = 1 }, []*Rule{read("a", values(`"k":1`), pin("1")), read("b", values(`"l":2`), pin("2"))}, "x", "k = 1 AND l = 2", "1@0 ", "1@0 2@0 "},
		{"depth", func(b *Bounds) { b.Depth = 1 }, []*Rule{read("a", values(`"k":1`), pin("1")), read("b", values(`"l":2`), pin("2"))}, "x", "k = 1 AND (l = 2 OR l = 3)", "1@0 ", "1@0 2@0 "},
	} {
		for _, free := range []bool{false, true} {
			b, want := DefaultBounds, tt.free
			if !free {
				tt.bounds(&b)
				want = tt.want
			}
			var f *filter.Expr
			if tt.filter != "" {
				f = parse(t, tt.filter)
			}
			if got := newSet(tt.rules, b).Match("i", tt.query, f, noon).String(); got != want {
				t.Errorf("%s, free %t: %s, want %s", tt.name, free, got, want)
			}
		}
	}
}

// BenchmarkCrowd measures a search that matches none of 75,000 rules of both forms.
func BenchmarkCrowd(b *testing.B) {
	set := crowd(b, 75_000/8)
	for name, tt := range map[string]struct{ query, filter string }{
		"words": {"red running shoes for men in winter sale", ""}, "filter": {"shoes", "brand = none AND color = red AND size = 100 AND price > 1000000"},
		"long": {strings.Repeat("winter sale ", 40), "(brand = x OR brand = y) AND (color = red OR color = blue) AND (size = 50 OR size = 51) AND price < 0"}, "blank": {"", ""},
	} {
		b.Run(name, func(b *testing.B) {
			var f *filter.Expr
			if tt.filter != "" {
				f = parse(b, tt.filter)
			}
			b.ReportAllocs()
			for b.Loop() {
				if e := set.Match("i", tt.query, f, noon); len(e.Pins) > 0 {
					b.Fatal(e)
				}
			}
		})
	}
}
