package fastapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSpellingVariantsAreFound searches with spellings that differ from those of the documents.
func TestSpellingVariantsAreFound(t *testing.T) {
	c, _ := newInstance(t, Options{})
	for i, tt := range []struct {
		settings string
		texts    []string // of documents with the ids 0, 1…
		checks   []string // q, ": ", and the ids in ascending order, or the marked words of the first hit
	}{
		{ // Simplified, traditional and Japanese characters are cut and found alike, in phrases and by synonyms.
			`{"synonyms": {"computer": ["電腦"], "手機": ["mobile phone"], "pku": ["北京大學"], "tokyo": ["東京"]}}`,
			[]string{"新電腦", "电脑", "電話", "mobile phone", "北京大學", "北京大学", "待處理訂單", "東京バナナ"},
			[]string{"电脑: [0 1]", "電腦: [0 1]", `"电脑": [0 1]`, "computer: [0 1]", "手机: [3]", "手機: [3]", "pku: [4 5]", "北京大學: [4 5]", `"处理": [6]`, "处理: 待<處理>訂單",
				`"東京": [7]`, "tokyo: [7]", "電話: [2]"},
		},
		{ // A query of stop words alone marks them; others do not, except in phrases.
			`{"stopWords": ["de", "la", "The"]}`,
			[]string{"Rue de la Paix", "the rue", "paix"},
			[]string{"de la: Rue <de> <la> Paix", "de: Rue <de> la Paix", `"de la": Rue <de la> Paix`, "The: <the> rue", "rue de paix: <Rue> de la <Paix>"},
		},
		{ // Synonyms of several words have their stop words, or others at their places.
			`{"stopWords": ["of", "the", "who"], "synonyms": {"lord of the rings": ["lotr"], "the who": ["band"], "state of art": ["modern"], "lotr": ["the lord of the rings"]}}`,
			[]string{"lotr", "band", "modern", "lord of the rings", "the lord", "rings"},
			[]string{"lord of the rings: [0 3]", "Lord of Rings: [0 3]", "lord rings: [0 3]", "the who: [1]", "state of the art: [2]", "lotr: [0]", "lord, the rings: [3]", `"lord of the rings": [3]`},
		},
	} {
		uid := fmt.Sprint("i", i)
		if body := c.wait(c.json("PATCH", "/indexes/"+uid+"/settings", tt.settings)); !strings.Contains(body, `"succeeded"`) {
			t.Fatal(body)
		}
		for id, text := range tt.texts {
			doc, _ := json.Marshal(map[string]any{"id": id, "t": text})
			if body := c.wait(c.json("POST", "/indexes/"+uid+"/documents", string(doc))); !strings.Contains(body, `"succeeded"`) {
				t.Fatal(body)
			}
		}
		for _, check := range tt.checks {
			q, want, _ := strings.Cut(check, ": ")
			request, _ := json.Marshal(map[string]any{"q": q, "attributesToHighlight": []string{"t"}, "highlightPreTag": "<", "highlightPostTag": ">", "matchingStrategy": "all"})
			var answer struct {
				Hits []struct {
					ID        int
					Formatted struct{ T string } `json:"_formatted"`
				}
			}
			body := c.json("POST", "/indexes/"+uid+"/search", string(request)).body
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatal(err)
			}
			var ids []int
			for _, hit := range answer.Hits {
				ids = append(ids, hit.ID)
			}
			slices.Sort(ids)
			got := fmt.Sprint(ids)
			if !strings.HasPrefix(want, "[") && len(answer.Hits) > 0 {
				got = answer.Hits[0].Formatted.T
			}
			if got != want {
				t.Errorf("%s of %v: %s, want %s", q, tt.texts, got, want)
			}
		}
	}
}
