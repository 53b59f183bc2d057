package apierr

import "golang.org/x/sys/windows"

var lacks = []lack{
	{windows.ERROR_DISK_FULL, "no_space_left_on_device", diskFull},
	{windows.ERROR_HANDLE_DISK_FULL, "no_space_left_on_device", diskFull},
	{windows.ERROR_DISK_QUOTA_EXCEEDED, "no_space_left_on_device", quotaFull},
	{windows.ERROR_TOO_MANY_OPEN_FILES, "too_many_open_files", tooMany},
	{windows.ERROR_NO_SYSTEM_RESOURCES, "too_many_open_files", allTooMany},
	{windows.ERROR_NOT_ENOUGH_MEMORY, "too_many_open_files", noMemory},
	{windows.ERROR_OUTOFMEMORY, "too_many_open_files", noMemory},
	{windows.ERROR_COMMITMENT_LIMIT, "too_many_open_files", noMemory},
	{windows.ERROR_CRC, "io_error", diskFails},
	{windows.ERROR_IO_DEVICE, "io_error", diskFails},
	{windows.ERROR_READ_FAULT, "io_error", diskFails},
	{windows.ERROR_WRITE_FAULT, "io_error", diskFails},
	{windows.ERROR_WRITE_PROTECT, "io_error", readOnly},
}
