// Package aggregate computes aggregations: figures (stats, percentiles, cardinality) and buckets (terms, histogram,
// dateHistogram, range) of the values that a set of documents has. It knows segments, not indexes or requests.
//
// Three parts make one aggregation. A source gives the values of some rows of a segment: by row, as pairs of a row and
// the group that it belongs to, or by ordinal, as the number of rows that have each distinct value. A selector says
// which values make one group: bucket kinds are selectors, and their groups are what nested aggregations see. An
// accumulator folds the values of a group into its state.
//
// States are columns with an entry for each group, so that thousands of groups take a few slices. All states of one
// Spec merge: those of segments while they are computed, those of indexes, queries and other machines afterwards, in
// any order. Count, min, max, sum and buckets are exact. Percentiles and cardinality are sketches beyond a number of
// values (quantiles.go, cardinality.go).
//
// Facets use the same parts: Ordinals is their source, and facetStats are the accumulators min and max.
//
// # The way of a computation
//
// Compute goes segment by segment. A node, the state of one aggregation, opens the column of its attribute. If all
// candidates are in one group, the node may tally: it folds each distinct value once, with the number of candidates
// that have it. Otherwise the rows are walked in batches of 1,024, as pairs of row and group. A node with buckets maps
// each pair to a bucket and passes the pairs (row, bucket) on to its nested nodes: buckets of one level are the groups
// of the next. So nesting costs no lookup per path, and memory grows with the groups that have documents.
//
// # Memory and time
//
// Every slice and sketch is charged to the account of the request before it is allocated (work.hold). Groups are
// bounded (maxGroups). Each batch yields the turn; if the deadline has passed, the result is degraded and says so.
//
// # Exactness
//
// Sums are kept as an unevaluated sum of two floats, and divided with big.Float, so that the order of additions changes
// no digit that is shown. Sketches merge by their own rules, so their figures may depend on how documents are spread
// over segments, within their error.
//
// # Caveats
//
//   - Ordinals of a forged segment may be out of range: loops check them against the size of the column.
//   - A Result may refer to mapped memory. Hold the views until it is rendered.
//   - readPeer reads what another machine sent. It spoils the reader on what cannot be, and never allocates by a number
//     that it has not checked against the bytes that are left.
package aggregate
