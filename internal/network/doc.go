// Package network owns the cooperation with other instances. It knows the instances and which of them owns which shard of the
// documents (network.go, patch.go, store.go). It runs searches across instances (search.go), and sends requests to them over HTTP
// (client.go, availability.go).
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
// If there is a leader, only the leader takes writes. It stores the task and the request for the others in one transaction, and
// sender.go delivers the requests to each remote in order. A receiver stores the origin with its task, so it recognises a repeated
// request. A response that refuses the request is final. A response that reports a temporary failure of the remote is not.
//
// # Changes
//
// A change of remotes or shards is a task on every instance. topology.go has its phases and what a crash leaves in each. The commit
// is one replaced file at the leader. Before it any instance may cancel the change; after it only the deletion of foreign documents
// can be abandoned. Nothing is deleted before all instances have switched, so searches planned earlier still find everything.
//
// # Searches
//
// A search names the version of the network that it was planned with, and each instance answers by the shards of that version. Each
// shard is searched by one owner. availability.go chooses it: a remote that failed is skipped for a time that doubles, from 30 s to 5
// min. It is probed if no other owner of its shard is usable.
//
// # Lost and restored instances
//
// A remote that is away until the leader's outbox is full is lost: the outbox drops its requests. When it returns, it gets a copy of
// all that it owns (lost.go). A leader that was restored from a snapshot takes no writes until it has asked all others for the
// network and for how much of its writes they have (setback.go).
//
// # Caveats
//
//   - Other instances are trusted with documents and keys, but not with memory: every answer has a bound.
//   - Clocks may differ: versions are compared as text, and the leader picks a later one than any it has heard of.
package network
