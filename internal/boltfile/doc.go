// Package boltfile opens the bbolt files of svc: the task queue and the API keys.
//
// bbolt trusts its file. On a damaged page it panics, or returns wrong data. boltfile adds what svc needs to detect
// damage:
//   - A file is created under another name, synced, and then renamed, so that it is complete when it exists.
//   - All pages are checked before bbolt maps the file, from the two roots to the list of free pages (check.go).
//   - Each page is compared with the checksum of what was last written there, before bbolt reads it (pages.go, guard.go).
//   - Each value is followed by a checksum (Put, Get).
//   - The last change is in both roots, so that one flipped bit cannot undo it (revert.go).
//
// Salvage reads the remains of a damaged file (salvage.go).
//
// # The file
//
// A bbolt file has pages of about 4 KiB: two roots, then branches, leaves and the list of free pages. A transaction writes changed
// pages to free places, syncs, writes the older of the two roots, and syncs. So the newer root always has a complete tree. The bucket
// meta has the version of the content; every other value ends with a checksum of its key and itself.
//
// # Doubt
//
// If the sync after the root fails, it is unknown whether the transaction is on disk (Unsure). A later successful sync proves
// nothing. Revert copies what the older root shows to a new file, syncs the whole file, and replaces the old one. Until then nothing
// is written.
//
// If the newest root is damaged, bbolt by itself continues with the older one, and silently loses the last change. Settle writes both
// roots: for keys after each change, for the queue once it is idle. Options.Lacking reports a damaged root at the start.
//
// # Guard
//
// Pages are compared with checksums in memory, because a page may change under an open file. bbolt panics on unexpected content.
// Guard turns its panics, and faults of the mapping, into an *apierr.Corruption. Locks that bbolt holds in such a panic stay locked,
// so the file is not used any more (DB.held).
//
// # Caveats
//
//   - Code outside of this package does not use bbolt. Values come from Get, which checks them, and alias mapped memory
//     until the transaction ends.
//   - A transaction may be described by its changes (Changes), which another file of the same content can apply.
package boltfile
