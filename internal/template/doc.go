// Package template renders texts about documents: the templates that embedders and chats are configured with, in the
// Liquid language.
//
// It is strict where Liquid is lenient, so that a misspelt field is an error and not embedded as nothing. An unknown tag or filter is
// an error when the template is parsed. A variable that a document lacks is an error when it is rendered, except as a bare condition.
// Every rendering is bounded in steps and in memory, whatever the template.
//
// The language is implemented here and not taken from a library: docs/decisions/0008-own-code-instead-of-libraries.md.
//
// # From source to text
//
// split.go cuts the source into pieces: text, outputs and tags. The parser makes a tree of nodes (tags.go, loop.go),
// with expressions and conditions in them. A renderer walks the tree. JSON is a value with templates in its strings:
// requests of embedders and their fragments have this form (json.go).
//
// # Values
//
// A value is immutable. The JSON of a document stays unparsed until it is used, so a template that names one field does not read the
// others. Only the object of a running loop changes.
//
// # Steps
//
// A meter counts steps, and bytes as steps, before anything is allocated (meter.go). Its first error stays, and from then on all
// results are nil. So functions on values return no error, and their callers check the meter before the next step. The meter also
// charges the account of the request, and yields to other work (Work.Yield).
//
// # Caveats
//
//   - Output stops growing when the rest would be cut off. A captured text is needed in full.
//   - Templates cannot see the vectors of a document.
//   - The default template, by far the most common, has code of its own (renderDefault); tests compare both ways.
package template
