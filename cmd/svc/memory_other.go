//go:build !linux

package main

// machineMemory returns how much memory the machine has; only on Linux it asks the system.
func machineMemory() int64 { return 4 << 30 }

// openFiles returns how many files may be open, as far as is known.
func openFiles() int64 { return 1 << 16 }
