package main

// permissionAdvice says what to do about a path to which access is denied.
func permissionAdvice(path string) string {
	at, _ := deniedAt(path)
	if at == "" {
		return ""
	}
	return "Allow the account that runs svc to write to " + at + ", or choose another place"
}
