package document

// Script is a compiled edit function.
type Script struct{}

// Compile compiles the script dialect of documents/edit; bad_request when it does not.
func Compile(source string) (*Script, error) { panic("stub") }

// Edit runs the script on doc with context (JSON or nil). It returns the changed document,
// or nil when the script removed it. Errors have code edit_documents_by_function_error.
func (s *Script) Edit(doc, context []byte) ([]byte, error) { panic("stub") }
