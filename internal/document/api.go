// Package document owns documents as JSON text: payloads in JSON, NDJSON and
// CSV, ids, the walk over nested values, merging, and edit scripts.
package document

import "io"

// Format is the media type of a payload.
type Format uint8

const (
	JSON Format = iota
	NDJSON
	CSV
)

// Convert reads a payload as it streams in and writes its documents to w, each as
// one compact JSON object and a newline. It returns how many there were. What is
// wrong with the payload comes back as *apierr.Error (malformed_payload, …).
// delimiter is for CSV only. Memory: one document, never the payload.
func Convert(w io.Writer, r io.Reader, f Format, delimiter byte) (int, error) { panic("stub") }

// ExternalID returns the canonical id text of a document under the primary key (a
// dotted path), or an *apierr.Error: missing_document_id, invalid_document_id.
func ExternalID(doc []byte, primaryKey string) ([]byte, error) { panic("stub") }

// InferPrimaryKey looks for the key among the fields of a document:
// index_primary_key_no_candidate_found, index_primary_key_multiple_candidates_found.
func InferPrimaryKey(doc []byte) (string, error) { panic("stub") }

// ValidID reports whether id, as it stands in a URL or a deletion, can be a document's id.
func ValidID(id []byte) bool { panic("stub") }

// Merge lays the first-level fields of change over those of old.
func Merge(old, change []byte) ([]byte, error) { panic("stub") }

// Fields calls f for every first-level field of a document with its name (unescaped) and raw value, in order.
func Fields(doc []byte, f func(name, value []byte) error) error { panic("stub") }

// Visitor is told about the values of a document by Walk.
type Visitor interface {
	// Field maps a full dotted path to a handle that the other calls get; called for every path visited.
	Field(path []byte) (handle int)
	// Scalars. text is the string's unescaped text, or a number or boolean as text.md 10 prints it. visit counts the
	// visits of this path before this one in this document (text.md 10): it moves the position base.
	String(field int, text []byte, indices []int)
	Number(field int, text []byte, value float64, indices []int)
	Bool(field int, value bool, indices []int)
	// Null is a null; Empty an empty string, array or object (also reported as String when a string).
	Null(field int)
	Empty(field int)
	// Visit is called at each visit of a path (text.md 10, the rules for arrays, objects and members), before its value.
	Visit(field int)
}

// Walk visits a document's values in the order in which words get positions.
func Walk(doc []byte, v Visitor) error { panic("stub") }

// Script is a compiled edit function.
type Script struct{}

// Compile compiles the script dialect of documents/edit; bad_request when it does not.
func Compile(source string) (*Script, error) { panic("stub") }

// Edit runs the script on doc with context (JSON or nil). It returns the changed document,
// or nil when the script removed it. Errors have code edit_documents_by_function_error.
func (s *Script) Edit(doc, context []byte) ([]byte, error) { panic("stub") }
