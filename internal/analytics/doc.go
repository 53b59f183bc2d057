// Package analytics counts searches by query and by filter, and keeps the counts by hour. A search is counted in
// memory. Once a second what has changed is appended to a journal and synced, so a crash loses at most the last second.
// When an hour ends, its most frequent queries and filters are written to a file of their own, and the journal begins
// again.
//
// Nothing says who searched: neither addresses nor keys are known here.
//
// # Bounds
//
// Memory is bounded by the number of queries and filters that an hour tells apart. When there is little room left, the
// less used half is added to the rest of its index, so sums stay right. When an hour ends, its file keeps a thousand
// queries: half of them by searches, a quarter by searches without hits, a quarter by time. Texts are cut to a length.
//
// # Files
//
// Counts in the journal are totals up to a moment. A later record of a key takes the place of an earlier one, so
// reading a journal twice does no harm. The last frame may be torn. After damage the frames before it count. A damaged
// file of an hour is left out of reports, with one warning.
//
// # Events
//
// Clicks and conversions name a search by its requestUid. A table of fixed size remembers the last searches. What it
// has forgotten does not count.
package analytics
