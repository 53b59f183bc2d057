// Package boltfile opens the bbolt files of svc: the task queue and the API keys.
//
// bbolt trusts its file. On a damaged page it panics, or returns wrong data. boltfile adds what svc needs to detect
// damage:
//   - A file is created under another name, synced, and then renamed, so that it is complete when it exists.
//   - All pages are checked before bbolt maps the file, from the two roots to the list of free pages (check.go).
//   - Each page is compared with the checksum of what was last written there, before bbolt reads it (pages.go,
//     guard.go).
//   - Each value has a checksum behind it (Put, Get).
//   - The last change is in both roots, so that one flipped bit cannot undo it (revert.go).
//
// Salvage reads what is left of a damaged file (salvage.go).
//
// # The file
//
// A file of bbolt is pages of 4 KiB or so: two roots, then branches, leaves and the list of free pages. A transaction
// writes changed pages to free places, syncs, writes the older of the two roots, and syncs. So the newer root always
// has a whole tree. The bucket meta has the version of the content; every value elsewhere ends with a checksum of its
// key and itself.
//
// # Doubt
//
// If the sync behind the root fails, nobody knows whether the transaction is in the file (Unsure). A later sync that
// succeeds says nothing of it. Revert copies what the older root shows to a new file, synced from its first byte, and
// takes its place. Until then nothing is written.
//
// After a damaged newest root bbolt would go on with the older one, and silently lose the last change. Settle writes
// both roots: for keys after each change, for the queue once nothing reads or writes it. Options.Lacking is told of a
// damaged one at the start.
//
// # Guard
//
// Pages are compared with sums in memory, because a page may change under an open file. bbolt panics where it meets
// what it does not expect; Guard turns its panics, and faults of the mapping, into an *apierr.Corruption. Locks that
// bbolt holds in such a panic stay locked, so nothing is asked of that file any more (DB.held).
//
// # Caveats
//
//   - Code outside of this package does not use bbolt. Values come from Get, which checks them, and alias mapped memory
//     until the transaction ends.
//   - A transaction may be described by its changes (Changes), which another file of the same content can apply.
package boltfile
