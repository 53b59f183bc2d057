// Package auth owns the API keys: their file, their values, what each may do and on which indexes. It also owns the
// tenant tokens that callers derive from them.
//
// The value of a key is the hex text of HMAC-SHA256(master key, uid). It is derived, never stored. So the file has no
// secret, and clients keep their keys when their instance moves with the same master key.
//
// Authorization reads a table in memory, without a lock (caller.go). A change writes the file, syncs it, and then
// replaces the table: a key that was refused, or whose deletion was acknowledged, never works after a restart.
//
// Caveats:
//   - Without a master key every caller has full access, except to keys and chats.
//   - Compare values in constant time, and never log or show one (conceal.go).
//   - A caller that lacks a right must not learn whether an index or a key exists.
//
// # Rights
//
// Actions are bits of a set. A wildcard is expanded when a key enters the table, so a request tests one bit. Whether a
// caller reaches an index is a second question, by patterns of uids and aliases (pattern.go). An action on the whole
// instance opens nothing to a key that is limited to some indexes.
//
// A tenant token is a JSON Web Token signed with the value of a key. It can only restrict the key. Its caller may search and chat, if
// the key may, on indexes that both the key and the rules of the token cover, under the filters of these rules (Caller.Filter).
//
// # Rate limits
//
// Each key has a token bucket per kind of request. A request takes tokens before its work begins. A bucket may go into debt, because
// the cost of a multi-search shows only after its body is read. A changed key keeps its buckets.
//
// # Following
//
// A store in follow mode shows the keys of another program, the writer, and applies the writer's changes (follow.go). After Lead it
// accepts changes of its own.
package auth
