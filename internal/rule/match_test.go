package rule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"svc/internal/filter"
	"svc/internal/vfs"
)

// ruleOf parses a rule from JSON without a uid.
func ruleOf(t testing.TB, uid, priority, conditions, actions string) *Rule {
	t.Helper()
	if priority != "" {
		priority = `"priority":` + priority + `,`
	}
	r, err := Read([]byte(`{"uid":"` + uid + `",` + priority + `"conditions":[` + conditions + `],"actions":[` + actions + `]}`))
	must(t, err)
	return r
}

func pinOf(index, id string, position int) string {
	if index != "" {
		index = `"indexUid":"` + index + `",`
	}
	return fmt.Sprintf(`{"selector":{%s"id":%q},"action":{"type":"pin","position":%d}}`, index, id, position)
}

func parse(t testing.TB, f string) *filter.Expr {
	t.Helper()
	b, err := json.Marshal(f)
	must(t, err)
	e, err := filter.FromJSON(b, "invalid_search_filter")
	must(t, err)
	return e
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// matches formats what rules do as "id@position …".
func matches(s *Set, index, query string, f *filter.Expr, now time.Time) string {
	var list []string
	for _, p := range s.Match(index, query, f, now).Pins {
		list = append(list, fmt.Sprintf("%s@%d", p.ID, p.Position))
	}
	return strings.Join(list, " ")
}

func TestConditions(t *testing.T) {
	contains := func(s string) string { return fmt.Sprintf(`{"scope":"query","contains":%q}`, s) }
	for _, tt := range []struct {
		conditions, query string
		want              bool
	}{
		{``, "", true}, {``, "x", true},
		{`{"scope":"query","isEmpty":true}`, "", true},
		{`{"scope":"query","isEmpty":true}`, " \t\u3000", true},
		{`{"scope":"query","isEmpty":true}`, "x", false},
		{`{"scope":"query","isEmpty":false}`, "", false},
		{`{"scope":"query","isEmpty":false}`, " ", false},
		{`{"scope":"query","isEmpty":false}`, "x", true},
		{contains("cave"), "deep CAVE", true},
		{contains("cave"), "concaveman", true},
		{contains("cave"), "ca ve", false},
		{contains("cave"), "", false},
		{contains("  Cave "), "cave", true},
		{contains("deep  cave"), "deep cave", false},
		{contains(""), "", true}, {contains(" "), "x", true},
		{contains("cafe"), "café", false}, // an é is not an e followed by something
		{contains("café"), "cafe", false},
		{contains("café"), "un café", true},
		{contains("caf\u0065\u0301"), "un café", true},
		{contains("café"), "un cafe\u0301", true},
		{contains("CAFÉ"), "un cafe\u0301", true},
		{contains("ｃａｖｅ"), "cave", true},
		{contains("office"), "oﬃce", true},
		{contains("10km²"), "10km2", true},
		{contains("straße"), "STRASSE", false},
		{contains("한"), norm.NFD.String("한국"), true},
		{contains("하"), "한국", false},
		{contains("a") + "," + contains("b"), "b a", true},
		{contains("a") + "," + contains("b"), "a", false},
		{contains("a") + `,{"scope":"query","isEmpty":true}`, "a", false},
		{contains("a") + `,{"scope":"query","isEmpty":false}`, "a", true},
		{`{"scope":"query","isEmpty":true},{"scope":"query","isEmpty":false}`, "", false},
		{`{"scope":"time"}`, "", true},
		{`{"scope":"time","start":"2026-06-01T12:00:00Z"}`, "", true},
		{`{"scope":"time","start":"2026-06-01T12:00:00.000000001Z"}`, "", false},
		{`{"scope":"time","end":"2026-06-01T12:00:00Z"}`, "", true},
		{`{"scope":"time","end":"2026-06-01T11:59:59.999999999Z"}`, "", false},
		{`{"scope":"time","start":"2026-06-01T13:00:00+01:00","end":"2026-06-01T11:00:00-01:00"}`, "", true},
		{`{"scope":"time","start":"2026-06-01T11:00:00Z"},{"scope":"time","end":"2026-06-01T11:30:00Z"}`, "", false},
	} {
		for _, index := range []string{"", "i"} {
			s := newSet([]*Rule{ruleOf(t, "r", "", tt.conditions, pinOf(index, "1", 0))}, DefaultBounds)
			if got := matches(s, "i", tt.query, nil, noon) != ""; got != tt.want {
				t.Errorf("[%s] %q: %t", tt.conditions, tt.query, got)
			}
			if got := matches(s, "j", tt.query, nil, noon) != ""; got != (tt.want && index == "") {
				t.Errorf("[%s] %q in another index: %t", tt.conditions, tt.query, got)
			}
		}
	}
}

func TestFilterCondition(t *testing.T) {
	s := newSet([]*Rule{ruleOf(t, "r", "", `{"scope":"filter","values":{"color":"red","size":3}}`, pinOf("", "1", 0))}, DefaultBounds)
	for f, want := range map[string]bool{
		"":                                                 false,
		"color = red":                                      false,
		"color = RED AND size=3":                           true,
		"color = red AND size = 3.0 AND x > 2":             true,
		"(color = red AND size = 3) OR y = 1":              true,
		"color = red OR size = 3":                          false,
		"color IN [blue, red] AND size IN [1, 3]":          true,
		"NOT (color != red OR size != 3)":                  true,
		"NOT (color = red AND size = 3)":                   false,
		"color = red AND NOT size = 3":                     false,
		"color = red AND size >= 3":                        false,
		"(a = 1 OR color = red) AND (b = 1 OR size = 3)":   true,
		"(a = 1 AND color = red) OR (b = 1 AND size = 3)":  false,
		"color = red AND size = 3 AND NOT color IN [blue]": true,
		"color IN [] AND size = 3":                         false,
	} {
		if got := matches(s, "i", "", parse(t, f), noon) != ""; got != want {
			t.Errorf("%s: %t", f, got)
		}
	}
}

func TestPrecedence(t *testing.T) {
	for i, tt := range []struct {
		rules []*Rule
		want  string
	}{
		{[]*Rule{ruleOf(t, "a", "5", "", pinOf("i", "1", 0)), ruleOf(t, "b", "1", "", pinOf("i", "1", 2))}, "1@2"},
		{[]*Rule{ruleOf(t, "a", "", "", pinOf("i", "1", 0)), ruleOf(t, "b", "18446744073709551614", "", pinOf("i", "1", 2))}, "1@2"},
		{[]*Rule{ruleOf(t, "a", "1", "", pinOf("", "1", 0)), ruleOf(t, "b", "1", "", pinOf("i", "1", 2))}, "1@0"},
		{[]*Rule{ruleOf(t, "a", "5", "", pinOf("i", "1", 0)), ruleOf(t, "b", "1", "", pinOf("j", "1", 2))}, "1@0"},
		{[]*Rule{ruleOf(t, "a", "5", "", pinOf("i", "1", 0)), ruleOf(t, "b", "1", `{"scope":"query","contains":"y"}`, pinOf("i", "1", 2))}, "1@0"},
		{[]*Rule{ruleOf(t, "a", "2", "", pinOf("i", "1", 1)), ruleOf(t, "b", "1", "", pinOf("i", "2", 1)), ruleOf(t, "c", "", "", pinOf("i", "3", 0))}, "3@0 2@1 1@1"},
		{[]*Rule{ruleOf(t, "a", "", "", pinOf("i", "1", 1)+","+pinOf("", "1", 0)+","+pinOf("i", "2", 1))}, "1@1 2@1"},
		{[]*Rule{ruleOf(t, "a", "", "", pinOf("j", "1", 1)+","+pinOf("i", "1", 4))}, "1@4"},
	} {
		if got := matches(newSet(tt.rules, DefaultBounds), "i", "x", nil, noon); got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
	}
}

// slow is the reference implementation: it asks rule by rule.
func slow(all []*Rule, index, query string, f *filter.Expr, now time.Time) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *Rule) int {
		switch {
		case a.precedence() < b.precedence():
			return -1
		case a.precedence() > b.precedence():
			return 1
		}
		return strings.Compare(a.UID, b.UID)
	})
	type pin struct {
		id string
		at uint32
	}
	var pins []pin
	for _, r := range all {
		ok := r.Active
		for _, c := range r.Conditions {
			switch {
			case c.Time != nil:
				ok = ok && (c.Time.Start == nil || !now.Before(*c.Time.Start)) && (c.Time.End == nil || !now.After(*c.Time.End))
			case c.Filter != nil:
				var keys []string
				for _, v := range c.Filter.Values {
					keys = append(keys, v.Key())
				}
				ok = ok && f.Fixes(keys)
			case c.Query.IsEmpty != nil:
				ok = ok && *c.Query.IsEmpty == (strings.TrimSpace(query) == "")
			default:
				ok = ok && strings.Contains(fold(query), fold(strings.TrimSpace(*c.Query.Contains)))
			}
		}
		for _, a := range r.Actions {
			if ok && a.Pin != nil && a.Selector.ID != nil && (a.Selector.IndexUID == nil || *a.Selector.IndexUID == index) &&
				!slices.ContainsFunc(pins, func(p pin) bool { return p.id == *a.Selector.ID }) {
				pins = append(pins, pin{*a.Selector.ID, *a.Pin})
			}
		}
	}
	slices.SortStableFunc(pins, func(a, b pin) int { return int(a.at) - int(b.at) })
	var list []string
	for _, p := range pins {
		list = append(list, fmt.Sprintf("%s@%d", p.id, p.at))
	}
	return strings.Join(list, " ")
}

