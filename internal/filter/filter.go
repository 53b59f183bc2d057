// Package filter owns the filter language: lexer, parser, syntax tree,
// checking against the settings, and evaluation on columns to bitmaps.
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
// Between braces, attributes are those of one object: it has to satisfy the whole expression by itself.
//
// Attributes and values are words of letters, digits, "_", "-" and ".", or
// anything in single or double quotes. Keywords are upper case, and values only in quotes.
package filter
