// Package svc holds the documents for people, for the server to show them as pages. The program is in cmd/svc.
package svc

import "embed"

// Documents are the README, what it leads to, and their pictures.
//
//go:embed README.md BENCHMARKS.md CHANGELOG.md CONTRIBUTING.md LICENSE docs/*.md docs/*/*.md docs/*.png docs/*.sh docs/*.py
var Documents embed.FS
