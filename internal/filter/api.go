// Package filter owns the filter language: lexer, parser, syntax tree,
// checking against the settings, and evaluation on columns to bitmaps.
package filter

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// Expr is a parsed filter. Printing it and parsing the print gives an equal tree.
type Expr struct{}

// Parse parses one filter expression. The error's message names the position.
func Parse(src string) (*Expr, error) { panic("stub") }

// FromJSON reads a filter as clients send it: a string, or an array of strings and arrays of strings
// (and of ors). An empty filter gives nil. Errors carry the code.
func FromJSON(body []byte, code apierr.Code) (*Expr, error) { panic("stub") }

func (e *Expr) String() string { panic("stub") }

// And joins filters; nil ones are left out.
func And(exprs ...*Expr) *Expr { panic("stub") }

// Env is what an index says to a filter.
type Env struct {
	Fields   *settings.Fields
	Code     apierr.Code // of errors: invalid_search_filter, invalid_document_filter, …
	Contains bool        // the experimental feature containsFilter
}

// Bound is a filter checked against an index.
type Bound struct{}

// Bind checks that every attribute may be filtered so.
func (e *Expr) Bind(env Env) (*Bound, error) { panic("stub") }

// Rows returns the live rows of a segment that match; the caller owns the bitmap.
func (b *Bound) Rows(s segment.Live) *roaring.Bitmap { panic("stub") }
