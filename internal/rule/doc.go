// Package rule owns the search rules of merchandisers: which documents a rule pins to a position or gives another
// weight, for which searches, and when. It also owns their file, and the selection of the rules that apply to a search.
//
// A search does not evaluate all rules. A matcher (matcher.go, tree.go, windows.go) indexes them by their rarest word,
// text, value or time, and is rebuilt by each change before the change takes effect. Bounds on the work per search are
// in bounds.go. A rule that cannot be decided within a bound does not apply.
//
// The API changed the form of rules twice. A rule keeps the form in which it was written (Form), and a change in
// another form converts it (change.go).
//
// # Matching
//
// A Set is immutable and made anew by each change, so a search takes it without a lock. Its matcher indexes a rule
// under one of its conditions, the rarest of its kind: a word of the query, a text in the query (a tree of texts), a
// pair of attribute and value that the filter fixes, or an attribute that it tests. Rules without any of these are
// always looked at. The candidates are then decided completely, in the order of their priority.
//
// What a filter fixes is found without documents: package filter lists ways to satisfy it, and a condition holds if one
// of them fixes its values.
//
// # Effects
//
// A search gets pins (a document and its place) and scales (weights of documents). Package search takes the pinned
// documents out of the ranking and puts them in afterwards. A pinned document must pass the filter of the search.
package rule
