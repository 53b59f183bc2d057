package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"svc/internal/budget"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
)

func TestSizesOfAnswers(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"a hit": {reflect.TypeFor[remoteHit]().Size(), hitBytes}, "a pin": {reflect.TypeFor[pinnedHit[remoteHit]]().Size(), pinBytes},
		"a score": {reflect.TypeFor[rank.ScoreValue]().Size(), scoreBytes}, "a facet": {reflect.TypeFor[facet]().Size(), facetBytes},
		"a value": {reflect.TypeFor[facetValue]().Size(), valueBytes},
	} {
		if size[0] > size[1] {
			t.Errorf("%s has %d bytes, but %d are charged", name, size[0], size[1])
		}
	}
}

// listed repeats an item n times, separated by commas, with its number for %d.
func listed(item string, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// hitOf returns a hit in which one member of _federation is replaced.
func hitOf(name, value string) string {
	members := map[string]string{"indexUid": `"a"`, "queriesPosition": "0", "weightedRankingScore": "1", "weightedScoreValues": `[{"weightedScore":1}]`, "extra_document": "{}"}
	if name != "" {
		members[name] = value
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(all, `"`+name+`":`+members[name])
	}
	return `{"_federation":{` + strings.Join(all, ",") + `}}`
}

// grownMembers returns values of the members of an answer. Each has about n bytes and is large in one way.
func grownMembers(n int) map[string][]string {
	numbers := []string{strings.Repeat("9", n), "9223372036854775807", "18446744073709551616", "-1", "1e308", "0." + strings.Repeat("0", n)}
	facets := func(distribution string) string { return `{"a":{"distribution":{` + distribution + `},"stats":{}}}` }
	return map[string][]string{
		"processingTimeMs": numbers, "estimatedTotalHits": numbers, "totalHits": numbers, "semanticHitCount": numbers,
		"facetsByIndex": {
			`{` + listed(`"%d":{}`, n/10) + `}`, `{` + listed(`"a":{}`, n/7) + `}`, facets(listed(`"%d":{}`, n/12)), facets(listed(`"%d":{"":1}`, n/15)), facets(`"g":{` + listed(`"%d":1`, n/9) + `}`),
			facets(`"g":{` + listed(`"":1`, n/5) + `}`), facets(`"g":{"` + strings.Repeat(",", n) + `":1}`), facets(`"g":{"` + strings.Repeat("ﷺ", n/3) + `":1}`), facets(`"g":{` + listed(`"\u00e9%d":9223372036854775807`, n/30) + `}`),
			facets(listed(`"g":{"x":1}`, n/12)), facets(`"` + strings.Repeat("x", n) + `":{"x":1}`), facets(`"g":{` + listed(`"Σ%d":1`, n/10) + `}`),
			`{"a":{"distribution":{},"stats":{` + listed(`"%d":{"min":1,"max":2}`, n/30) + `}}}`, `{"a":{"stats":{"g":{` + listed(`"min":1`, n/8) + `}}}}`,
		},
		"queryVectors": {
			`{` + listed(`"%d":[1]`, n/10) + `}`, `{` + listed(`"0":[1]`, n/8) + `}`, `{"0":[` + listed("1", n/2) + `]}`, `{"0":{` + listed(`"a":1`, n/6) + `}}`, `{"` + strings.Repeat("1", n) + `":[]}`, `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		},
		"metadata": {
			`[` + listed(`{}`, n/3) + `]`, `[{` + listed(`"queryUid":"x"`, n/15) + `}]`, `[{` + listed(`"%d":"x"`, n/12) + `}]`, `[{"indexUid":"` + strings.Repeat("x", n) + `"}]`, `{` + listed(`"%d":1`, n/8) + `}`,
		},
	}
}

// grownHits returns values of the members by which hits are merged.
func grownHits(n int) map[string][]string {
	numbers := []string{strings.Repeat("9", n), "9223372036854775808", "1e308", "-1e308", "1e999", "-1", "0." + strings.Repeat("0", n)}
	return map[string][]string{
		"indexUid": {`"` + strings.Repeat("x", n) + `"`, `"` + strings.Repeat(`\u00e9`, n/6) + `"`, `["a"]`}, "queriesPosition": numbers, "weightedRankingScore": numbers, "pinnedPosition": numbers, "spelling": numbers,
		"weightedScoreValues": {
			`[` + listed(`{"weightedScore":1}`, n/20) + `]`, `[` + listed(`{"sort":{}}`, n/12) + `]`, `[` + listed(`{}`, n/3) + `]`, `[{` + listed(`"sort":{}`, n/10) + `}]`, `[{"sort":{"value":"` + strings.Repeat("ﷺ", n/3) + `"}}]`,
			`[{"sort":{"value":"` + strings.Repeat("x", n) + `"}}]`, `[` + listed(`{"sort":{"value":"é"}}`, n/25) + `]`, `[{"geoSort":{"distance":1e308,"asc":true}}]`, `[{"weightedScore":` + strings.Repeat("1", n) + `}]`, `[{"vectorSort":1e999}]`,
		},
		"extra_document": {`{` + listed(`"%d":1`, n/8) + `}`, `{"g":[` + listed("1", n/2) + `]}`, `{"g":[` + listed(`"%d"`, n/9) + `]}`, `[` + listed("1", n/2) + `]`},
	}
}

// grownAnswers returns answers of about n bytes, in both forms.
func grownAnswers(n int) map[string][]byte {
	all := map[string][]byte{}
	add := func(what, text string) {
		all[what] = []byte(text)
		spaced := strings.Replace(text, `,`, ` , `, 1)
		all[what+", with a space"] = []byte(spaced)
	}
	for name, values := range grownMembers(n) {
		for i, value := range values {
			add(fmt.Sprintf("%s %d", name, i), `{"hits":[],"totalHits":1,"`+name+`":`+value+`}`)
		}
	}
	for name, values := range grownHits(n) {
		for i, value := range values {
			hit := hitOf(name, value)
			add(fmt.Sprintf("%s %d", name, i), `{"hits":[`+hit+`],"totalHits":1}`)
			few := grownHits(200)[name][i]
			add(fmt.Sprintf("%s %d, in many hits", name, i), `{"hits":[`+listed(hitOf(name, few), n/(len(few)+100))+`],"totalHits":1}`)
			// The first hit is large, and all others may be as large.
			add(fmt.Sprintf("%s %d, and many hits", name, i), `{"hits":[`+hitOf(name, grownHits(n / 8)[name][i])+`,`+listed(hitOf("weightedScoreValues", "[]"), n/130)+`],"totalHits":1}`)
		}
	}
	add("hits that are none", `{"hits":[`+listed(`{}`, n/3)+`],"totalHits":1}`)
	add("hits without values", `{"hits":[`+listed(`{"_federation":{}}`, n/19)+`],"totalHits":1}`)
	add("other members", `{"hits":[],"totalHits":1,`+listed(`"%d":1`, n/8)+`}`)
	add("a long name", `{"hits":[],"totalHits":1,"`+strings.Repeat(`\n`, n/2)+`":1}`)
	add("nesting", `{"hits":[],"totalHits":1,"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`)
	all["white space"] = []byte(`{"hits" :[` + strings.Repeat(" ", n) + `],"totalHits":1}`)
	all["nothing"] = nil
	maps.Copy(all, grownPeerAnswers(n))
	return all
}

// grownPeerAnswers returns answers as PeerType.
func grownPeerAnswers(n int) map[string][]byte {
	all := map[string][]byte{}
	number := func(b []byte, x ...int) []byte {
		for _, x := range x {
			b = binary.AppendUvarint(b, uint64(x))
		}
		return b
	}
	head := func(vectors, metadata string) []byte {
		return appendText(appendText([]byte{1, 2, 0}, vectors), metadata)
	}
	hit := func(b []byte, values int, first bool) []byte {
		b = number(b, len(peerMember)+2, 1)
		if first {
			b = appendText(b, "a")
		} else {
			b = append(b, 0)
		}
		b = number(appendFloat64(number(b, 0), 1), values)
		for range values {
			b = append(b, byte(rank.ByField), byte(rank.OfNothing))
		}
		return append(b, 0, 0)
	}
	hits := func(count, values int) []byte {
		var shown bytes.Buffer
		notes := number(head("", ""), count)
		for i := range count {
			shown.WriteString("{" + peerMember + "}")
			of := 0
			if i == 0 {
				of = values
			}
			notes = hit(notes, of, i == 0)
		}
		b := append(shown.Bytes(), append(notes, 0)...)
		return binary.LittleEndian.AppendUint32(b, uint32(shown.Len()))
	}
	facets := func(b []byte) []byte { return append(append(append(head("", ""), 0), b...), 0, 0, 0, 0) }
	add := func(what string, b []byte) { all["peer: "+what] = b }
	add("hits", hits(n/40, 1))
	add("values of the first hit", hits(n/80, n/4))
	add("hits that are not there", append(number(head("", ""), 1<<40), 0, 0, 0, 0))
	add("many hits that are none", append(append(number(head("", ""), n/leastPeerHit), make([]byte, n)...), 0, 0, 0, 0))
	for name, values := range map[string][]string{"vectors": grownMembers(n)["queryVectors"], "metadata": grownMembers(n)["metadata"]} {
		for i, value := range values {
			b := head(value, "")
			if name == "metadata" {
				b = head("", value)
			}
			add(fmt.Sprintf("%s %d", name, i), append(b, 0, 0, 0, 0, 0, 0))
		}
	}
	var values []byte
	for i := range n / 6 {
		values = append(appendText(values, fmt.Sprint(i)), 0, 1)
	}
	add("values of a facet", facets(append(number(appendText(append(number(append(appendText(number(nil, 1), "a"), 1)), []byte{1, 'g'}...)[:0], ""), 0), values...)))
	one := append(appendText(number(nil, 1), "a"), 1) // an index with a facet
	add("values of one facet", facets(append(number(append(appendText(one, "g"), 0), n/6), values...)))
	add("values that are not there", facets(number(append(appendText(slices.Clone(one), "g"), 0), 1<<30)))
	add("empty values", facets(append(number(append(appendText(slices.Clone(one), "g"), 0), n/3), make([]byte, n)...)))
	add("empty facets", facets(append(number(appendText(number(nil, 1), "a"), n/3), make([]byte, n)...)))
	add("empty indexes", facets(append(number(nil, n/2), make([]byte, n)...)))
	return all
}

// read parses an answer in its form.
func read(what string, body []byte, asked *Asked, reading *Reading) (*RemoteAnswer, error) {
	if strings.HasPrefix(what, "peer: ") {
		return ParsePeer("r", body, asked, reading)
	}
	return ParseRemote("r", body, asked, reading)
}

var emptyRequest FederatedRequest // its memory is not that of an answer

// use merges and shows an answer like a search, and returns how much was charged.
func (a *RemoteAnswer) use(t turns.Turn) error {
	g := "g"
	r := FederatedResponse{request: &emptyRequest, remotes: []*RemoteAnswer{a}}
	m := r.newMerger(t, &federationPlan{distinct: &g}, nil)
	for _, h := range weave(m.pins(federatedPins(nil, []*RemoteAnswer{a})), m.next, 0, 20) {
		h.theirs().appendShown(nil, "r")
	}
	a.settle()
	merging := Reading{Hold: t.Account().Hold, Yield: t.Yield}
	most := 100
	for uid, of := range a.facets {
		for k := range of {
			of[k].order = settings.Count
		}
		mergeFacets(&merging, []indexFacets{{uid, of}, {uid, of}}, &most)
	}
	return errors.Join(m.err, merging.ended)
}

// fakeTurn is a turn with an account.
type fakeTurn struct {
	account *budget.Account
	yields  int
	ends    int // number of the yield that fails; 0: none
}

var errOver = errors.New("over")

func (f *fakeTurn) Yield() error {
	if f.yields++; f.yields == f.ends {
		return errOver
	}
	return nil
}
func (f *fakeTurn) Pause()                   {}
func (f *fakeTurn) Resume()                  {}
func (f *fakeTurn) Account() *budget.Account { return f.account }

// What an answer may take beside what is charged: some copies of its text, of which there is one at a time.
const uncharged, unchargedFixed = 4, 16 << 10

// mostCharged is the maximum charge for an answer and its merged form, in multiples of its length. A facet value, which may take six
// bytes, is an item of three lists.
const mostCharged = 160

// bounded parses and merges an answer, and compares the allocated bytes with the charge, and the charge with the length of the answer.
func bounded(t *testing.T, what string, body []byte, asked *Asked) (err error) {
	t.Helper()
	var spent, held int
	for range 3 { // other allocations of the process count, too
		account := budget.New(1<<40, nil).Open(1)
		turn := &fakeTurn{account: account}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var a *RemoteAnswer
		own := slices.Grow(bytes.Clone(body), 64)
		if a, err = read(what, own, asked, &Reading{Hold: account.Hold, Yield: turn.Yield}); err == nil {
			err = a.use(turn)
		}
		runtime.ReadMemStats(&after)
		spent, held = int(after.TotalAlloc-before.TotalAlloc), int(account.Held())
		if spent <= held+uncharged*len(body)+unchargedFixed {
			break
		}
	}
	if spent > held+uncharged*len(body)+unchargedFixed {
		t.Errorf("%s: %d bytes allocated for %d, %d charged (%v)", what, spent, len(body), held, err)
	}
	if held > mostCharged*len(body)+2*chargedAtOnce {
		t.Errorf("%s: %d bytes are charged for %d", what, held, len(body))
	}
	return err
}

// TestMemoryOfAnswersIsCharged parses and merges answers in which one member is large, and compares allocated with charged bytes.
func TestMemoryOfAnswersIsCharged(t *testing.T) {
	const n = 20 << 10
	for name := range answerMembers {
		if grownMembers(1)[name] == nil {
			t.Errorf("the member %s is not tested", name)
		}
	}
	for name := range hitMembers {
		if grownHits(1)[name] == nil {
			t.Errorf("the member %s of hits is not tested", name)
		}
	}
	answers := grownAnswers(n)
	taken, dropped := 0, 0
	for _, what := range slices.Sorted(maps.Keys(answers)) {
		body := answers[what]
		for form, asked := range map[string]*Asked{"asked for": everything, "not asked for": {Hits: 1 << 20}} {
			err := bounded(t, what+", "+form, body, asked)
			if err == nil {
				taken++
			} else {
				dropped++
			}
		}
	}
	if taken < 60 || dropped < 60 {
		t.Errorf("%d answers are valid, %d are not", taken, dropped)
	}
}

// TestParsingStops parses large answers with little memory, and with turns that end at some yield.
func TestParsingStops(t *testing.T) {
	answers := grownAnswers(40 << 10)
	yielded, refused := 0, 0
	for what, body := range answers {
		turn := &fakeTurn{account: budget.New(1<<40, nil).Open(1)}
		reading := &Reading{Yield: func() error { return errOver }}
		if _, err := read(what, bytes.Clone(body), everything, reading); reading.Ended() != nil {
			if yielded++; !errors.Is(err, errOver) {
				t.Errorf("%s: got %v when the turn ended", what, err)
			}
		}
		full := &Reading{Hold: func(int64) error { return budget.ErrFull }}
		if _, err := read(what, bytes.Clone(body), everything, full); full.Ended() != nil {
			if refused++; !errors.Is(err, budget.ErrFull) {
				t.Errorf("%s: got %v without memory", what, err)
			}
		}
		a, err := read(what, bytes.Clone(body), everything, new(Reading))
		if err != nil {
			continue
		}
		if err := a.use(turn); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for at := 1; at <= turn.yields; at += 1 + turn.yields/2 {
			if a, err = read(what, bytes.Clone(body), everything, new(Reading)); err != nil {
				t.Fatal(err)
			}
			if err := a.use(&fakeTurn{account: turn.account, ends: at}); !errors.Is(err, errOver) {
				t.Errorf("%s: merging continues after yield %d of %d: %v", what, at, turn.yields, err)
			}
		}
	}
	if yielded < 20 || refused < 30 {
		t.Errorf("%d parses ended with their turn, %d out of memory", yielded, refused)
	}
}

// TestUnrequestedMembersAreDropped parses an answer with all members for requests without some of them.
func TestUnrequestedMembersAreDropped(t *testing.T) {
	body := `{"hits":[` + hitOf("extra_document", `{"g":1}`) + `],"totalHits":9223372036854775807,"facetsByIndex":{"a":{"distribution":{"g":{"x":1},"h":{"x":1},"g.x":{"x":2}}},"z":{"distribution":{"g":{"x":1}}}},` +
		`"queryVectors":{"0":[1,2],"1":[3],"x":[4]},"metadata":[{"indexUid":"a","queryUid":"u","more":{"x":1}}]}`
	for what, tt := range map[string]struct {
		asked Asked
		want  string
	}{
		"nothing":  {Asked{Hits: 1}, `0 vectors, 0 descriptions, [], ""`},
		"facets":   {Asked{Hits: 1, Facets: []AskedFacets{{"a", []string{"g"}}}}, `0 vectors, 0 descriptions, [g g.x], ""`},
		"others":   {Asked{Hits: 1, Facets: []AskedFacets{{"b", []string{"g"}}}}, `0 vectors, 0 descriptions, [], ""`},
		"vectors":  {Asked{Hits: 1, Vectors: true, Queries: 1}, `1 vectors, 0 descriptions, [], ""`},
		"metadata": {Asked{Hits: 1, Metadata: true, Queries: 1}, `0 vectors, 1 descriptions, [], ""`},
		"hidden":   {Asked{Hits: 1, Hidden: true}, `0 vectors, 0 descriptions, [], "{\"g\":1}"`},
	} {
		a, err := ParseRemote("r", []byte(body), &tt.asked, new(Reading))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var names []string
		for _, f := range a.facets["a"] {
			names = append(names, f.name)
		}
		if names == nil {
			names = []string{}
		}
		if got := fmt.Sprintf("%d vectors, %d descriptions, %v, %q", len(a.vectors), len(a.metadata), names, a.hits[0].extra); got != tt.want || len(a.facets) > 1 {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
	}
	for _, asked := range []Asked{{}, {Hits: 1, Metadata: true}} {
		if _, err := ParseRemote("r", []byte(body), &asked, new(Reading)); err == nil {
			t.Errorf("unrequested members were kept: %+v", asked)
		}
	}
}

// TestTotalsOfRemotes has remotes whose totals overflow.
func TestTotalsOfRemotes(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["g"]}`, `{"id":1,"t":"red","g":"x"}`, `{"id":2,"t":"red","g":"y"}`)
	var answers []*RemoteAnswer
	for _, total := range []string{"9223372036854775807", "9223372036854775807", "99999999999999999999999"} {
		body := `{"hits":[` + hitOf("", "") + `],"estimatedTotalHits":` + total + `,"facetsByIndex":{"a":{"distribution":{"g":{"x":9223372036854775807}},"stats":{}}}}`
		a, err := ParseRemote("there", []byte(body), everything, new(Reading))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	for page, want := range map[int]string{0: `"estimatedTotalHits":9223372036854775807,`, 2: `"totalPages":4611686018427387904,"totalHits":9223372036854775807,`} {
		f := FederatedRequest{Limit: 2, Networked: true, Self: "here", Remotes: func(context.Context) []*RemoteAnswer { return answers }}
		if page > 0 {
			f.HitsPerPage = &page
		}
		_, text, err := l.federate(&f, map[string][]string{"a": {"g"}}, asked{uid: "a", weight: 1, Request: Request{Query: "red"}})
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, ":-") {
			t.Errorf("%v: %s", err, text)
		}
	}
}
