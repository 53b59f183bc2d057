// Package lint holds the rules of the house as tests: which package may import
// which, what only some of them may touch, and that the pages and comments which
// name packages and files name those that are there.
package lint
