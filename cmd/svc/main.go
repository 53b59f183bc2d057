// Command svc is the search engine: it serves the HTTP API on a data
// directory, and inspects and verifies segment files.
package main

func main() {}
