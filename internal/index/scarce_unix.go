//go:build unix

package index

import "syscall"

// scarcities are the errors of a process that has no more files or memory to open an index with.
var scarcities = [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
