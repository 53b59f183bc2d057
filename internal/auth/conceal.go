package auth

import (
	"regexp"
	"strings"
)

// credentials have the form of a key's value, or of a tenant token: a JSON object in base64url, and two more parts.
var credentials = regexp.MustCompile(`[0-9A-Fa-f]{64,}|eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*`)

// shownBytes of a credential stay, so that an operator can tell which it was. A tenth of a key's value opens nothing.
const shownBytes = 5

// Conceal masks credentials in a text that goes to a log: the master key, and whatever has the form of an API key or a tenant token, of
// this instance or another one.
func (k *Keys) Conceal(text string) string {
	if k.master != "" {
		text = strings.ReplaceAll(text, k.master, mask(""))
	}
	if len(text) < 2*len(value{}) && !strings.Contains(text, "eyJ") {
		return text
	}
	return credentials.ReplaceAllStringFunc(text, mask)
}

func mask(credential string) string {
	return credential[:min(len(credential), shownBytes)] + "XXXXXX..."
}
