package document

import (
	"bytes"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"svc/internal/jsontext"
)

// unescapeTo writes the text of the inside of a JSON string in pieces.
func unescapeTo(w io.Writer, s []byte) error {
	var text []byte
	for len(s) > 0 {
		cut := 0 // neither inside an escape nor between two of a pair
		for cut < min(len(s), windowSize) {
			i := bytes.IndexByte(s[cut:min(len(s), windowSize)], '\\')
			if i < 0 {
				cut = min(len(s), windowSize)
				break
			}
			cut += i + len(`\n`)
			if cut > len(s) {
				cut = len(s)
			} else if s[cut-1] == 'u' {
				if r, ok := jsontext.Hex4(s[cut:]); ok {
					cut += 4
					if next := s[cut:]; utf16.IsSurrogate(r) && bytes.HasPrefix(next, []byte(`\u`)) {
						if low, ok := jsontext.Hex4(next[len(`\u`):]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
							cut += len(`\u0000`)
						}
					}
				}
			}
		}
		text = jsontext.AppendUnescaped(text[:0], s[:cut])
		if _, err := w.Write(text); err != nil {
			return err
		}
		s = s[cut:]
	}
	return nil
}
