package outbound

import "strings"

// HideSecrets takes what a request was sent with out of what is said of its answer: servers quote what they were sent, and others
// will read the text. Secrets of under four bytes stay, for they might be parts of words.
func HideSecrets(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "XXX...")
		}
	}
	return text
}
