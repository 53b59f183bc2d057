package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/budget"
	"svc/internal/document"
	"svc/internal/jsontext"
	"svc/internal/turns"
)

// bothForms parses an answer as JSON and as PeerType, and compares the results.
func bothForms(t testing.TB, found *FederatedResponse) (*RemoteAnswer, *RemoteAnswer) {
	t.Helper()
	text, err := found.AppendJSON(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ParseRemote("there", bytes.Clone(text), everything, new(Reading))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if !found.ForPeers() {
		t.Fatal("the answer cannot be encoded for an instance")
	}
	body, err := found.AppendPeer(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePeer("there", body, everything, new(Reading))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if w, g := comparableAnswer(want), comparableAnswer(got); w != g {
		t.Fatalf("the forms differ\ngot  %s\nwant %s\nof   %s", g, w, text)
	}
	return want, got
}

// comparableAnswer prints an answer without its processing time.
func comparableAnswer(a *RemoteAnswer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "total %d, by meaning: %v, %d vectors", a.total, a.semantic, len(a.vectors))
	for _, v := range a.vectors {
		fmt.Fprintf(&b, " %s=%s", v.position, v.vector)
	}
	for _, m := range a.metadata {
		fmt.Fprintf(&b, " %s", m[:3]) // the queryUid changes each time it is written
	}
	hit := func(h *remoteHit) {
		if h.broken(a.body) {
			b.WriteString("\nbroken")
		}
		fmt.Fprintf(&b, "\n%s %q %s", h.appendShown(nil, a.Remote), h.extra, h.uid)
		if h.spelling != 0 {
			fmt.Fprintf(&b, " spelling %d", h.spelling)
		}
		if h.place != nil {
			fmt.Fprintf(&b, " pinned to %d", *h.place)
		}
		for _, v := range h.values {
			fmt.Fprintf(&b, " %d:%v/%v/%d/%v/%v/%q", v.Kind, v.Score, v.Desc, v.Sort.Class, v.Sort.Number, v.Sort.Rest, v.Sort.Text)
		}
	}
	for i := range a.hits {
		hit(&a.hits[i])
	}
	for i := range a.pins {
		hit(&a.pins[i].hit)
	}
	b.WriteByte('\n')
	b.WriteString(comparableFacets(a.facets))
	return b.String()
}

// TestPeerAnswers compares both forms of answers to random searches.
func TestPeerAnswers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLibrary(t)
	spelled := []string{"Änderung", `a\"b`, "x", "Zoë", `line\nbreak`, "Straße", "ΣΟΦΟΣ", "X", "12", "-3.5", strings.Repeat("long ", 120)}
	words := []string{"red", "fox", "blue", "moon", "öx", "rivér"}
	for n, uid := range []string{"a", "b"} {
		var docs []string
		for i := range 80 {
			doc := fmt.Sprintf(`{"id":%d,"t":"%s %s","g":["%s","%s"],"n":%d`, i, words[r.IntN(6)], words[r.IntN(6)], spelled[r.IntN(len(spelled))], spelled[r.IntN(len(spelled))], r.IntN(9)-4)
			if r.IntN(2) == 0 {
				doc += fmt.Sprintf(`,"m":%s`, []string{`"Text ` + words[r.IntN(6)] + `"`, "1.25e3", "true", "null", `"12"`}[r.IntN(5)])
			}
			if r.IntN(3) == 0 {
				doc = strings.Replace(doc, `"n":`, fmt.Sprintf(`"n":[%d,%d.5],"was":`, 1<<63+uint64(r.IntN(5)), r.IntN(3)), 1)
			}
			if r.IntN(4) == 0 {
				doc += `,"deep":` + strings.Repeat("[", document.MaxDepth-1) + strings.Repeat("]", document.MaxDepth-1)
			}
			if r.IntN(2) == 0 {
				doc += fmt.Sprintf(`,"_geo":{"lat":%d,"lng":%d.5}`, r.IntN(9), r.IntN(9))
			}
			docs = append(docs, doc+"}")
		}
		order := `,"faceting":{"sortFacetValuesBy":{"*":"count"},"maxValuesPerFacet":6}`
		if n == 1 {
			order = ""
		}
		l.put(uid, `{"filterableAttributes":["g","n","m"],"sortableAttributes":["n","m","_geo"],"displayedAttributes":["id","t","m","deep","_geo"]`+order+`}`, docs...)
	}
	rules := rulesOf(t, pinning(pinnedHit[int]{1, 3}, pinnedHit[int]{4, 70}))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	spelling := false
	for range 300 {
		f := FederatedRequest{Offset: r.IntN(3), Limit: r.IntN(30), Proxy: true, Networked: r.IntN(2) == 0, Self: pick("", "self"), Metadata: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			f.Distinct = &[]string{pick("g", "n", "m")}[0]
		}
		if r.IntN(3) == 0 {
			n := r.IntN(20)
			f.HitsPerPage = &n
		}
		facets := map[string][]string{}
		var sort []string
		for range r.IntN(3) {
			sort = append(sort, pick("n", "m", "_geoPoint(1,2)")+":"+pick("asc", "desc"))
		}
		words, pinned := []string{"red", "fox ox", "rivér öx", "moon"}, r.IntN(3) == 0
		if r.IntN(4) == 0 {
			words = []string{""}
		}
		var queries []asked
		for range 1 + r.IntN(3) {
			q := asked{uid: pick("a", "b"), weight: []float64{1, .7, 3}[r.IntN(3)], Request: Request{Query: pick(words...), CropLength: 3, CropMarker: "…",
				ShowRankingScore: r.IntN(2) == 0, ShowRankingScoreDetails: r.IntN(4) == 0, ShowMatchesPosition: r.IntN(4) == 0}}
			q.Sort = sort // all queries sort, or they would not be comparable
			if pinned {
				q.Rules = rules
			}
			if r.IntN(3) == 0 {
				q.AttributesToRetrieve = []string{}
			}
			if r.IntN(3) == 0 {
				q.AttributesToHighlight = []string{"*"}
			}
			if r.IntN(2) == 0 {
				facets[q.uid] = [][]string{{"*"}, {"g"}, {"m", "n"}, {}}[r.IntN(4)]
			}
			queries = append(queries, q)
		}
		if strings.Contains(compareForms(t, l, &f, facets, queries), " spelling ") {
			spelling = true
		}
	}
	if !spelling {
		t.Error("no hit differs from a query in accents")
	}
}

