package format

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"svc/internal/jsontext"
	"svc/internal/query"
)

// TestRecordedMatches requires the matches of testdata/matches.jsonl, recorded from the reference: documents of one text, and queries of
// words in it, the last one a prefix. Matches of Arabic words with an article are svc's own: the article is part of the word.
func TestRecordedMatches(t *testing.T) {
	file, err := os.Open("testdata/matches.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for s := bufio.NewScanner(file); s.Scan(); n++ {
		var line struct {
			Text, Query string
			Found       bool
			Matches     [][2]int
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		in := outline(t, "", "t")
		h := &query.Highlights{}
		if tokens := in.Analyzer.Tokens(nil, line.Query, nil, true); line.Found {
			for i, token := range tokens {
				if !isWord(&token) {
					continue
				}
				w := query.Words{Word: token.Form, Forms: map[string]struct{}{token.Form: {}}, First: i, Last: i}
				if i == len(tokens)-1 {
					w.Prefixes, w.Chars = []string{token.Form}, len([]rune(token.Form))
				}
				h.Words = append(h.Words, w)
			}
		}
		f := New(in, plain(), h)
		doc := append(jsontext.AppendQuoted([]byte(`{"t":`), []byte(line.Text)), '}')
		got, err := f.AppendMatches(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		var spans struct{ T []struct{ Start, Length int } }
		if err := json.Unmarshal(got, &spans); err != nil {
			t.Fatal(err)
		}
		pairs := [][2]int{}
		for _, p := range spans.T {
			pairs = append(pairs, [2]int{p.Start, p.Length})
		}
		if fmt.Sprint(pairs) != fmt.Sprint(line.Matches) {
			t.Errorf("%q in %q: %v, want %v", line.Query, line.Text, pairs, line.Matches)
		}
	}
	if n < 60 {
		t.Errorf("only %d lines", n)
	}
}
