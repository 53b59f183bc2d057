package fastapi

import (
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a route as programs of language models call it.
type tool struct {
	name, title, says string
	method, path      string
	action            action // of the route
	takes             []property
	changes           bool
}

// property is an argument of a tool: a variable of the path, or a parameter of the route.
type property struct {
	name     string
	kind     kind
	says     string
	place    place
	variable string // of the path
	required bool
	form     schema // replaces that of the kind
}

// place says where an argument goes.
type place uint8

const (
	inObject place = iota // a member of the body
	inQueryString
	inPath
	wholeBody // the body is its value
)

const toolInstructions = "svc is a search engine. Use list_indexes to see the indexes, and get_settings to see which attributes can be filtered, " +
	"sorted and counted as facets. Changes are tasks. A change is visible when get_task returns succeeded."

// tools returns the table of all tools.
func tools() []tool {
	index := property{name: "indexUid", says: "The index.", place: inPath, variable: "index_uid", required: true}
	list := []tool{
		{
			name: "list_indexes", title: "List indexes", says: "Lists the indexes, with the name of their primary key.",
			method: methodGet, path: "/indexes", takes: properties(indexListParams, inQueryString, pagingWords),
		},
		{
			name: "search", title: "Search", says: "Searches an index by words (typos are allowed), by filter, and by meaning if the index has an embedder. Returns the best hits.",
			method: methodPost, path: "/indexes/{index_uid}/search", takes: properties(searchBodyParams, inObject, searchWords, index),
		},
		{
			name: "search_facet_values", title: "Search facet values", says: "Lists the values of an attribute, each with its number of matching documents.",
			method: methodPost, path: "/indexes/{index_uid}/facet-search", takes: properties(facetSearchParams, inObject, searchWords, index),
		},
		{
			name: "find_similar", title: "Find similar documents", says: "Finds the documents that are most similar in meaning to one document. The index needs an embedder.",
			method: methodPost, path: "/indexes/{index_uid}/similar", takes: properties(similarParams, inObject, searchWords, index),
		},
		{
			name: "get_documents", title: "Get documents", says: "Returns documents by id, or those that match a filter, sorted.",
			method: methodPost, path: "/indexes/{index_uid}/documents/fetch", takes: properties(fetchBodyParams, inObject, searchWords, index),
		},
		{
			name: "add_documents", title: "Add documents", says: "Adds documents. If a document with the same id exists, the given members replace its own. Returns a task.",
			method: methodPut, path: "/indexes/{index_uid}/documents", changes: true,
			takes: []property{
				index,
				{name: "documents", says: "The documents.", place: wholeBody, required: true, kind: raw, form: schema{"type": "array", "items": schema{"type": "object"}}},
				{name: "primaryKey", says: "The attribute with the id, for a new index.", place: inQueryString},
			},
		},
		{
			name: "delete_documents", title: "Delete documents", says: "Deletes documents by their ids. Returns a task.",
			method: methodPost, path: "/indexes/{index_uid}/documents/delete-batch", changes: true,
			takes: []property{
				index,
				{name: "ids", says: "Their ids.", place: wholeBody, required: true, kind: raw, form: schema{"type": "array", "items": idForm}},
			},
		},
		{
			name: "get_settings", title: "Get settings", says: "Returns the settings of an index: which attributes are searched, filtered, sorted, shown, and how hits are ranked.",
			method: methodGet, path: "/indexes/{index_uid}/settings", takes: []property{index},
		},
		{
			name: "update_settings", title: "Update settings", says: "Changes the settings that are given; null resets one. Returns a task.",
			method: methodPatch, path: "/indexes/{index_uid}/settings", changes: true,
			takes: []property{
				index,
				{name: "settings", says: "The settings to change, by the names that get_settings shows.", place: wholeBody, required: true, kind: raw, form: schema{"type": "object"}},
			},
		},
		{
			name: "list_tasks", title: "List tasks", says: "Lists tasks, the newest first, with their results or errors. Separate list values with commas.",
			method: methodGet, path: "/tasks", takes: properties(taskListParams, inQueryString, taskWords),
		},
		{
			name: "get_task", title: "Get a task", says: "Returns a task: enqueued, processing, succeeded, failed or canceled.",
			method: methodGet, path: "/tasks/{task_id}",
			takes: []property{{name: "taskUid", says: "The taskUid that the change returned.", place: inPath, variable: "task_id", required: true, kind: count}},
		},
	}
	table := routes()
	for i := range list {
		t := &list[i]
		at := slices.IndexFunc(table, func(r route) bool { return r.method == t.method && r.path == t.path })
		t.action = table[at].action
	}
	return list
}

// properties appends the parameters of a route to before, as arguments of a tool. words describes those whose name is not clear.
func properties[T any](params []param[T], in place, words map[string]property, before ...property) []property {
	for i := range params {
		p := words[params[i].name]
		p.name, p.kind, p.place = params[i].name, params[i].kind, in
		before = append(before, p)
	}
	return before
}

var (
	listForm    = schema{"type": "array", "items": schema{"type": "string"}}
	idForm      = schema{"type": []string{"string", "integer"}}
	filterForm  = schema{"type": []string{"string", "array"}}
	pagingWords = map[string]property{
		"offset": {says: "Number of items to skip."},
		"limit":  {says: "Maximum number of items (default 20)."},
	}
	searchWords = map[string]property{
		"q":                       {says: "What to search for. Words in double quotes must be adjacent; words after a - must not occur."},
		"filter":                  {says: "Which documents: genre = 'sf' AND year > 1970 AND (director IN ['Tati', 'Lang'] OR rating EXISTS). Attributes must be filterable.", form: filterForm},
		"sort":                    {says: "Attributes with :asc or :desc, such as year:desc. They must be sortable.", form: listForm},
		"facets":                  {says: "Attributes whose values are counted over all hits; * for all filterable attributes."},
		"aggregations":            {says: "Figures over all matching documents, by name: {\"price\": {\"stats\": \"price\"}, \"perBrand\": {\"terms\": \"brand\", \"aggregations\": {…}}}. Kinds: terms, stats, percentiles, histogram (interval), dateHistogram (interval: month…), range (bands), cardinality.", form: schema{"type": "object"}},
		"groupBy":                 {says: "Return groups of hits instead of hits: {\"attribute\": \"brand\", \"hitsPerGroup\": 3}. limit and offset count groups.", form: schema{"type": "object"}},
		"scoreFunctions":          {says: "Functions of attributes that rank documents in place of those of the setting, if the index ranks by score: [{\"name\": \"popular\", \"function\": \"log\", \"attribute\": \"sold\", \"scale\": 1000}]. Functions: decay (origin, scale), log, sqrt, linear, reciprocal (scale), filter (filter).", form: schema{"type": []string{"array", "object"}}},
		"limit":                   {says: "Maximum number of items (default 20)."},
		"offset":                  {says: "Number of items to skip."},
		"attributesToRetrieve":    {says: "Attributes of the hits to return (default: all)."},
		"attributesToSearchOn":    {says: "Attributes to search in (default: all searchable attributes)."},
		"matchingStrategy":        {says: "last (default): drop words from the end if too few documents match all; all: drop none; frequency: drop the most frequent words first."},
		"hybrid":                  {says: "Hybrid search: the name of the embedder, and a ratio from 0 (keywords only) to 1 (meaning only).", form: hybridForm},
		"vector":                  {says: "The vector of the query, instead of one from the embedder.", form: schema{"type": "array", "items": schema{"type": "number"}}},
		"locales":                 {says: "Languages of the query, such as en or jpn."},
		"distinct":                {says: "Return only the best document of each value of this attribute."},
		"rankingScoreThreshold":   {says: "Minimum score of hits, from 0 to 1."},
		"facetName":               {says: "The attribute, which must be filterable.", required: true},
		"facetQuery":              {says: "Prefix of the values; typos are allowed."},
		"id":                      {says: "The document to compare others with.", required: true, form: idForm},
		"embedder":                {says: "The embedder whose vectors are compared.", required: true},
		"ids":                     {says: "Ids of documents.", form: schema{"type": "array", "items": idForm}},
		"fields":                  {says: "Attributes to return (default: all)."},
		"showRankingScore":        {says: "Return the score of each hit, from 0 to 1."},
		"attributesToHighlight":   {says: "Attributes in which matches are highlighted; * for all."},
		"attributesToCrop":        {says: "Attributes to crop around matches."},
		"exhaustiveFacetCount":    {says: "Count hits exactly, however long it takes."},
		"page":                    {says: "The page to return, from 1, instead of offset and limit; the number of hits is then exact."},
		"hitsPerPage":             {says: "Number of hits per page."},
		"personalize":             {says: "The user for whom hits are reordered.", form: schema{"type": "object"}},
		"media":                   {says: "Input of a multimodal embedder, instead of words."},
		"showRankingScoreDetails": {says: "Return the score of each ranking rule for each hit."},
		"suggest":                 {says: "If nothing is found, return similar queries that find something."},
		"cursor":                  {says: "Read all hits page by page: an empty text for the first page, then nextCursor of the previous answer. Without offset."},
	}
	hybridForm = schema{"type": "object", "required": []string{"embedder"}, "properties": schema{
		"embedder": schema{"type": "string"}, "semanticRatio": schema{"type": "number", "minimum": 0, "maximum": 1},
	}}
	taskWords = map[string]property{
		"limit":     {says: "Maximum number of items (default 20).", form: idForm},
		"from":      {says: "The uid of the first item: `next` of the previous list.", form: idForm},
		"uids":      {says: "Uids of tasks.", form: idForm},
		"statuses":  {says: "enqueued, processing, succeeded, failed, canceled."},
		"types":     {says: "Such as documentAdditionOrUpdate or settingsUpdate."},
		"indexUids": {says: "Indexes."},
		"reverse":   {says: "The oldest first."},
	}
)

// find returns the argument of a name, or nil.
func (t *tool) find(name string) *property {
	for i := range t.takes {
		if t.takes[i].name == name {
			return &t.takes[i]
		}
	}
	return nil
}

// whole reports whether one argument is the body.
func (t *tool) whole() bool {
	return slices.ContainsFunc(t.takes, func(p property) bool { return p.place == wholeBody })
}

// offer returns the tool as clients see it.
func (t *tool) offer() *mcp.Tool {
	members, required := schema{}, []string{}
	for i := range t.takes {
		p := &t.takes[i]
		members[p.name] = p.schema()
		if p.required {
			required = append(required, p.name)
		}
	}
	closed := false
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.says,
		InputSchema: schema{"type": "object", "properties": members, "required": required, "additionalProperties": false},
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.changes, DestructiveHint: &t.changes, IdempotentHint: true, OpenWorldHint: &closed},
	}
}

func (p *property) schema() schema {
	s := schema{}
	maps.Copy(s, p.form)
	switch {
	case p.form != nil:
	case p.kind == textual:
		s["type"] = "string"
	case p.kind == count:
		s["type"], s["minimum"] = "integer", 0
	case p.kind == flag:
		s["type"] = "boolean"
	case p.kind == list:
		s["type"], s["items"] = "array", schema{"type": "string"}
	case p.kind == number:
		s["type"] = "number"
	}
	if p.says != "" {
		s["description"] = p.says
	}
	return s
}
