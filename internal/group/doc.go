// Package group has a data directory follow that of another svc, its writer, and has voters elect one of them to write.
//
// # Writer and readers
//
// The writer appends each change of its directory (package commit) to a log, after the change is durable. A reader
// takes a copy of the directory, and then makes the changes of the log in it, in their order. So it holds what the
// writer held after some entry of the log: a program that is started on it goes on as the writer that was killed then.
//
// Files that do not change, such as segments, are not part of the log. An entry names those that count from then on,
// with their sizes and checksums. A reader fetches them before it makes the change. The writer puts off the removal of
// files that a reader may still fetch (hold.go).
//
// A log belongs to one run of the writer. The next run begins another one, and readers take an image of the directory
// again: they keep the files that they have by name, size and checksum. A Position is term, run and index of an entry.
// Positions compare in that order; those of one term and run are of one log.
//
// An image is the list of a directory's files with the contents of the small ones. It may be taken while changes go on:
// then it is whole only with the entries up to a later one (Image.Whole), which the reader replays before it uses the
// copy. The copy is made in group/join and swapped in by renames (join.go), so a crash leaves the old directory or the
// new one.
//
// A reader takes over in two steps, so that no change is lost (takeover.go). A promotion without the writer raises the
// term. A former writer that hears of a higher term notes it durably and refuses writes: it is fenced.
//
// # Voters
//
// Voters have one log together, which they agree on before a change is made (package consensus). They elect the one of
// them that writes. A proposer waits in Voter.Do, with the locks of its store, until the log comes to its entry; so
// changes are made in the order of the log, also at the leader. Nobody reads a change that the group may still lose.
//
// Files go to the other voters before the entry that names them, into a spool by size and checksum (ship.go, spool.go).
// An entry in the log of a voter therefore means that its files are on that voter's disk. A voter that lacks entries
// which nobody has any more copies the directory of another one, as a reader does.
//
// A voter that stops leading closes its stores: they may show changes that the group has not accepted. It opens them
// again and follows. One whose directory was replaced by an older copy must not vote, because it does not know of its
// promises: the leader detects it, and it lapses (lapsed.go).
//
// # Versions
//
// Entries, hellos and images have versions. Voters of two versions of svc work together: a leader writes entries of the
// newest level that all voters read (level.go).
//
// # Connections
//
// Members speak HTTP over TLS 1.3. Both sides of a connection prove that they know the master key before they say
// anything else (hello.go). The proof covers the exporter of the TLS connection (RFC 9266), so it cannot be passed on.
//
// # Locks
//
// Of a Voter, in this order: turn or copying, saving, mu. turn is held for a change of the directory, or a copy of it
// for others, and copying for a copy of another voter's directory. These two are never held together. saving guards the
// position and its last record, and is held during a sync. mu guards all other fields, briefly. VoterFeed.mu guards the
// fields of a feed, briefly, and is never held together with mu or saving.
package group