// TestMatchAgreesWithAskingEveryRule changes random rules while the clock moves forward and back.
func TestMatchAgreesWithAskingEveryRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		const letters = "aabé"
		var b strings.Builder
		for range rng.IntN(4) {
			b.WriteString(string([]rune(letters)[rng.IntN(4)]))
		}
		return b.String()
	}
	moment := func() string { return noon.Add(time.Duration(rng.IntN(20)-10) * time.Second).Format(time.RFC3339) }
	condition := func() string {
		switch rng.IntN(6) {
		case 0:
			return fmt.Sprintf(`{"scope":"query","isEmpty":%t}`, rng.IntN(2) == 0)
		case 1:
			return fmt.Sprintf(`{"scope":"time","start":%q}`, moment())
		case 2:
			return fmt.Sprintf(`{"scope":"time","end":%q}`, moment())
		case 3:
			return fmt.Sprintf(`{"scope":"filter","values":{"%c":%d}}`, 'a'+rng.IntN(2), rng.IntN(2))
		}
		return fmt.Sprintf(`{"scope":"query","contains":%q}`, word())
	}
	indexes := []string{"", "i", "j"}
	filters := []*filter.Expr{nil, parse(t, "a = 0"), parse(t, "a = 1 AND b = 0"), parse(t, "a = 0 OR b = 1")}
	found := 0
	for range 60 {
		fsys := open(t, vfs.NewMem())
		for range 30 {
			uid := fmt.Sprintf("r%d", rng.IntN(25))
			var conditions []string
			for range rng.IntN(4) {
				conditions = append(conditions, condition())
			}
			var actions []string
			for range 1 + rng.IntN(3) {
				actions = append(actions, pinOf(indexes[rng.IntN(3)], string(rune('0'+rng.IntN(6))), rng.IntN(4)))
			}
			made := ruleOf(t, uid, []string{"", "1", "2"}[rng.IntN(3)], strings.Join(conditions, ","), strings.Join(actions, ","))
			active := rng.IntN(5) > 0
			_, _, err := fsys.Put(uid, Change{Priority: &made.Priority, Active: &active, Conditions: &made.Conditions, Actions: made.Actions, GivesActions: true})
			must(t, err)
			set := fsys.Set()
			for range 5 {
				index, query, f := indexes[1+rng.IntN(2)], word()+[]string{"", " ", " b"}[rng.IntN(3)], filters[rng.IntN(len(filters))]
				now := noon.Add(time.Duration(rng.IntN(40)-20) * time.Second / 2)
				want := slow(set.List(), index, query, f, now)
				if got := matches(set, index, query, f, now); got != want {
					t.Fatalf("%s %q %s at %s: %s, want %s\n%s", index, query, f, now, got, want, fsys.shown())
				}
				if want != "" {
					found++
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d searches matched a rule", found)
	}
}

// TestTreeAgreesWithContains searches random texts for random texts.
func TestTreeAgreesWithContains(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	text := func(most int) string {
		b := make([]byte, rng.IntN(most))
		for i := range b {
			b[i] = "ab\x00\xff"[rng.IntN(4)]
		}
		return string(b)
	}
	for range 300 {
		texts := map[string]postings{}
		for n := range rng.IntN(40) {
			if s := text(6); s != "" {
				texts[s] = postings{open: append(texts[s].open, uint32(n))}
			}
		}
		tree := newTree(texts)
		for range 20 {
			s := text(20)
			var want []uint32
			for in, n := range texts {
				if strings.Contains(s, in) {
					want = append(want, n.open...)
				}
			}
			slices.Sort(want)
			got := tree.appendIn(nil, func() string { return s }, 0)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Fatalf("in %q: %v, want %v of %v", s, got, want, texts)
			}
		}
	}
}

// manyRules returns rules with one prefix that searches for other words do not match.
func manyRules(t testing.TB, n int) *Set {
	all := make([]*Rule, n)
	for i := range all {
		all[i] = ruleOf(t, fmt.Sprintf("r%06d", i), "", fmt.Sprintf(`{"scope":"query","contains":"winter sale %d"}`, i), pinOf("i", "1", 0))
	}
	return newSet(all, DefaultBounds)
}

func BenchmarkMatchNone(b *testing.B) {
	set := manyRules(b, 10_000)
	for name, query := range map[string]string{"other words": "red running shoes for men", "near": "the winter sale of red shoes", "long": strings.Repeat("winter sale ", 40)} {
		b.Run(name, func(b *testing.B) {
			set.Match("i", "", nil, noon)
			b.ReportAllocs()
			for b.Loop() {
				set.Match("i", query, nil, noon)
			}
		})
	}
}
