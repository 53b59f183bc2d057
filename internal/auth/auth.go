// Package auth owns the API keys: their file, their values, what each may do
// and on which indexes; and the tenant tokens that callers make of them.
//
// A key's value is the hex text of HMAC-SHA256(master key, uid). It is
// derived, never stored, so that the file holds no secret and clients keep
// their keys when their instance moves. Reads go to a table in memory, which
// a change replaces once it is durable.
package auth
