//go:build !linux

package main

// memoryBytes returns how much memory the program may use; only on Linux it asks the system.
func memoryBytes() int64 { return 4 << 30 }
