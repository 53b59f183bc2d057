// Package jsontext reads and writes JSON as text: strings in their quotes, numbers as documents have them, and the members of values
// that are known to be compact, without decoding what they hold. It knows no document and no schema.
//
// The scanner of payloads (document) has its own loops over the bytes of a string: it checks them, too, and a call for every string
// would cost a good part of what it takes.
package jsontext
