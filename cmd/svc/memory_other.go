//go:build !linux

package main

// knowsMemory says whether machineMemory is reported by the system.
const knowsMemory = false

// machineMemory returns the assumed memory of a machine, because the system is not asked.
func machineMemory() int64 { return 4 << 30 }

// openFiles returns the assumed maximum number of open files.
func openFiles() int64 { return 1 << 16 }
