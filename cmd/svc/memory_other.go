//go:build !linux

package main

// knowsMemory tells whether machineMemory is what the system says.
const knowsMemory = false

// machineMemory returns how much memory a machine has that is not asked.
func machineMemory() int64 { return 4 << 30 }

// openFiles returns how many files may be open, as far as is known.
func openFiles() int64 { return 1 << 16 }
