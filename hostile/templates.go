package main

import (
	"fmt"
	"strings"
)

// rendering renders templates over and over, by attackers who may only see the settings of one index.
func rendering(templates ...string) func(*server, int, <-chan struct{}) {
	return func(s *server, i int, stop <-chan struct{}) {
		body := fmt.Sprintf(`{"template":{"kind":"inlineDocumentTemplate","inline":%q},"input":{"kind":"inlineDocument","inline":{"id":1}}}`, templates[i%len(templates)])
		again(func(s *server) string { return s.templateKey }, "/render-template", body, false)(s, i, stop)
	}
}

// doubling is a template that puts variable a through a filter n times, with itself as the argument.
func doubling(filter string, n int) string {
	return strings.Repeat(`{% assign a = a | `+filter+` %}`, n)
}
