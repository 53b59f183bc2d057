// Package lint holds the rules of the house as tests. They check which package may import which, and what only some
// packages may touch. They also check that pages and comments name packages, files and identifiers that exist, and that
// their sentences are short.
package lint