// compareForms compares both forms of the answer to a search, and returns it as comparableAnswer.
func compareForms(t *testing.T, l *library, f *FederatedRequest, facets map[string][]string, queries []asked) string {
	t.Helper()
	views := l.c.Views()
	defer views.Release()
	for i := range queries {
		f.Queries = append(f.Queries, FederatedQuery{View: views.Get(queries[i].uid), Request: &queries[i].Request, Weight: queries[i].weight, Position: i})
	}
	for _, uid := range l.c.UIDs() {
		if names, ok := facets[uid]; ok {
			f.Facets = append(f.Facets, IndexFacets{views.Get(uid), names})
		}
	}
	found, err := Federate(context.Background(), f, oneByOne)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := bothForms(t, found)
	return comparableAnswer(answer)
}

// peerAnswer returns an answer of two hits as PeerType.
func peerAnswer(t testing.TB) []byte {
	t.Helper()
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["g","n"],"sortableAttributes":["n"],"displayedAttributes":["id","t"]}`,
		`{"id":1,"t":"red fox","g":"x","n":1}`, `{"id":2,"t":"red moon","g":["Y","z"],"n":2}`)
	views := l.c.Views()
	defer views.Release()
	g := "g"
	f := FederatedRequest{Limit: 5, Proxy: true, Distinct: &g, Facets: []IndexFacets{{views.Get("a"), []string{"*"}}},
		Queries: []FederatedQuery{{View: views.Get("a"), Request: &Request{Query: "red", Sort: []string{"n:asc"}}, Weight: 1}}}
	found, err := Federate(context.Background(), &f, oneByOne)
	if err != nil {
		t.Fatal(err)
	}
	body, err := found.AppendPeer(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestBrokenHits merges an instance's hits that are invalid JSON: the answer must show only an error of that instance.
func TestBrokenHits(t *testing.T) {
	body := peerAnswer(t)
	here := newLibrary(t)
	here.put("a", `{"filterableAttributes":["g","n"],"sortableAttributes":["n"]}`, `{"id":7,"t":"red river","g":"q","n":3}`)
	for _, tt := range []struct{ from, to string }{
		{`"red moon"`, `"red mo"n"`},
		{`"red moon"`, "\"red\nmoon\""},
		{`{"id":2,`, `{"id":2 `},
		{`{"id":2,`, `["id":2,`},
		{`"id":2`, `"id" 2`},
		{`,"t":"red moon"`, `,"t":{"ed moon"`},
		{`["Y","z"]`, `["Y","z",`},
	} {
		broken := bytes.Replace(body, []byte(tt.from), []byte(tt.to), 1)
		if len(broken) != len(body) || bytes.Equal(broken, body) {
			t.Fatalf("%s cannot be broken", tt.from)
		}
		answer, err := ParsePeer("there", broken, everything, new(Reading))
		if err != nil {
			t.Fatal(err)
		}
		f := FederatedRequest{Limit: 5, Networked: true, Self: "here", Remotes: func(context.Context) []*RemoteAnswer { return []*RemoteAnswer{answer} }}
		got, text, err := here.federate(&f, map[string][]string{"a": {"g"}}, asked{uid: "a", weight: 1, Request: Request{Query: "red"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Hits) != 1 || got.Hits[0].ID != 7 || *got.EstimatedTotalHits != 1 || !strings.Contains(text, `"remoteErrors":{"there":{"message":"The answer of the remote`) ||
			string(got.FacetsByIndex["a"]) != `{"distribution":{"g":{"q":1}},"stats":{}}` {
			t.Errorf("%s for %s: %s", tt.to, tt.from, text)
		}
	}
}

// TestTruncatedPeerAnswers parses each prefix of an answer and some wrong lengths: all are invalid.
func TestTruncatedPeerAnswers(t *testing.T) {
	body := peerAnswer(t)
	if _, err := ParsePeer("r", bytes.Clone(body), everything, new(Reading)); err != nil {
		t.Fatal(err)
	}
	length := body[len(body)-peerTrailer:]
	for n := range len(body) - peerTrailer {
		if _, err := ParsePeer("r", append(bytes.Clone(body[:n]), length...), everything, new(Reading)); err == nil {
			t.Errorf("%d bytes of %d are accepted as an answer", n, len(body))
		}
	}
	for _, wrong := range []uint32{0, 1, binary.LittleEndian.Uint32(length) - 1, binary.LittleEndian.Uint32(length) + 1, 1<<32 - 1} {
		if _, err := ParsePeer("r", binary.LittleEndian.AppendUint32(bytes.Clone(body[:len(body)-peerTrailer]), wrong), everything, new(Reading)); err == nil {
			t.Errorf("an answer is accepted with %d bytes of hits", wrong)
		}
	}
}

// TestPeerAnswersAreCharged parses answers that claim more than the account has memory for.
func TestPeerAnswersAreCharged(t *testing.T) {
	body := peerAnswer(t)
	taken := int64(0)
	if _, err := ParsePeer("r", bytes.Clone(body), everything, &Reading{Hold: func(n int64) error { taken += n; return nil }}); err != nil || taken < 3*hitBytes {
		t.Fatalf("%d bytes are held, %v", taken, err)
	}
	for room := int64(0); room < taken; room += taken / 50 {
		left := room
		_, err := ParsePeer("r", bytes.Clone(body), everything, &Reading{Hold: func(n int64) error {
			if left -= n; left < 0 {
				return budget.ErrFull
			}
			return nil
		}})
		if !errors.Is(err, budget.ErrFull) {
			t.Errorf("with %d bytes of memory for %d: %v", room, taken, err)
		}
	}
	notes := append([]byte{0, 0, 0, 0, 0}, binary.AppendUvarint(nil, 1<<20)...) // hits of 12 MiB
	notes = append(append(notes, make([]byte, leastPeerHit<<20)...), 0, 0, 0, 0)
	if _, err := ParsePeer("r", notes, everything, &Reading{Hold: func(n int64) error {
		if n != hitBytes<<20 {
			t.Errorf("%d bytes are held", n)
		}
		return budget.ErrFull
	}}); !errors.Is(err, budget.ErrFull) {
		t.Error(err)
	}
}

// everything requests all data of the indexes of tests.
var everything = &Asked{Hits: 1 << 20, Queries: 100, Metadata: true, Vectors: true, Hidden: true, Facets: []AskedFacets{
	{"a", []string{"*"}}, {"b", []string{"*"}}, {"c", []string{"*"}}, {`"`, []string{"*"}}, {"é", []string{"*"}}}}

// FuzzPeerAnswer parses arbitrary answers. A parsed answer can be merged, shown and dropped, and its memory is charged and bounded
// by its length.
func FuzzPeerAnswer(f *testing.F) {
	f.Add(peerAnswer(f))
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, body := range grownPeerAnswers(300) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bounded(t, "peer: ", body, everything) != nil {
			return
		}
		a, err := ParsePeer("r", body, everything, new(Reading))
		if err != nil {
			return
		}
		remotes := []*RemoteAnswer{a}
		m := (&FederatedResponse{request: &FederatedRequest{}, remotes: remotes}).newMerger(turns.Of(t.Context()), &federationPlan{distinct: &[]string{"g"}[0]}, nil)
		for _, h := range weave(m.pins(federatedPins(nil, remotes)), m.next, 0, 100) {
			if shown := h.theirs().appendShown(nil, "r"); !h.spoilt() && !json.Valid(shown) {
				t.Errorf("%q is invalid JSON", shown)
			}
		}
		for uid, of := range a.facets {
			for _, f := range mergeFacets(new(Reading), []indexFacets{{uid, of}, {uid, of}}, nil) {
				_ = jsontext.AppendQuoted(nil, f.name)
			}
		}
	})
}

