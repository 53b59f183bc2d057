// Package script owns edit functions: it reads their language, translates it to JavaScript, and runs that within a
// budget.
//
// The language is the one that clients of documents/edit write: statements that are expressions, 64-bit integers apart
// from floats, () for nothing, maps as #{…}, values that are copied when assigned, methods that change what they are
// called on. The JavaScript keeps these meanings with the help of runtime.js. Integers are BigInts, floats Numbers,
// maps Maps, () is undefined; a character is a string of one. Every operation that the language can fail at is a call
// of the runtime.
//
// # Translation
//
// The lexer and the parser make a tree (script.go has its nodes). The generator writes JavaScript. Where the language
// has expressions that are only statements there, it writes the statements first, and a variable stands for the value.
// Names get numbers, so that none collides with one of JavaScript. A string cannot change in JavaScript. A method that
// changes one writes the new string back to the place of the old one (generator.ref).
//
// # Budget
//
// A run has a million operations. What takes memory costs operations ahead, about one for 64 bytes, so that the budget
// bounds both. The costs in machine.go and in runtime.js are the same. A deadline stands behind the budget. Sources,
// depth and the length of the translation are bounded as well.
//
// # Documents
//
// A machine is an interpreter with one function loaded; it is used for one document after the other, and keeps nothing
// of them. The runtime parses a field when the function first reads it. Fields that it leaves alone keep their place
// and spelling, as bytes.
//
// # Caveats
//
//   - Edit does not know the primary key: callers compare the ids.
//   - A machine that was interrupted late is given up, because the interruption may hit the next run.
package script
