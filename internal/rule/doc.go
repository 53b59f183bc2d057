// Package rule owns the search rules of merchandisers: which documents a rule pins to a position or gives another
// weight, for which searches, and when. It also owns their file, and the selection of the rules that apply to a search.
//
// A search does not evaluate all rules. A matcher (matcher.go, tree.go, windows.go) indexes them by their rarest word, text, value or
// time, and is rebuilt by each change before the change takes effect. Limits on the work per search are in bounds.go. A rule that
// cannot be decided within a limit does not apply.
//
// The API changed the form of rules twice. A rule keeps the form in which it was written (Form), and a change in
// another form converts it (change.go).
//
// # Matching
//
// A Set is immutable and each change makes a new one, so a search needs no lock. Its matcher indexes a rule under one of its
// conditions, the rarest of its kind: a word of the query, a text in the query (a tree of texts), a pair of attribute and value that
// the filter fixes, or an attribute that it tests. Rules without any of these are always candidates. The candidates are then
// evaluated completely, in the order of their priority.
//
// What a filter fixes is determined without documents: package filter lists ways to satisfy it, and a condition holds if one of them
// fixes its values.
//
// # Effects
//
// A search gets pins (a document and its place) and scales (weights of documents). Package search takes the pinned
// documents out of the ranking and puts them in afterwards. A pinned document must pass the filter of the search.
package rule
