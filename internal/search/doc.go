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
//   - When time is over, the response says that it is degraded, and is not cached.
//   - The memory of a response is charged to the request. An error of that is for the user.
//
// # Steps
//
// Search checks the request against the settings, determines the universe (live rows that the filter allows), and embeds the query if
// it searches by meaning; meanwhile its slot is free. Then it ranks (ranking.go). Package rank returns hits with the values that
// ordered them; nothing here compares documents in another way. Facets, aggregations and groups are counted on the candidates.
// Finally the documents of the page are read by row and written as JSON text, without decoding them (response.go). Package selection
// picks their attributes, and package format crops and highlights them.
//
// # Facets
//
// A source counts the values of a facet in one segment, by ordinal (facetcount.go). A selector picks the values that the answer shows
// (facetselect.go). It reads as little as the order allows: lists in the order of values stop when they are full, and lists by count
// read only values that can be among the best. Equal values of several segments are one value: sources are merged by a heap, or by
// the numbers of package numbering. facetorder.go has a row for each order, which says what it means for one index, several indexes
// and facet search.
//
// # Merging
//
// Hits of several queries, indexes and instances are sorted lists, which are merged by the values that ordered the hits
// (federation_merge.go). So every page is a part of one list. Parts of a hybrid query that several instances or shards search are
// first merged by its semanticRatio (federation_parts.go). Other instances answer in a form that needs no parser (peer_answer.go), or
// in JSON if they are not svc (remote_parse.go). Their answers are bounded and charged before memory is allocated.
package search
