// Package settings owns the settings of an index: their types, defaults and JSON forms, the merging of updates, what a
// setting means for each field, and what a change makes stale.
//
// The table in table.go has one row per setting: how it is read, checked, merged, shown and reset, its error code, and its class of
// stale data (changes.go). A new setting is a row; tests name what a row lacks. Resolve turns settings and the numbered fields of an
// index into a FieldInfo per field, so indexing and searches do not evaluate patterns.
//
// A Settings value is immutable once an index has it: an update makes a copy. It contains secrets of embedders in clear text. show
// and echo mask them unless a caller asks for secrets, which only files and dumps do.
//
// # The life of an update
//
// ParseUpdate checks a body as far as possible without other settings, and keeps what was sent. The task stores it. When the task
// runs, Settings.Apply reads the values into a copy and checks settings that depend on each other. A null resets a setting to its
// default; members of merged settings are reset one by one (merged.go). Changes compares the result with the previous settings, under
// the fields of both, and says what is stale: words, columns, prefixes, places or vectors. Package index then rebuilds it.
//
// # Fields
//
// A pattern such as "product.*" covers fields that no document has yet. Resolve applies all patterns once per field and set of
// settings. All other code uses FieldInfo. Some settings of a parent also cover its nested fields, others cover a field by its own
// name alone; fields.go says which.
//
// # Caveats
//
//   - The stored form is JSON of its own (Encode), not that of the API. Old forms stay readable.
//   - A value of this package points into the body. It is not used after the call of read.
//   - Errors name the path of the value in the body, what is allowed, and what was sent.
package settings
