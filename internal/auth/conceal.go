package auth

import "strings"

// Conceal masks credentials in a text for a log: the master key, and everything that looks like an API key or a tenant token, of any
// instance. It reads the text once.
func (k *Keys) Conceal(text string) string {
	if len(k.master) >= shortMaster {
		text = strings.ReplaceAll(text, k.master, mask(""))
	}
	if len(text) < 2*len(value{}) && !strings.Contains(text, tokenStart) {
		return text
	}
	var b strings.Builder
	kept := 0 // bytes of text that b already has
	for i := 0; i < len(text); {
		if !isHex(text[i]) { // a token begins with a hexadecimal digit, too
			i++
			continue
		}
		n := run(text[i:], isHex)
		if n < 2*len(value{}) {
			i += n - 1 // continue after the last digit
			if n = tokenLen(text[i:]); n == 0 {
				i++
				continue
			}
		}
		b.WriteString(text[kept:i])
		b.WriteString(mask(text[i : i+n]))
		i += n
		kept = i
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// shortMaster is the length in bytes from which on a master key is masked. A shorter one, as on test servers, may be part of ordinary
// words.
const shortMaster = 8

// tokenStart is how the base64url form of a JSON object begins.
const tokenStart = "eyJ"

// tokenLen returns the length of the tenant token at the beginning of a text, or 0: three parts in base64url, separated by dots.
func tokenLen(text string) int {
	if !strings.HasPrefix(text, tokenStart) {
		return 0
	}
	n := 0
	for part := range 3 {
		of := run(text[n:], isBase64)
		n += of
		if part == 2 {
			break // the last one may be empty
		}
		if of == 0 || n == len(text) || text[n] != '.' {
			return 0
		}
		n++
	}
	return n
}

// run returns how many bytes at the beginning of a text satisfy is.
func run(text string, is func(c byte) bool) (n int) {
	for n < len(text) && is(text[n]) {
		n++
	}
	return n
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isBase64(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}

// shownBytes is how much of a credential stays readable, so that operators can tell credentials apart. A tenth of a key is of no use
// to an attacker.
const shownBytes = 5

func mask(credential string) string {
	return credential[:min(len(credential), shownBytes)] + "XXXXXX..."
}
