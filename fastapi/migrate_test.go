package fastapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrations converts exports of other engines with docs/migrate.py, and searches the imported result.
func TestMigrations(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for engine, x := range map[string]struct {
		documents, settings, synonyms string
		primaryKey                    string
		lost                          []string
		search, want                  string
	}{
		"algolia": {
			documents: `{"objectID": "a", "name": "Red shoes", "brand": "Acme", "sold": 3, "_geoloc": {"lat": 48.8, "lng": 2.3}}
{"objectID": "b", "name": "Red shoes", "brand": "Bolt", "sold": 5, "_geoloc": [{"lat": 52.5, "lng": 13.4}, {"lat": 1, "lng": 2}]}`,
			settings: `{"searchableAttributes": ["unordered(name)", "brand,description"], "attributesForFaceting": ["searchable(brand)", "filterOnly(sold)", "_geo"],
				"customRanking": ["desc(sold)"], "minWordSizefor1Typo": 4, "minWordSizefor2Typos": 7, "optionalWords": ["x"]}`,
			synonyms:   `[{"type": "synonym", "synonyms": ["shoes", "sneakers"]}, {"type": "oneWaySynonym", "input": "crimson", "synonyms": ["red"]}, {"type": "placeholder", "objectID": "p"}]`,
			primaryKey: "objectID",
			lost:       []string{"only the first of several places", "ranking: filters", "settings: optionalWords", "synonym of type placeholder"},
			search:     `{"q": "crimson sneakers", "attributesToRetrieve": ["objectID", "_geo"]}`,
			want:       `"hits":[{"objectID":"b","_geo":{"lat":52.5,"lng":13.4}},{"objectID":"a","_geo":{"lat":48.8,"lng":2.3}}]`,
		},
		"elasticsearch": {
			documents: `{"_index": "x", "_id": "1/a", "_source": {"title": "Blue coat", "color": "blue", "place": [2.3, 48.8], "variants": [{"size": 38, "stock": 0}, {"size": 44, "stock": 5}]}}
{"_index": "x", "_id": "2", "_source": {"title": "Blue coat", "color": "navy", "place": "52.5,13.4", "variants": [{"size": 38, "stock": 5}]}}`,
			settings: `{"x": {"mappings": {"properties": {"title": {"type": "text"}, "color": {"type": "keyword"}, "place": {"type": "geo_point"}, "other": {"type": "geo_point"},
				"variants": {"type": "nested", "properties": {"size": {"type": "integer"}, "stock": {"type": "integer"}}}, "v": {"type": "dense_vector"}}}}}`,
			primaryKey: "id",
			lost:       []string{"_id 1/a became 1-a", "geo_point other", "dense_vector v"},
			search:     `{"q": "coat", "filter": "_geoRadius(48.8, 2.3, 1000) AND variants.{size = 44 AND stock > 0} AND color = BLUE", "attributesToRetrieve": ["id"]}`,
			want:       `"hits":[{"id":"1-a"}]`,
		},
		"typesense": {
			documents: `{"id": "1", "title": "Green hat", "brand": "Acme", "points": 2, "place": [48.8, 2.3]}
{"id": "2", "title": "Green hat", "brand": "Bolt", "points": 9, "place": [52.5, 13.4]}`,
			settings: `{"name": "x", "default_sorting_field": "points", "fields": [{"name": "title", "type": "string"}, {"name": "brand", "type": "string", "facet": true},
				{"name": "points", "type": "int32"}, {"name": "place", "type": "geopoint"}, {"name": "v", "type": "float[]", "num_dim": 3}]}`,
			synonyms:   `{"synonyms": [{"id": "a", "synonyms": ["hat", "cap"]}, {"id": "b", "root": "lime", "synonyms": ["green"]}]}`,
			primaryKey: "id",
			lost:       []string{"vectors v"},
			search:     `{"q": "lime cap", "filter": "points > 1", "facets": ["brand"], "attributesToRetrieve": ["id"]}`,
			want:       `"hits":[{"id":"2"},{"id":"1"}]`,
		},
	} {
		t.Run(engine, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"../docs/migrate.py", engine, "--out", filepath.Join(dir, "out")}
			for option, text := range map[string]string{"--documents": x.documents, "--settings": x.settings, "--synonyms": x.synonyms} {
				if text == "" {
					continue
				}
				name := filepath.Join(dir, option)
				if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				args = append(args, option, name)
			}
			said, err := exec.Command(python, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			for _, lost := range x.lost {
				if !strings.Contains(string(said), "not converted: ") || !strings.Contains(string(said), lost) {
					t.Errorf("the output does not say that %q was not converted: %s", lost, said)
				}
			}
			if n := strings.Count(string(said), "not converted: "); n != len(x.lost) {
				t.Errorf("%d items were not converted, want %d: %s", n, len(x.lost), said)
			}
			c, _ := newInstance(t, Options{})
			read := func(suffix string) string {
				b, err := os.ReadFile(filepath.Join(dir, "out"+suffix))
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			c.wait(c.send("PATCH", "/indexes/x/settings", strings.NewReader(read(".settings.json")), "Content-Type", "application/json"))
			task := c.wait(c.send("POST", "/indexes/x/documents?primaryKey="+x.primaryKey, strings.NewReader(read(".ndjson")), "Content-Type", "application/x-ndjson"))
			if !strings.Contains(task, `"indexedDocuments":2`) {
				t.Fatal(task)
			}
			r := c.send("POST", "/indexes/x/search", strings.NewReader(x.search), "Content-Type", "application/json")
			if r.status != 200 || !strings.Contains(r.body, x.want) {
				t.Errorf("%d %s, want %s", r.status, r.body, x.want)
			}
		})
	}
}
