// Package script owns edit functions: it reads their language, translates it to JavaScript, and runs that within a
// budget.
//
// The language is the one that clients of documents/edit write. Its statements are expressions, 64-bit integers differ from floats,
// () is the empty value, maps are #{…}, assignments copy values, and methods change their receiver. The JavaScript keeps these
// meanings with the help of runtime.js. Integers are BigInts, floats Numbers, maps Maps, () is undefined; a character is a string of
// one. Every operation that may fail is a call of the runtime.
//
// # Translation
//
// The lexer and the parser make a tree (script.go has its nodes). The generator writes JavaScript. If an expression of the language
// is only a statement in JavaScript, the generator writes the statement first and uses a variable for its value. Names get numbers,
// so they never collide with JavaScript names. Strings are immutable in JavaScript. A method that changes one writes the new string
// back to the place of the old one (generator.ref).
//
// # Budget
//
// A run has a million operations. Allocations cost operations in advance, about one per 64 bytes, so the budget limits time and
// memory. The costs in machine.go and in runtime.js are the same. A deadline is the last resort. Sources, depth and the length of the
// translation are limited as well.
//
// # Documents
//
// A machine is an interpreter with one function loaded. It is used for one document after the other and keeps no state of them. The
// runtime parses a field when the function first reads it. Unused fields keep their place and spelling, as bytes.
//
// # Caveats
//
//   - Edit does not know the primary key: callers compare the ids.
//   - A machine that was interrupted late is discarded, because the interruption may hit the next run.
package script
