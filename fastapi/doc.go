// Package fastapi speaks the HTTP API: fasthttp and its router in front, one file a resource, request decoding with
// exact error codes.
//
// # The way of a request
//
// CORS → path → route and method → key → handler. routes.go has the table of all routes: method, path, the action that
// a key must allow, handler, and what the OpenAPI document says. A handler reads its query string and its body through
// tables of params. What it returns as an error becomes the answer. So a route is described once: decoding, error
// codes, limits and the OpenAPI document come from the same rows.
//
// Bodies and answers are compressed and decompressed here, and no handler knows. Bodies are streamed, so documents may
// exceed memory. Every other body, and every string and list in it, has a limit.
//
// # What a request holds
//
// A request lives from its first byte to the last one of its answer (request.go). It holds an account of bytes
// (internal/budget): what a handler keeps for long, and every answer, is charged before it is made. When all requests
// together hold too much, the connections that take longest to send or receive are closed (conns.go).
//
// # Searches under load
//
// A search needs a slot (slots.go). Those that wait are in two bags, one for small requests and one for large ones. A
// free slot goes to a random small search; to a large one if none waits, or after 16 small ones. If the bags are full,
// a random search is refused, large ones first. LIFO and FIFO both starve somebody.
//
// A search that has worked for 20 ms counts as long: it gives its slot back and continues in the lane of long searches,
// where the one that has worked least comes next (turn.go). So short searches never wait for long ones. A turn changes
// hands only in Yield, which nobody calls with a lock held. The watchdog reports searches that make no progress.
//
// A search that is repeated in the same bytes while its view is current is answered from a cache before it is decoded
// (answerkept.go).
//
// # Members of a group
//
// On a reader, forwarded.go says for each action who answers: the reader itself, or the writer. A new action needs a
// row there. While a reader has no open data, Standby answers in place of a Server (standby.go).
//
// # Caveats
//
//   - What a RequestCtx returns is valid until the handler returns. Copy what a task or a goroutine keeps.
//   - Views and turns end before the answer is sent, but for streams. An answer must not refer to mapped memory.
//   - Error messages quote what the client sent, cut to a length. They name no index that the key does not reach.
//   - A panic costs its request, not the process (Server.recover). Damage that a handler meets becomes an error with a
//     code. A goroutine that a handler starts needs a fence of its own.
package fastapi
