package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// knowsMemory says whether machineMemory is reported by the system.
const knowsMemory = true

// machineMemory returns how much memory the machine lets the program use: the host's, or less where a control group says so.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	total := int64(4 << 30)
	if unix.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit)
	}
	return groupMemory(os.DirFS("/"), total)
}

// groupMemory returns the lowest limit of the program's control group and its parents, at most total. root is the root of the file
// system. In a container, the groups may be mounted without the path that the kernel reports: then the mounted root is the group of
// svc.
func groupMemory(root fs.FS, total int64) int64 {
	own, _ := fs.ReadFile(root, "proc/self/cgroup")
	limit := total
	for _, version := range [...]struct{ controllers, mount, file string }{
		{"", "sys/fs/cgroup", "memory.max"},
		{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	} {
		for group := groupOf(string(own), version.controllers); ; group = path.Dir(group) {
			b, err := fs.ReadFile(root, path.Join(version.mount, group, version.file))
			if err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// groupOf returns the control group of a controller, "" for that of version 2, from /proc/self/cgroup, or "/" if it is not listed. If
// the path begins with "/..", the group is outside the namespace of svc, and groupOf returns "/".
func groupOf(own, controller string) string {
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		for name := range strings.SplitSeq(controllers, ",") {
			if name != controller || !strings.HasPrefix(group, "/") {
				continue
			}
			if strings.HasPrefix(group+"/", "/../") {
				return "/"
			}
			return path.Clean(group)
		}
	}
	return "/"
}

// openFiles returns how many files may be open.
func openFiles() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int64(limit.Cur)
}
