package fastapi

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestAPIVersions sends a server of each API version every request that differs. The rows are those of the table in docs/API.md.
func TestAPIVersions(t *testing.T) {
	const pin = `"actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]`
	old := func(c *client) { c.json("PATCH", rulesPath+"/r", `{"priority": 1, `+pin+`}`) }
	member := func(r reply, path ...string) string {
		var v any
		_ = json.Unmarshal([]byte(r.body), &v)
		for _, name := range path {
			o, _ := v.(map[string]any)
			v = o[name]
		}
		b, _ := json.Marshal(v)
		return string(b)
	}
	answered := func(r reply) string { return fmt.Sprintf("%d %s", r.status, r.code()) }
	type row struct {
		what string
		ask  func(*client) string
		want [2]string // answers of v1.42 and v1.54
	}
	rows := []row{
		{"`pkgVersion` of `GET /version`", func(c *client) string { return member(c.get("/version"), "pkgVersion") }, [2]string{`"1.42.1"`, `"1.54.0"`}},
		{"`info.version` of `GET /openapi.json`", func(c *client) string { return member(c.get("/openapi.json"), "info", "version") }, [2]string{`"1.42.1"`, `"1.54.0"`}},
		{"`GET /experimental-features` shows features of later versions", func(c *client) string {
			r := c.get("/experimental-features")
			var shown []string
			for _, name := range []string{"tasksStreamingRoute", "renderRoute", "mcpRoute", "disableDocumentsFetchQueue", "legacySearch", "mcp"} {
				if strings.Contains(r.body, `"`+name+`":`) {
					shown = append(shown, name)
				}
			}
			return strings.Join(shown, " ")
		}, [2]string{"", "tasksStreamingRoute renderRoute mcpRoute disableDocumentsFetchQueue legacySearch"}},
		{"`PATCH` of a search rule that does not exist, with a body that fits both forms", func(c *client) string {
			return answered(c.json("PATCH", rulesPath+"/new1", `{}`)) + ", " + answered(c.json("PATCH", rulesPath+"/new2", `{`+pin+`}`))
		}, [2]string{"400 invalid_dynamic_search_rule_actions, 201 ", "202 , 202 "}},
		{"`PATCH` of a search rule of v1.42 with such a body", func(c *client) string {
			old(c)
			r := c.json("PATCH", rulesPath+"/r", `{"active": false}`)
			if r.status == 202 {
				c.wait(r)
			}
			return answered(r) + member(c.get(rulesPath+"/r"), "priority") + member(c.get(rulesPath+"/r"), "precedence")
		}, [2]string{"200 1null", "202 null1"}},
		{"`conditions` or `actions` of a search rule that are empty objects", func(c *client) string {
			return answered(c.json("PATCH", rulesPath+"/empty1", `{"conditions": {}, `+pin+`}`)) + ", " + answered(c.json("PATCH", rulesPath+"/empty2", `{"actions": {}}`))
		}, [2]string{"400 invalid_dynamic_search_rule_conditions, 400 invalid_dynamic_search_rule_actions", "202 , 202 "}},
		{"`DELETE` of a search rule of v1.42", func(c *client) string {
			old(c)
			return answered(c.send("DELETE", rulesPath+"/r", nil))
		}, [2]string{"204 ", "202 "}},
		{"`DELETE` of a search rule that does not exist", func(c *client) string { return answered(c.send("DELETE", rulesPath+"/none", nil)) },
			[2]string{"404 dynamic_search_rule_not_found", "202 "}},
		{"`actions` of a newer search rule that never had any", func(c *client) string {
			c.wait(c.json("PATCH", rulesPath+"/plain", `{"precedence": 1}`))
			return member(c.get(rulesPath+"/plain"), "actions")
		}, [2]string{"[]", "{}"}},
		{"`filter.attributePatterns` of the list of search rules", func(c *client) string {
			return answered(c.json("POST", rulesPath, `{"filter": {"attributePatterns": ["x*"]}}`))
		}, [2]string{"200 ", "400 invalid_dynamic_search_rule_filter"}},
		{"`indexSize` and `usedIndexSize` of `GET /indexes/{uid}/stats` and `GET /stats`", func(c *client) string {
			c.wait(c.json("POST", "/indexes/sized/documents", `[{"id": 1}]`))
			one, all := c.get("/indexes/sized/stats"), c.get("/stats")
			var shown []string
			for _, name := range []string{"indexSize", "usedIndexSize"} {
				for _, size := range []string{member(one, name), member(all, "indexes", "sized", name)} {
					if size != "null" && size != "0" {
						shown = append(shown, name)
					}
				}
			}
			return strings.Join(shown, " ")
		}, [2]string{"", "indexSize indexSize usedIndexSize usedIndexSize"}},
		{"`last_indexed_documents_count` and `last_indexed_documents_duration_ms` of `GET /metrics`", func(c *client) string {
			c.json("PATCH", "/experimental-features", `{"metrics": true}`)
			c.wait(c.json("POST", "/indexes/sized/documents", `[{"id": 1}, {"id": 2}]`))
			var shown []string
			for _, path := range []string{"/metrics", "/metrics?engine=true"} {
				for line := range strings.Lines(c.get(path).body) {
					if series, value, _ := strings.Cut(line, " "); strings.HasPrefix(line, "svc_last_indexed_documents_count{") && strings.Contains(series, `index="sized"`) {
						shown = append(shown, strings.TrimSpace(value))
					} else if strings.HasPrefix(line, "svc_last_indexed_documents_duration_ms{") {
						shown = append(shown, "took")
					}
				}
			}
			return strings.Join(shown, " ")
		}, [2]string{"2 took", "2 took 2 took"}},
	}
	for v, o := range []Options{{Version: Version{Package: "1.42.1"}}, {Version: Version{Package: "1.54.0"}, Newest: true}} {
		c, _ := newRules(t, o)
		for _, r := range rows {
			if got := r.ask(c); got != r.want[v] {
				t.Errorf("%s, v%s: %s, want %s", r.what, o.Version.Package, got, r.want[v])
			}
			c.settle() // a waiting change of rules would make the next one a task
		}
		described := c.get("/openapi.json").body
		if patterns := strings.Contains(described, `"x-error-code":"invalid_dynamic_search_rule_filter_attribute_patterns"`); patterns == o.Newest {
			t.Errorf("v%s: the description of the API has attributePatterns: %t", o.Version.Package, patterns)
		}
		if sizes := strings.Contains(described, `"numberOfEmbeddedDocuments","fieldDistribution","indexSize","usedIndexSize"]`); sizes != o.Newest {
			t.Errorf("v%s: the description of the API demands sizes of indexes: %t", o.Version.Package, sizes)
		}
	}
	b, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "## The version of the API\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| what") && !strings.HasPrefix(line, "| ---") {
			documented = append(documented, strings.TrimPrefix(cells[0], "| "))
		}
	}
	var tested []string
	for _, r := range rows {
		tested = append(tested, r.what)
	}
	if got, want := strings.Join(documented, "\n"), strings.Join(tested, "\n"); got != want {
		t.Errorf("API.md lists\n%s\nthe test has\n%s", got, want)
	}
}
