// Package settings owns the settings of an index: their types, defaults and JSON forms, the merging of updates, what a
// setting means for each field, and what a change makes stale.
//
// The table in table.go has one row per setting: how it is read, checked, merged, shown and reset, its error code, and
// its class of stale data (changes.go). A new setting is a row; tests name what a row lacks. Resolve turns settings and
// the numbered fields of an index into a FieldInfo per field, so that indexing and searches do not look at patterns.
//
// A Settings value is immutable once an index has it: an update makes a copy. Secrets of embedders are in it in clear;
// show and echo mask them unless a caller asks for secrets, which only files and dumps do.
//
// # The life of an update
//
// ParseUpdate checks a body as far as that needs no other settings, and keeps what was sent. The task stores it. When
// the task runs, Settings.Apply reads the values into a copy and checks what settings ask of each other. A null resets
// a setting to its default, and members of merged settings by themselves (merged.go). Changes compares the result with
// the settings before, under the fields of both, and says what is stale: words, columns, prefixes, places or vectors.
// Package index does the work.
//
// # Fields
//
// A pattern such as "product.*" covers fields that no document has yet. Resolve applies all patterns once per field and
// set of settings. FieldInfo is what everybody asks. A nested field is covered by its parents in some settings, and by
// its own name alone in others; fields.go says which.
//
// # Caveats
//
//   - The stored form is JSON of its own (Encode), not that of the API. Old forms stay readable.
//   - A value type of this package points into the body. It is not kept beyond the call of read.
//   - Errors name the path of the value in the body, what is allowed, and what was sent.
package settings
