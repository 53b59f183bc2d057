// Package syncdelay runs a program with delayed syncs of files, as on a slower disk.
//
// A filter (see seccomp(2)) makes the kernel report each fsync and fdatasync to a supervisor, a process of its own. The call
// continues when the supervisor answers. Syncs wait concurrently, and other calls cost nothing more. It works only on Linux.
package syncdelay
