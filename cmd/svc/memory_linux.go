package main

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// machineMemory returns how much memory the machine lets the program use: the host's, or less where a control group says so.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	total := int64(4 << 30)
	if unix.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit)
	}
	for _, file := range [...]string{
		"/sys/fs/cgroup/memory.max",                   // version 2
		"/sys/fs/cgroup/memory/memory.limit_in_bytes", // version 1
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil && limit > 0 && limit < total {
			total = limit
		}
	}
	return total
}

// openFiles returns how many files may be open.
func openFiles() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int64(limit.Cur)
}
