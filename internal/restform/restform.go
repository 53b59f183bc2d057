// Package restform owns the requests and responses of rest embedders: JSON templates with which users describe the API of any
// provider. A placeholder, which is a whole JSON string, marks where a text goes in, or where its vector comes out; {{..}} after an
// element of an array repeats the element for each text.
package restform
