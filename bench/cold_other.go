//go:build !linux

package main

import "errors"

// dropCache would have the system forget what it holds of a file in memory, which only Linux does when it is asked.
func dropCache(string) error { return errors.ErrUnsupported }
