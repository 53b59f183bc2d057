// Package restform owns the request and response of rest embedders: the JSON
// templates by which users describe the API of any provider. A placeholder,
// which is a JSON string of its own, stands where a text goes in, or where its
// vector comes out; {{..}} after an item of an array repeats it for each text.
package restform
