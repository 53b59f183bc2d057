//go:build !linux

package mapped

// ReleaseProgram does nothing here: the system does not say which pages are of the program file.
func ReleaseProgram() {}
