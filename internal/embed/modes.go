package embed

import (
	"fmt"
	"strings"
)

// FailureModes say which failures leave documents without vectors instead of failing their task.
type FailureModes struct {
	IgnoreTemplates bool // a template that does not fit a document
	IgnoreProviders bool // a call that failed
}

// UnmarshalText reads the names of modes, separated by commas. Blanks around names and empty names are ignored.
func (m *FailureModes) UnmarshalText(text []byte) error {
	read := FailureModes{}
	for name := range strings.SplitSeq(string(text), ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "ignore_document_template_failures":
			read.IgnoreTemplates = true
		case "ignore_embedder_failures":
			read.IgnoreProviders = true
		default:
			return fmt.Errorf("%q is not an embedder failure mode: use ignore_document_template_failures and ignore_embedder_failures", name)
		}
	}
	*m = read
	return nil
}
