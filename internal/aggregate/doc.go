// Package aggregate computes aggregations: figures (stats, percentiles, cardinality) and buckets (terms, histogram,
// dateHistogram, range) of the values that a set of documents has. It knows segments, not indexes or requests.
//
// An aggregation has three parts. A source gives the values of some rows of a segment: by row, as pairs of a row and its group, or by
// ordinal, as the number of rows that have each distinct value. A selector says which values form a group: kinds of buckets are
// selectors, and nested aggregations see their groups. An accumulator folds the values of a group into its state.
//
// States are columns with an entry per group, so thousands of groups take a few slices. All states of one Spec can be merged, in any
// order: those of segments during the computation, and later those of indexes, queries and other machines. Count, min, max, sum and
// buckets are exact. Percentiles and cardinality become sketches beyond a number of values (quantiles.go, cardinality.go).
//
// Facets use the same parts: Ordinals is their source, and facetStats are the accumulators min and max.
//
// # A computation
//
// Compute goes segment by segment. A node, the state of one aggregation, opens the column of its attribute. If all candidates are in
// one group, the node may tally: it folds each distinct value once, with the number of candidates that have it. Otherwise it walks
// the rows in batches of 1,024, as pairs of row and group. A node with buckets maps each pair to a bucket and passes the pairs (row,
// bucket) to its nested nodes: buckets of one level are the groups of the next. So nesting needs no lookup per path, and memory grows
// with the number of groups that have documents.
//
// # Memory and time
//
// Every slice and sketch is charged to the account of the request before it is allocated (work.hold). Groups are
// bounded (maxGroups). Each batch yields the turn; if the deadline has passed, the result is degraded and says so.
//
// # Exactness
//
// A sum is an unevaluated sum of two floats, and is divided with big.Float, so the order of additions changes no shown digit.
// Sketches merge by their own rules, so their figures may depend on how documents are spread over segments, within their error.
//
// # Caveats
//
//   - Ordinals of a forged segment may be out of range: loops check them against the size of the column.
//   - A Result may refer to mapped memory. Hold the views until it is rendered.
//   - readPeer reads data from another machine. It spoils the reader on invalid data, and never allocates by a number that it has not
//     checked against the remaining bytes.
package aggregate
