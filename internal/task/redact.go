package task

// redact hides a secret, keeping so much of its beginning that its owner can tell which one it is.
func redact(secret string) string {
	switch n := len(secret); {
	case n < 10:
		return "XXX..."
	case n < 20:
		return firstBytes(secret, 2) + "XXXX..."
	case n < 30:
		return firstBytes(secret, 3) + "XXXXX..."
	default:
		return firstBytes(secret, 5) + "XXXXXX..."
	}
}

// firstBytes returns the first n bytes of s, fewer where that would cut a character.
func firstBytes(s string, n int) string {
	for n > 0 && n < len(s) && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
