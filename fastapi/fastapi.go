// Package fastapi speaks the HTTP API: fasthttp and its router in front,
// one file a resource, request decoding with exact error codes.
//
// The way of a request: CORS → path → route and method → key → handler. A
// handler reads its query string and its body through tables of params, and
// what it returns as an error becomes the answer's envelope. Bodies and
// answers are compressed and decompressed here, so that no handler knows.
package fastapi
