package fastapi

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// scoredHit is a hit with the parts of its score.
type scoredHit struct {
	ID      int
	Details struct {
		Score struct {
			Value         float64
			Level, Levels int
			Functions     map[string]float64
		}
	} `json:"_rankingScoreDetails"`
}

func scoredHits(t *testing.T, r reply) []scoredHit {
	t.Helper()
	var found struct{ Hits []scoredHit }
	if err := json.Unmarshal([]byte(r.body), &found); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return found.Hits
}

// TestScoreFunctionsOfTheManual sends the requests of docs/SCORE-FUNCTIONS.md, and compares the answers with its tables.
func TestScoreFunctionsOfTheManual(t *testing.T) {
	c, _ := newInstance(t, Options{})
	document, err := os.ReadFile("../docs/SCORE-FUNCTIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	searches := 0
	blocks := strings.Split(string(document), "\n```")
	for i, block := range blocks {
		request, ok := strings.CutPrefix(block, "http\n")
		if !ok {
			continue
		}
		line, body, _ := strings.Cut(request, "\n")
		method, path, _ := strings.Cut(line, " ")
		r := c.json(method, path, body)
		if !strings.HasSuffix(path, "/search") {
			if done := c.wait(r); !strings.Contains(done, `"succeeded"`) {
				t.Fatal(done)
			}
			continue
		}
		searches++
		_, table, _ := strings.Cut(blocks[i+1], "\n| ---")
		_, table, _ = strings.Cut(table, "\n")
		for k, h := range scoredHits(t, r) {
			row, _, _ := strings.Cut(table, "\n")
			_, table, _ = strings.Cut(table, "\n")
			got := fmt.Sprintf("| %d |", h.ID)
			sum := 0.0
			for _, name := range []string{"popular", "cheap", "available", "fresh", "discussed"} {
				if x, ok := h.Details.Score.Functions[name]; ok {
					got += fmt.Sprintf(" %v |", math.Round(x*1000)/1000)
					sum += x
				}
			}
			if got += fmt.Sprintf(" %v | %d |", math.Round(sum*1000)/1000, h.Details.Score.Level); got != row {
				t.Errorf("%s: hit %d is\n%s\nnot\n%s", path, k, got, row)
			}
		}
	}
	if searches != 2 {
		t.Errorf("%d searches", searches)
	}
}

// TestScoreFunctionsAreChecked checks that settings and searches refuse functions that cannot be evaluated, each with its code.
func TestScoreFunctionsAreChecked(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("PATCH", "/indexes/shop/settings", `{"filterableAttributes":["stock"],"rankingRules":["score"]}`))
	c.wait(c.json("POST", "/indexes/shop/documents", `[{"id":1,"stock":1,"price":9,"name":"a b"},{"id":2,"stock":2,"price":4}]`))
	for _, filter := range []string{`""`, `[]`, `"stock >"`, `"stock CONTAINS 1"`, `"_foreign(x, y = 1)"`} {
		body := `[{"name":"a","function":"filter","filter":` + filter + `}]`
		want := "invalid_s_score_functions"
		if strings.Contains(filter, "CONTAINS") {
			want = "feature_not_enabled"
		}
		for _, r := range []reply{c.json("PUT", "/indexes/shop/settings/score-functions", body), c.json("PATCH", "/indexes/shop/settings", `{"scoreFunctions":`+body+`}`),
			c.json("POST", "/indexes/shop/search", `{"scoreFunctions":`+body+`}`)} {
			code := strings.NewReplacer("invalid_settings_", "invalid_s_", "invalid_search_", "invalid_s_").Replace(r.code())
			if code != want {
				t.Errorf("%s: %d %s", body, r.status, r.body)
			}
		}
	}
	for body, want := range map[string]string{
		`[{"name":"a","function":"log","attribute":"price","scale":9}]`:                                  "invalid_search_score_functions",
		`[{"name":"a","function":"filter","filter":"price = 1"}]`:                                        "invalid_search_score_functions",
		`[{"name":"a","function":"decay","attribute":"_geo","origin":{"lat":1,"lng":1},"scale":9}]`:      "invalid_search_score_functions",
		`[{"name":"a","function":"log","attribute":"stock","scale":9}]`:                                  "",
		`{"levels":7,"functions":[{"name":"a","function":"filter","filter":["stock = 1","stock > 0"]}]}`: "",
	} {
		if r := c.json("POST", "/indexes/shop/search", `{"scoreFunctions":`+body+`}`); r.code() != want {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	c.wait(c.json("PATCH", "/indexes/shop/settings", `{"scoreFunctions":[{"name":"f","function":"filter","filter":"stock = 2"},{"name":"p","function":"linear","attribute":"price","scale":100}]}`))
	first := func() int { return scoredHits(t, c.json("POST", "/indexes/shop/search", `{}`))[0].ID }
	if first() != 2 {
		t.Error("the filter of the settings selects nothing")
	}
	// Functions of requests may also use the attribute of the setting.
	if r := c.json("POST", "/indexes/shop/search", `{"scoreFunctions":[{"name":"a","function":"log","attribute":"price","scale":9}]}`); r.status != 200 {
		t.Error(r.body)
	}
	c.wait(c.json("PATCH", "/indexes/shop/settings", `{"filterableAttributes":[]}`))
	if first() != 1 {
		t.Error("a filter that can no longer be evaluated selects documents")
	}
	c.wait(c.json("PATCH", "/indexes/shop/settings", `{"rankingRules":["words"]}`))
	if r := c.json("POST", "/indexes/shop/search", `{"scoreFunctions":[]}`); r.code() != "invalid_search_score_functions" || !strings.Contains(r.body, "rankingRules") {
		t.Error(r.body)
	}
}

// TestScoreFunctionsNow checks that scores decay with time, and that cached answers do not outlast that.
func TestScoreFunctionsNow(t *testing.T) {
	c, _ := newInstance(t, Options{})
	now := time.Now().Unix()
	c.wait(c.json("PATCH", "/indexes/news/settings", `{"filterableAttributes":["at"],"rankingRules":["score"],
		"scoreFunctions":{"levels":1000,"functions":[{"name":"fresh","function":"decay","attribute":"at","origin":"now","scale":0.5,"curve":"linear","decay":0.999}]}}`))
	c.wait(c.json("POST", "/indexes/news/documents", fmt.Sprintf(`[{"id":1,"at":%d},{"id":2,"at":%q},{"id":3,"at":%d}]`,
		now+1, time.Unix(now-1, 0).UTC().Format(time.RFC3339), now-60)))
	levels := func() (ids, levels []int) {
		for _, h := range scoredHits(t, c.json("POST", "/indexes/news/search", `{"showRankingScoreDetails":true}`)) {
			ids, levels = append(ids, h.ID), append(levels, h.Details.Score.Level)
		}
		return ids, levels
	}
	ids, before := levels()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // repeated requests are cached
		var after []int
		if ids, after = levels(); !slices.Equal(before, after) {
			break
		}
	}
	if !slices.Equal(ids, []int{1, 2, 3}) {
		t.Errorf("the order of hits is %v", ids)
	}
	if _, after := levels(); slices.Equal(before, after) {
		t.Errorf("after seconds the levels are still %v", after)
	}
}

// TestSearchTimeOfAnotherInstance checks that an instance uses the time of the instance that asks it. Users cannot set it.
func TestSearchTimeOfAnotherInstance(t *testing.T) {
	c := networked(t, "")
	c.wait(c.json("PATCH", "/indexes/i/settings", `{"filterableAttributes":["at"],"rankingRules":["score"],
		"scoreFunctions":[{"name":"fresh","function":"decay","attribute":"at","origin":"now","scale":10,"curve":"gauss"}]}`))
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id":1,"at":1000},{"id":2,"at":2000}]`))
	for header, want := range map[string]int{"1000": 1, "1995": 2, "": 1, "x": 1, "-1": 1} {
		for _, proxied := range []bool{true, false} {
			headers := []string{"Content-Type", "application/json", "Svc-Proxy-Search-Time", header}
			if proxied {
				headers = append(headers, "Svc-Proxy-Search", "true")
			} else {
				want = 1 // both are old and equal
			}
			r := c.send("POST", "/multi-search", strings.NewReader(`{"federation":{},"queries":[{"indexUid":"i"}]}`), headers...)
			if hits := scoredHits(t, r); hits[0].ID != want {
				t.Errorf("%q, proxied %v: document %d comes first", header, proxied, hits[0].ID)
			}
		}
	}
}

// TestScoreFunctionsInANetwork asks three instances with shards for hits with the functions of the settings, and with
// those of the request.
func TestScoreFunctionsInANetwork(t *testing.T) {
	all := newHosts(t, `{"x":{"remotes":["b"]},"y":{"remotes":["c"]}}`)
	all[0].wait(all[0].json("PATCH", "/indexes/i/settings", `{"filterableAttributes":["n"],"rankingRules":["words","score","typo"],
		"scoreFunctions":[{"name":"n","function":"linear","attribute":"n","scale":60},{"name":"now","function":"decay","attribute":"n","origin":"now","scale":1e10,"curve":"linear"}]}`))
	filled(all)
	now := float64(time.Now().Unix())
	level := func(n int, levels int, share func(x float64) float64) int {
		return int(share(float64(n)) * float64(levels))
	}
	settings := func(x float64) float64 { return (x/60 + 1 - (now-x)/1e10/2) / 2 }
	request := func(x float64) float64 { return math.Exp2(-math.Abs(x-20) / 10) }
	for body, of := range map[string]struct {
		levels int
		share  func(x float64) float64
	}{
		`"limit":60,"q":"red","showRankingScoreDetails":true`: {20, settings},
		`"limit":60,"showRankingScoreDetails":true,"scoreFunctions":{"levels":7,"functions":[{"name":"n","function":"decay","attribute":"n","origin":20,"scale":10}]}`: {7, request},
	} {
		for _, h := range all {
			federated := `{"federation":{"limit":60},"queries":[{"indexUid":"i",` + strings.Replace(body, `"limit":60,`, "", 1) + `}]}`
			for path, body := range map[string]string{"/indexes/i/search": "{" + body + "}", "/multi-search": federated} {
				var hits []scoredHit
				for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // settings travel
					if r := h.json("POST", path, body); r.status == 200 {
						if hits = scoredHits(t, r); len(hits) == awayDocuments && hits[0].Details.Score.Levels > 0 {
							break
						}
					}
				}
				if len(hits) != awayDocuments {
					t.Fatalf("%s at %s: %d hits", path, h.name, len(hits))
				}
				for i, hit := range hits {
					if i > 0 && hits[i-1].Details.Score.Value < hit.Details.Score.Value {
						t.Errorf("%s at %s: hit %d has the level %d, the previous one %d", path, h.name, i, hit.Details.Score.Level, hits[i-1].Details.Score.Level)
					}
					if got, want := hit.Details.Score.Level, level(hit.ID, of.levels, of.share); got != want && (got != of.levels-1 || want != of.levels) {
						t.Errorf("%s at %s: document %d has the level %d, want %d", path, h.name, hit.ID, got, want)
					}
				}
			}
		}
	}
}
