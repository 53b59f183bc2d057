// Package analytics counts searches by query and by filter, per hour. It counts a search in memory. Once a second it appends the
// changes to a journal and syncs it, so a crash loses at most the last second. When an hour ends, its most frequent queries and
// filters are written to a file of their own, and the journal starts again.
//
// The counts do not identify users: this package sees neither addresses nor keys.
//
// # Bounds
//
// Memory is limited by the number of distinct queries and filters in an hour. When little room remains, the less frequent half is
// added to the rest of its index, so sums stay right. When an hour ends, its file gets a thousand queries: half of them by number of
// searches, a quarter by searches without hits, a quarter by time. Texts are cut to a length.
//
// # Files
//
// Counts in the journal are totals up to a moment. A later record of a key replaces an earlier one, so reading a journal twice does
// no harm. The last frame may be torn. After damage only the frames before it count. Reports skip a damaged file of an hour, with one
// warning.
//
// # Events
//
// Clicks and conversions name a search by its requestUid. A table of fixed size has the last searches. Events of older searches do
// not count.
package analytics
