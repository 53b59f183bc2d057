// Package group has a data directory follow that of another svc, its writer, and has voters elect one of them to write.
//
// # Writer and readers
//
// The writer appends each change of its directory (package commit) to a log, after the change is durable. A reader takes a copy of
// the directory and then applies the changes of the log, in order. So it holds what the writer held after some entry of the log. A
// program that starts on the directory continues as the writer killed at that point would.
//
// Files that do not change, such as segments, are not part of the log. An entry names the new ones, with their sizes and checksums. A
// reader fetches them before it applies the change. The writer delays the removal of files that a reader may still fetch (hold.go).
//
// A log belongs to one run of the writer. The next run starts another log, and readers take an image of the directory again: they
// keep the files that match by name, size and checksum. A Position is term, run and index of an entry. Positions compare in that
// order; those with the same term and run belong to one log.
//
// An image is the list of a directory's files with the contents of the small ones. It may be taken while changes continue. It is then
// complete only together with the entries up to a later one (Image.Whole), which the reader replays before it uses the copy. The copy
// is made in group/join and moved into place by renames (join.go), so a crash leaves the old directory or the new one.
//
// A reader takes over in two steps, so that no change is lost (takeover.go). A promotion without the writer raises the term. A former
// writer that learns of a higher term notes it durably and refuses writes: it is fenced.
//
// # Voters
//
// Voters share one log, and agree on an entry before the change is made (package consensus). They elect one of them as writer. A
// proposer waits in Voter.Do, with the locks of its store, until the log reaches its entry. So changes are made in the order of the
// log, also at the leader, and no client reads a change that the group may still lose.
//
// Files go to the other voters before the entry that names them, into a spool by size and checksum (ship.go, spool.go). So an entry
// in the log of a voter means that its files are on that voter's disk. If a voter lacks entries that no log has any more, it copies
// the directory of another voter, as a reader does.
//
// A voter that stops leading closes its stores: they may show changes that the group has not accepted. It opens them again and
// follows. A voter whose directory was replaced by an older copy must not vote, because it does not know its promises. The leader
// detects this, and the voter lapses (lapsed.go).
//
// # Versions
//
// Entries, hellos and images have versions. Voters of two versions of svc work together: a leader writes entries of the
// newest level that all voters read (level.go).
//
// # Connections
//
// Members speak HTTP over TLS 1.3. Both sides of a connection first prove that they know the master key (hello.go). The proof covers
// the exporter of the TLS connection (RFC 9266), so it cannot be passed on.
//
// # Locks
//
// Of a Voter, in this order: turn or copying, saving, mu. turn is held for a change of the directory, or a copy of it
// for others, and copying for a copy of another voter's directory. These two are never held together. saving guards the
// position and its last record, and is held during a sync. mu guards all other fields, briefly. VoterFeed.mu guards the
// fields of a feed, briefly, and is never held together with mu or saving.
package group
