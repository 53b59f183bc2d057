package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/budget"
	"svc/internal/filter"
	"svc/internal/query"
	"svc/internal/rank"
)

// readAnswers returns answers of each kind of reading, by name.
func readAnswers(t testing.TB) map[string][]byte {
	t.Helper()
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["g","n"],"sortableAttributes":["n","g"],"displayedAttributes":["id","g"]}`,
		`{"id":1,"g":"x","n":1}`, `{"id":2,"g":["Y","z"],"n":2.5}`, `{"id":3,"g":"x"}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	ctx, all := context.Background(), map[string][]byte{}
	fetch := FetchRequest{Limit: 3, Sort: []string{"n:asc", "g:desc"}, Values: true}
	var err error
	if all["documents"], err = AppendPeerDocuments(ctx, nil, v, &fetch, ReadBytes); err != nil {
		t.Fatal(err)
	}
	fetch.Bare = true
	if all["bare"], err = AppendPeerDocuments(ctx, nil, v, &fetch, ReadBytes); err != nil {
		t.Fatal(err)
	}
	found, err := FindFacets(ctx, v, &FacetRequest{FacetName: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if all["facets"], err = found.AppendPeer(ctx, nil); err != nil {
		t.Fatal(err)
	}
	misspelt, err := FindMisspelt(ctx, v, &Request{Query: "x y qz zz"}, time.Now(), true)
	if err != nil {
		t.Fatal(err)
	}
	misspelt.words[2].near = []query.Near{{Word: "qx", Typos: 1, Documents: 300}}
	all["words"] = misspelt.AppendPeer(nil)
	all["ids"] = AppendPeerIDs(nil, []string{"1", "two"})
	r := NewForeignReader(nil, v)
	for _, id := range []string{"1", "none", "3"} {
		if all["foreign"], err = r.AppendPeer(all["foreign"], []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPeerDocumentsEnd limits the bytes of a page. It always has at least its first document, so that repeated requests make progress.
func TestPeerDocumentsEnd(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{}`, `{"id":1}`, `{"id":2}`, `{"id":3}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	for most, want := range map[int]int{0: 1, 12: 1, 13: 2, 1000: 3} {
		body, err := AppendPeerDocuments(t.Context(), []byte("what another shard has"), v, &FetchRequest{Limit: 3}, most)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := ParseDocuments(body[len("what another shard has"):], []int{3}, false, nil, &Reading{})
		if err != nil || parts[0].Total != 3 || len(parts[0].Texts) != want {
			t.Errorf("limit of %d bytes: %d of %d documents, %v, want %d", most, len(parts[0].Texts), parts[0].Total, err, want)
		}
	}
}

// parseRead parses an answer, and returns its contents as JSON.
func parseRead(name string, body []byte, reading *Reading) (string, error) {
	body = bytes.Clone(body)
	switch name {
	case "documents", "bare":
		parts, err := ParseDocuments(body, []int{3}, name == "bare", nil, reading)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d %q %d", parts[0].Total, parts[0].Texts, len(parts[0].Values)), nil
	case "facets":
		f, err := ParseFacets(body, 1<<20, reading)
		if err != nil {
			return "", err
		}
		var text string
		for _, v := range f.list {
			text += fmt.Sprintf("%s %s %d;", v.key, v.shown, v.count)
		}
		return text, nil
	case "words":
		m, err := ParseMisspelt(body, reading)
		if err != nil {
			return "", err
		}
		var text string
		for _, w := range m.words {
			text += fmt.Sprintf("%d-%d %v %v;", w.from, w.to, w.known, w.near)
		}
		return text, nil
	case "ids":
		ids, err := ParseIDs(body, reading)
		return fmt.Sprint(ids), err
	}
	docs, err := ParseForeign(body, 3, reading)
	return fmt.Sprintf("%q", docs), err
}

// TestReadAnswers parses answers, their prefixes, and longer ones, and parses answers without memory.
func TestReadAnswers(t *testing.T) {
	want := map[string]string{
		"documents": `3 ["{\"id\":1,\"g\":\"x\",\"n\":1}" "{\"id\":2,\"g\":[\"Y\",\"z\"],\"n\":2.5}" "{\"id\":3,\"g\":\"x\"}"] 3`,
		"bare":      `3 ["" "" ""] 3`,
		"facets":    `x x 2;y Y 1;z z 1;`,
		"words":     `0-1 true [];2-3 true [];4-6 false [{qx 1 300}];7-9 false [];`,
		"ids":       `[1 two]`,
		"foreign":   `["{\"id\":1,\"g\":\"x\"}" "" "{\"id\":3,\"g\":\"x\"}"]`,
	}
	for name, body := range readAnswers(t) {
		if got, err := parseRead(name, body, &Reading{}); err != nil || got != want[name] {
			t.Errorf("%s: %s %v, want %s", name, got, err, want[name])
		}
		for n := range len(body) {
			if got, err := parseRead(name, body[:n], &Reading{}); err == nil && name != "foreign" {
				t.Errorf("%s: %d bytes of %d are accepted as an answer: %s", name, n, len(body), got)
			}
		}
		if got, err := parseRead(name, append(bytes.Clone(body), 0), &Reading{}); err == nil {
			t.Errorf("%s: an answer with an extra byte is accepted: %s", name, got)
		}
		full := &Reading{Hold: func(int64) error { return budget.ErrFull }}
		if _, err := parseRead(name, body, full); !errors.Is(err, budget.ErrFull) {
			t.Errorf("%s without memory: %v", name, err)
		}
		if i := bytes.Index(body, []byte(`{"id"`)); i >= 0 {
			broken := bytes.Clone(body)
			broken[i] = '['
			if got, err := parseRead(name, broken, &Reading{}); !errors.Is(err, errReadDocument) {
				t.Errorf("%s with a value that is not an object: %s %v", name, got, err)
			}
		}
	}
	documents := readAnswers(t)["documents"]
	if _, err := ParseDocuments(documents, []int{2}, false, nil, &Reading{}); !errors.Is(err, errReadMore) {
		t.Errorf("more documents than requested: %v", err)
	}
	if _, err := ParseIDs(AppendPeerIDs(nil, slices.Repeat([]string{"1"}, filter.MostForeign+1)), &Reading{}); !errors.Is(err, errReadMore) {
		t.Errorf("more ids than requested: %v", err)
	}
	if _, err := ParseIDs(AppendPeerIDs(nil, []string{"no id"}), &Reading{}); !errors.Is(err, errRead) {
		t.Errorf("an invalid id: %v", err)
	}
}

// FuzzReadAnswers parses arbitrary answers.
func FuzzReadAnswers(f *testing.F) {
	names := []string{"documents", "bare", "facets", "ids", "foreign"}
	for name, body := range readAnswers(f) {
		f.Add(uint8(slices.Index(names, name)), body)
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		held := int64(0)
		name := names[int(which)%len(names)]
		_, err := parseRead(name, body, &Reading{Hold: func(n int64) error { held += n; return nil }})
		if most := 2*chargedAtOnce + int64(len(body))*400; held > most {
			t.Errorf("%s: %d bytes are held for %d", name, held, len(body))
		}
		if err != nil || name != "documents" {
			return
		}
		parts, _ := ParseDocuments(bytes.Clone(body), []int{3}, false, nil, &Reading{})
		for _, text := range parts[0].Texts {
			if !json.Valid(text) {
				t.Errorf("%q is invalid JSON", text)
			}
		}
	})
}

// TestPages compares pages of the documents of shards with pages of one list.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 2))
	for range 2000 {
		type document struct{ shard, at, value int }
		var plain, sorted []document
		totals := make([]int, 1+r.IntN(4))
		values := make([][][]rank.ScoreValue, len(totals))
		for i := range totals {
			totals[i] = r.IntN(6)
			value := 0
			for at := range totals[i] {
				value += r.IntN(2)
				plain, sorted = append(plain, document{i, at, 0}), append(sorted, document{i, at, value})
				values[i] = append(values[i], []rank.ScoreValue{{Kind: rank.ByField, Sort: rank.SortValue{Class: rank.OfNumber, Number: float64(value)}}})
			}
		}
		slices.SortStableFunc(sorted, func(a, b document) int { return a.value - b.value })
		offset, limit := r.IntN(12), r.IntN(12)
		cut := func(all []document) []document {
			all = all[min(offset, len(all)):]
			return all[:min(limit, len(all))]
		}
		var got []document
		for i, w := range Page(totals, offset, limit) {
			for n := range w.Count {
				got = append(got, document{i, w.From + n, 0})
			}
		}
		if want := cut(plain); !slices.Equal(got, want) {
			t.Fatalf("%d from %d of %v: %v, want %v", limit, offset, totals, got, want)
		}
		windows, order := SortedPage(values, offset, limit)
		got = nil
		for _, i := range order {
			got = append(got, document{shard: i, at: windows[i].From})
			windows[i].From++
			windows[i].Count--
		}
		want := cut(sorted)
		for i := range want {
			want[i].value = 0
		}
		if !slices.Equal(got, want) || slices.ContainsFunc(windows, func(w Window) bool { return w.Count != 0 }) {
			t.Fatalf("%d from %d of sorted ones: %v, want %v", limit, offset, got, want)
		}
	}
}

// TestManyFacetValues merges the values of an instance that sends more than it may, with enough memory and with too little.
func TestManyFacetValues(t *testing.T) {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["g"]}`, `{"id":1,"g":"x"}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	most := MostFacetValues(v)
	var body []byte
	for i := range most + 100 {
		body = append(appendText(append(body, 1), fmt.Sprintf("v%08d", i)), 0, 2)
	}
	f := got(ParseFacets(append(body, 0), most, new(Reading)))
	if len(f.list) != most || string(f.list[most-1].shown) != fmt.Sprintf("v%08d", most-1) {
		t.Fatalf("%d values of %d are kept", len(f.list), most+100)
	}
	if _, err := ParseFacets(body, most, new(Reading)); err == nil {
		t.Error("values without an end are accepted")
	}
	for _, short := range []int64{0, 1} {
		b := budget.New(2*int64(most)*valueBytes-short, nil)
		answer, err := AppendFacetSearch(b.Open(1<<30), nil, v, &FacetRequest{FacetName: "g"}, []*FacetValues{f, f}, new(RemoteErrors), time.Now())
		switch {
		case short > 0 && !errors.Is(err, budget.ErrFull):
			t.Errorf("without memory: %v", err)
		case short == 0 && (err != nil || !bytes.HasPrefix(answer, []byte(`{"facetHits":[{"value":"v00000000","count":4},`))):
			t.Errorf("%.60s, %v", answer, err)
		}
	}
}
