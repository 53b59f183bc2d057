// Package demo is a page that searches an index with InstantSearch, the widgets that Algolia makes, and the adapter that
// Meilisearch makes for them: both stand here as published, so that the page loads nothing from elsewhere. README.md says which.
package demo

import (
	"embed"
	"strings"
)

// Files are the page, index.html, and the files that it loads.
//
//go:embed index.html demo.css demo.js instantsearch.js instant-meilisearch.js
var Files embed.FS

//go:embed LICENSE-instantsearch
var instantsearchLicense string

//go:embed LICENSE-instant-meilisearch
var adapterLicense string

// Licenses returns the terms of third-party files, as text.
func Licenses() string {
	var b strings.Builder
	for _, l := range [][2]string{
		{"The page on /demo has InstantSearch.js in it.", instantsearchLicense},
		{"The page on /demo has instant-meilisearch in it.", adapterLicense},
	} {
		b.WriteString(strings.Repeat("=", 80) + "\n" + l[0] + "\n" + strings.Repeat("-", 80) + "\n" + l[1])
	}
	return b.String()
}
