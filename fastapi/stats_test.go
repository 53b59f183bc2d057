package fastapi

import (
	"encoding/json"
	"regexp"
	"testing"
)

func TestStatsSizes(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "t": "red hat"}]`))
	type sizes struct {
		RawDocumentDBSize, AvgDocumentSize, DatabaseSize, UsedDatabaseSize any
		InternalDatabaseSizes                                              map[string]any
		Indexes                                                            map[string]struct {
			AvgDocumentSize       any
			InternalDatabaseSizes map[string]any
		}
	}
	human := regexp.MustCompile(`^\d+(\.\d+)? ([KMG]i)?B$`)
	for _, tt := range []struct {
		query             string
		internal, toHuman bool
	}{
		{"", false, false}, {"?sizeFormat=raw", false, false}, {"?sizeFormat=human", false, true}, {"?showInternalDatabaseSizes=true", true, false},
		{"?showInternalDatabaseSizes=true&sizeFormat=human&other=1", true, true}, {"?showInternalDatabaseSizes=false", false, false},
	} {
		var index, all sizes
		for path, to := range map[string]*sizes{"/indexes/i/stats": &index, "/stats": &all} {
			if r := c.get(path + tt.query); r.status != 200 || json.Unmarshal([]byte(r.body), to) != nil {
				t.Fatalf("%s%s: %d %s", path, tt.query, r.status, r.body)
			}
		}
		if (index.InternalDatabaseSizes != nil) != tt.internal || (all.Indexes["i"].InternalDatabaseSizes != nil) != tt.internal {
			t.Errorf("%s: internal sizes %v, %v", tt.query, index.InternalDatabaseSizes, all.Indexes)
		}
		for _, size := range []any{index.RawDocumentDBSize, index.AvgDocumentSize, all.DatabaseSize, all.UsedDatabaseSize, all.Indexes["i"].AvgDocumentSize} {
			text, isText := size.(string)
			if isText != tt.toHuman || isText && !human.MatchString(text) {
				t.Errorf("%s: a size is %v", tt.query, size)
			}
		}
		if tt.internal && index.InternalDatabaseSizes["documents"] == nil {
			t.Errorf("%s: %v", tt.query, index.InternalDatabaseSizes)
		}
	}
	for _, query := range []string{"?sizeFormat=x", "?sizeFormat=", "?showInternalDatabaseSizes=1"} {
		for _, path := range []string{"/stats", "/indexes/i/stats"} {
			if r := c.get(path + query); r.code() != "bad_request" {
				t.Errorf("%s%s: %d %s", path, query, r.status, r.body)
			}
		}
	}
}
