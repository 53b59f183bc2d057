// Package fastapi speaks the HTTP API: it uses fasthttp and its router, has one file per resource, and decodes requests with exact
// error codes.
//
// # Handling a request
//
// CORS → path → route and method → key → handler. routes.go has the table of all routes: method, path, the action that a key needs,
// handler, and what the OpenAPI document says. A handler reads its query string and its body through tables of params. The error that
// it returns becomes the answer. So a route is described once: decoding, error codes, limits and the OpenAPI document come from the
// same rows.
//
// Bodies and answers are compressed and decompressed outside of handlers. Bodies are streamed, so documents may exceed memory. Every
// other body, and every string and list in it, has a limit.
//
// # Memory of a request
//
// A request lives from its first byte to the last one of its answer (request.go). It has a memory account (internal/budget):
// long-lived data of a handler, and every answer, is charged before it is allocated. When all requests together hold too much, the
// connections that take longest to send or receive are closed (conns.go).
//
// # Searches under load
//
// A search needs a slot (slots.go). Waiting searches are in two bags, one for small requests and one for large ones. A free slot goes
// to a random small search; to a large one if none waits, or after 16 small ones. If a bag is full, a random search is refused, large
// ones first. LIFO and FIFO both starve some clients.
//
// A search that has worked for 20 ms counts as long: it releases its slot and continues in the lane of long searches, where the one
// that has worked least comes next (turn.go). So short searches never wait for long ones. A turn changes hands only in Yield, which
// is never called with a lock held. The watchdog reports searches that make no progress.
//
// A repeated search, with the same bytes while its view is current, is answered from a cache before it is decoded (answerkept.go).
//
// # Members of a group
//
// On a reader, forwarded.go says for each action which member answers: the reader itself, or the writer. A new action needs a row
// there. While a reader has no open data, Standby answers instead of a Server (standby.go).
//
// # Caveats
//
//   - Data from a RequestCtx is valid until the handler returns. Copy what a task or a goroutine keeps.
//   - Views and turns end before the answer is sent, except for streams. An answer must not refer to mapped memory.
//   - Error messages quote what the client sent, cut to a length. They name no index that the key does not reach.
//   - A panic ends its request, not the process (Server.recover). Damage that a handler finds becomes an error with a code. A
//     goroutine that a handler starts needs its own recovery.
package fastapi
