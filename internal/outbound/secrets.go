package outbound

import (
	"net/url"
	"strings"
)

// SecretsOf returns what a URL may hold for its server alone, as others may quote it: user and password, and the values of all parameters.
func SecretsOf(u *url.URL) (secrets []string) {
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), password)
	}
	for _, values := range u.Query() { // servers quote a value without its name
		secrets = append(secrets, values...)
	}
	return secrets
}

// HideSecrets removes the secrets of a request from a text about its response, because servers quote what they were sent, and others
// will read the text. Secrets of less than four bytes stay, because they may be parts of words.
func HideSecrets(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "XXX...")
		}
	}
	return text
}
