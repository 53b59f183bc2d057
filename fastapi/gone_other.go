//go:build !unix

package fastapi

// gone reports whether the client has closed the connection; here nobody knows before something is written.
func (c *conn) gone() bool { return false }
