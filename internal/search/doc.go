// Package search answers one search request end to end: filter, ranking, distinct, facets, formatting and the response.
// It also answers facet searches, federated searches and the fetching of documents by filter, id and sort.
//
// A request runs on one view of each index that it reads, and holds it until the response is written: documents and
// highlights refer to the memory of segments. A search with a vector has up to two rankings, by words and by
// similarity, which hybrid.go merges. Facets are counted on the candidates of the ranking, not on the page. Hits that
// rules pin are taken out of the universe before ranking and put in their places afterwards (pins.go).
//
// Parts of a request run at other instances of a network (remote_*.go ask, peer_*.go answer): hits are merged by the
// values that ordered them.
//
// Caveats:
//   - When the time is over, the response says that it is degraded, and is not cached.
//   - What a response holds counts against the memory of the request. The error of that is one for the user.
//
// # Steps
//
// Search checks the request against the settings, takes the universe (live rows that the filter allows), and embeds the
// query if it searches by meaning, while its slot is free for others. Then it ranks (ranking.go). Package rank returns
// hits with the values that ordered them; nothing here compares documents in another way. Facets, aggregations and
// groups are counted on the candidates. At last the documents of the page are read by row, and formatted as JSON text,
// without decoding them (response.go, format.go).
//
// # Facets
//
// A source counts the values of a facet in one segment, by ordinal (facetcount.go). A selector picks the values that
// the answer shows (facetselect.go). It reads as little as the order allows: lists in the order of values stop when
// they are full, and lists by count look only at values that can be among the best. A value that several segments have
// is one value: sources are merged by a heap, or by numbers that package numbering gives values. facetorder.go has a
// row for each order, which says what it means for one index, several indexes and facet search.
//
// # Highlights and crops
//
// A highlighter finds in a text what the query matched, by the same analysis that made the words. A crop is the run of
// words that says most: the most words of the query, then the closest together, then in the order of the query. Long
// texts have a concordance in the segment, so that a crop reads only the pieces around its run (concord.go). What it
// finds there is compared with the text, because the concordance may be of an older analysis.
//
// # Merging
//
// Hits of several queries, indexes and instances come from heads of sorted lists, and are merged by the values that
// ordered them (federation_merge.go). So every page is a part of one list. Parts of a hybrid query that several instances
// or shards search are merged by its semanticRatio first (federation_parts.go). Other instances answer in a form that takes
// no parser (peer_answer.go), in JSON if they are not svc (remote_parse.go). What they send is bounded and charged
// before it is allocated.
package search
