// Package network owns what svc does together with other instances. It knows who they are and which of them owns which
// shard of the documents (network.go, patch.go, store.go). It runs the searches that they take part in (search.go), and
// asks them over HTTP (client.go, availability.go).
//
// # State
//
// A Node has one sealed file with the Network, the change in progress, and how the last ones ended. A change replaces
// the file and then the value in memory. A Network is immutable once it is stored.
//
// Every document belongs to one shard (package shard), and a shard to one or more remotes. Each instance gets every
// addition and keeps what it owns.
//
// # Writes
//
// If there is a leader, it alone takes writes. It stores the task and the request for the others in one transaction,
// and sender.go delivers them to each remote in order. A receiver stores the origin with its task, so a repeated
// request is recognised. An answer that refuses the request is final; one that tells of trouble at the remote is not.
//
// # Changes
//
// A change of remotes or shards is a task on every instance. topology.go has its phases and what a crash leaves in
// each. The commit is one replaced file at the leader: before it anybody may cancel, after it only the deletion of
// foreign documents can be given up. Nothing is deleted before all have switched, so a search that was planned before
// finds the same.
//
// # Searches
//
// A search names the version of the network that it was planned by, and each instance answers by the shards of that
// version. Each shard is asked of one owner. availability.go decides whom to ask: a remote that failed is left out for
// a time that doubles, from 30 s to 5 min, and is probed if nobody else has its shard.
//
// # Lost and restored instances
//
// A remote that was away until the leader's outbox was full is lost: what it lacks is forgotten, and when it is back it
// gets a copy of all that it owns (lost.go). A leader that was restored from a snapshot takes no writes until it has
// asked all others what the network is, and how much of its writes they have (setback.go).
//
// # Caveats
//
//   - Other instances are trusted with documents and keys, but not with memory: every answer has a bound.
//   - Clocks may differ: versions are compared as text, and the leader picks a later one than any it has heard of.
package network
