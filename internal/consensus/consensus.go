// Package consensus keeps a log that a majority of the members of a group agrees on, with hashicorp/raft. An entry for
// which Propose returned nil is on the disks of a majority, with the files that it names, and every later leader has
// it.
//
// Raft does not hold the state. The data directory of each member has the log up to some entry, and this package knows only
// positions. A snapshot of raft is a note of a position. If the other members no longer have the entries that a member lacks, it
// copies the data directory of one of them.
//
// This package adds what hashicorp/raft 1.8.0 lacks around its log store and its transport:
//
//   - A leader whose disk stalls sends nothing, so that the others elect one whose disk works (guard.go).
//   - A member whose log could not be written requests no votes for some time (guard.go).
//   - After a failed append or truncation, raft's idea of the last entry may be wrong. The node is closed and reopened (node.go).
//   - Heartbeats change nothing outside raft's main goroutine. In raft itself, a former leader could append entries in the term of
//     its successor (heartbeat.go).
//   - Any member can ask the leader which entry it has to wait for to show all acknowledged changes (ReadIndex).
//   - A leader sends an entry while it syncs its own log. Raft counts the leader's copy at once, but this package reports the entry
//     as committed only after the sync (store.go).
//   - Files reach a member before the entries that name them (transport.go). Large changes are sent as files, so entries stay small.
//
// # Terms
//
// An entry is committed when a majority has it on disk. A term is the number of a leadership. An uncommitted entry of a former leader
// may be replaced. So a position after the last committed entry has a meaning only together with a term.
//
// # Invariants
//
//   - An entry is synced before it is acknowledged (logs), and synced at the leader before it is reported as committed. A member
//     whose term is not on disk accepts no entries and grants no votes (stable).
//   - Before entries are sent to a member, Ship has returned for it and these entries. Before the member appends them, Check passes.
//   - The log is cut only up to the entry that the data directory has durably (Applied). Index 1 is never stored, so a member with an
//     empty log always gets a snapshot, which makes it copy a directory.
//   - A change is appended only in the term in which it was proposed, and not after Propose has returned (proposals.go).
//   - A leader appends no change without its files.
//   - A proposal that fails with ErrNotLeader may still be committed. The caller finds out by following the log.
//
// Source: D. Ongaro, J. Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014). ReadIndex is section
// 6.4 of Ongaro's dissertation.
package consensus
