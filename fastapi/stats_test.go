package fastapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestStatsSizes(t *testing.T) {
	c, _ := newInstance(t, Options{Newest: true})
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "t": "red hat"}]`))
	type sizes struct {
		RawDocumentDBSize, AvgDocumentSize, DatabaseSize, UsedDatabaseSize any
		IndexSize, UsedIndexSize                                           any
		InternalDatabaseSizes                                              map[string]any
		Indexes                                                            map[string]struct {
			AvgDocumentSize       any
			IndexSize             any
			UsedIndexSize         any
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
		for _, size := range []any{index.RawDocumentDBSize, index.AvgDocumentSize, all.DatabaseSize, all.UsedDatabaseSize, all.Indexes["i"].AvgDocumentSize,
			index.IndexSize, index.UsedIndexSize, all.Indexes["i"].IndexSize, all.Indexes["i"].UsedIndexSize} {
			text, isText := size.(string)
			if isText != tt.toHuman || isText && !human.MatchString(text) {
				t.Errorf("%s: a size is %v", tt.query, size)
			}
		}
		if tt.internal && index.InternalDatabaseSizes["documents"] == nil {
			t.Errorf("%s: %v", tt.query, index.InternalDatabaseSizes)
		}
	}
	for query, code := range map[string]string{
		"?sizeFormat=x": "invalid_stats_size_format", "?sizeFormat=": "invalid_stats_size_format", "?showInternalDatabaseSizes=1": "invalid_stats_show_internal_database_sizes",
	} {
		for _, path := range []string{"/stats", "/indexes/i/stats"} {
			if r := c.get(path + query); r.code() != code {
				t.Errorf("%s%s: %d %s", path, query, r.status, r.body)
			}
		}
	}
}

// TestIndexSizes compares the sizes of an index with its files, and deletes a tenth of its documents.
func TestIndexSizes(t *testing.T) {
	c, _ := newInstance(t, Options{Newest: true})
	var body strings.Builder
	for i := range 200 {
		fmt.Fprintf(&body, `{"id": %d, "t": "red hat %d"}`+"\n", i, i)
	}
	c.wait(c.send("POST", "/indexes/i/documents", strings.NewReader(body.String()), "Content-Type", "application/x-ndjson"))
	var before, after struct{ IndexSize, UsedIndexSize int64 }
	read := func(to any) {
		t.Helper()
		if r := c.get("/indexes/i/stats"); r.status != 200 || json.Unmarshal([]byte(r.body), to) != nil {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	read(&before)
	if all, _ := c.server.catalog.DiskBytes(); before.IndexSize <= 0 || before.IndexSize > all || before.UsedIndexSize != before.IndexSize {
		t.Errorf("%+v of %d bytes", before, all)
	}
	var ids []string
	for i := range 20 {
		ids = append(ids, strconv.Itoa(i))
	}
	c.wait(c.json("POST", "/indexes/i/documents/delete-batch", "["+strings.Join(ids, ",")+"]"))
	if read(&after); after.UsedIndexSize >= after.IndexSize || after.UsedIndexSize < after.IndexSize/2 {
		t.Errorf("after deleting a tenth of the documents: %+v", after)
	}
}
