// Package syncdelay runs a program whose syncs of files begin later than they would, as on a slower disk.
//
// A filter (see seccomp(2)) has the kernel tell a supervisor, a process of its own, about each fsync and fdatasync. The call goes on when
// the supervisor answers. Syncs wait beside each other, and other calls cost nothing more. It works only on Linux.
package syncdelay
