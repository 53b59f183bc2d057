// Package consensus keeps a log that a majority of the members of a group agrees on, with hashicorp/raft. An entry for
// which Propose returned nil is on the disks of a majority, with the files that it names, and every later leader has
// it.
//
// The state is not raft's: the data directory of each member has the log up to some entry, and the package knows only
// positions. A snapshot of raft is a note of a position. A member that lacks entries which the others have no longer
// copies the data directory of one of them.
//
// What hashicorp/raft 1.8.0 lacks is added around its log store and its transport:
//
//   - A leader whose disk stalls sends nothing, so that others elect one whose disk works (guard.go).
//   - A member whose log could not be written asks for no votes for some time (guard.go).
//   - After a failed append or truncation raft's idea of the last entry may be wrong: the node is closed and opened
//     again (node.go).
//   - A heartbeat changes nothing beside raft's own goroutine, where a former leader could append entries in the term
//     of its successor (heartbeat.go).
//   - Any member learns from the leader up to where it has to have the log to show all that was acknowledged
//     (ReadIndex).
//   - A leader sends an entry while it syncs its own log. It tells nobody that the entry is committed before its log is
//     durable, although raft counts the leader at once (store.go).
//   - Files go to a member before the entries that name them (transport.go). Large changes are files, too: entries stay
//     small.
//
// # Terms
//
// An entry is committed when a majority has it on disk. Members number leaderships by terms. An entry of a former
// leader that a minority has may be replaced: positions behind the committed one mean something only together with a
// term.
//
// # Invariants
//
//   - An entry is synced before it is acknowledged (logs), and at the leader before it is known to be committed. A
//     member whose term is not on disk takes no entries and gives no votes (stable).
//   - Ship has returned for a member before the entries that name these files are sent to it, and Check must pass
//     before they are appended there.
//   - The log is cut only up to where the data directory has it durably (Applied). Index 1 is never stored, so a member
//     with an empty log always gets a snapshot, which makes it copy a directory.
//   - A proposal that fails with ErrNotLeader may be committed all the same. The caller finds out by following the log.
//
// Source: D. Ongaro, J. Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014). ReadIndex is section
// 6.4 of Ongaro's dissertation.
package consensus