// BenchmarkRemoteAnswers parses an answer of twenty hits in both forms.
func BenchmarkRemoteAnswers(b *testing.B) {
	l := newLibrary(b)
	var docs []string
	for i := range 100 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":"red %s","g":"section %d"}`, i, strings.Repeat("fox and moon ", 80), i%60))
	}
	l.put("a", `{"filterableAttributes":["g"]}`, docs...)
	views := l.c.Views()
	defer views.Release()
	f := FederatedRequest{Limit: 20, Proxy: true, Facets: []IndexFacets{{views.Get("a"), []string{"*"}}},
		Queries: []FederatedQuery{{View: views.Get("a"), Request: &Request{Query: "red"}, Weight: 1}}}
	found, err := Federate(context.Background(), &f, oneByOne)
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range []struct {
		name  string
		write func(context.Context, []byte) ([]byte, error)
		read  func(string, []byte) (*RemoteAnswer, error)
	}{{"JSON", found.AppendJSON, func(remote string, body []byte) (*RemoteAnswer, error) {
		return ParseRemote(remote, body, everything, new(Reading))
	}}, {"peer", found.AppendPeer, func(remote string, body []byte) (*RemoteAnswer, error) {
		return ParsePeer(remote, body, everything, new(Reading))
	}}} {
		body, err := form.write(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		body = slices.Grow(body, 64)
		b.Run(form.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := form.read("r", body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
