package manual

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"svc/internal/apierr"
)

// Uses returns which values of requests are refused with a code: each parameter with its location, in Markdown.
type Uses map[apierr.Code][]string

// errorsFile is the name of the page that is made of the table of codes.
const errorsFile = "errors.md"

// errorsPage is a document with a section for each code, so that the link of an error leads to its own.
func errorsPage(uses Uses) []byte {
	var b bytes.Buffer
	b.WriteString("# Errors\n\nAn error is an object with a `message` for people, a `code` for programs, the `type` of the code, and a `link` to this page.\n\n" +
		"| type | cause |\n| --- | --- |\n| `invalid_request` | the request, or a missing object |\n| `auth` | a wrong or missing key |\n" +
		"| `system` | the machine or its load: try again later |\n| `internal` | the server; its log has the cause |\n")
	for _, code := range apierr.Codes() {
		fmt.Fprintf(&b, "\n## `%s` {#%s}\n\n", code, code)
		fmt.Fprintf(&b, "%d %s, type `%s`.", code.Status(), http.StatusText(code.Status()), code.Type())
		if text := Explain(code); text != "" {
			b.WriteString(" " + text)
		}
		b.WriteString("\n")
		for i, use := range uses[code] {
			if i == 0 {
				b.WriteString("\nIt concerns:\n\n")
			}
			b.WriteString("- " + use + "\n")
		}
	}
	return b.Bytes()
}

// Explain says when a code is returned and what to do, in Markdown. It returns "" for codes of parameters, which Uses explains.
func Explain(code apierr.Code) string {
	if text, ok := explanations[code]; ok {
		return text
	}
	if strings.HasPrefix(string(code), "invalid_chat_completion_") {
		return "A setting of a chat workspace cannot be used. The message names it."
	}
	if field, ok := strings.CutPrefix(string(code), "immutable_"); ok {
		return fmt.Sprintf("Only the server sets `%s`. Remove it from the body.", field)
	}
	return ""
}
