//go:build !linux

package main

import "errors"

// dropCache makes the system drop its cached pages of a file. Only Linux supports this.
func dropCache(string) error { return errors.ErrUnsupported }
