// Package filter owns the filter language: lexer, parser, syntax tree, checking against the settings, and evaluation on
// columns to bitmaps.
//
//	expression = and { "OR" and }
//	and        = not { "AND" not }
//	not        = "NOT" not | "(" expression ")" | elements | function | condition
//	elements   = attribute ".{" expression "}"
//	condition  = attribute ( ("=" | "!=" | ">" | ">=" | "<" | "<=") value
//	           | value "TO" value
//	           | ["NOT"] "IN" "[" [ value { "," value } [","] ] "]"
//	           | ["NOT"] "EXISTS" | "IS" ["NOT"] ("NULL" | "EMPTY")
//	           | ["NOT"] "CONTAINS" value | ["NOT"] "STARTS WITH" value )
//	function   = "_geoRadius(" lat "," lng "," metres ["," resolution] ")"
//	           | "_geoBoundingBox([" top "," right "],[" bottom "," left "])"
//	           | "_geoPolygon(" "[" lat "," lng "]" { "," "[" lat "," lng "]" } ")"
//	           | "_foreign(" attribute "," expression ")"
//
// Inside braces, attributes are those of one object, which has to satisfy the whole expression by itself.
//
// Attributes and values are words of letters, digits, "_", "-" and ".", or anything in single or double quotes.
// Keywords are upper case, and values only in quotes.
//
// # From text to rows
//
// Parse builds a syntax tree (parser.go, json.go), which knows no index. Bind checks it against the settings of an index and returns
// a Bound (bind.go): attributes become fields, values become keys and numbers, once for all segments. A Bound is immutable. It
// evaluates any segment of the index to a bitmap of rows (eval.go).
//
// Evaluation passes candidates down: each part of a conjunction gets the rows that the parts before it found. Parts with the smallest
// estimated number of rows come first. size is that estimate, and must be cheap. A part may return deleted rows; the root removes
// them. So the result of a filter in a segment can be cached for all later views (kept.go). On the second use of a filter, its bitmap
// stays with the segment under the printed text of the filter.
//
// Equality and ranges are spans of ordinals in a column. A large range of numbers is the union of cached slices of the ordinals
// (slices of the column) and the remainders at both ends.
//
// # Elements
//
// Inside braces, rows are numbers of elements and source.elements is set: columns, presence and points are those of the elements. The
// closing brace maps the result back to rows (elements.go).
//
// # Other uses of a tree
//
// document.go tests single documents that are not indexed yet, with the same conditions. ways.go finds alternatives that imply a
// filter, for search rules. print.go prints the normal form, which is the cache key.
//
// # Caveats
//
//   - rows must not modify among, and its result belongs to the caller. Bitmaps may refer to mapped memory.
//   - Errors name a position in the text. Parse knows no error code: FromJSON adds the code of its caller.
package filter
