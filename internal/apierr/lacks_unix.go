//go:build unix

package apierr

import "syscall"

var lacks = []lack{
	{syscall.ENOSPC, "no_space_left_on_device", diskFull},
	{syscall.EDQUOT, "no_space_left_on_device", quotaFull},
	{syscall.EMFILE, "too_many_open_files", tooMany},
	{syscall.ENFILE, "too_many_open_files", allTooMany},
	{syscall.ENOMEM, "too_many_open_files", noMemory},
	{syscall.EIO, "io_error", diskFails},
	{syscall.EROFS, "io_error", readOnly},
}
