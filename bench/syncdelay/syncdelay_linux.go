package syncdelay

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run becomes another program, whose syncs begin later, and returns only if that fails. supervisor is the command that calls Supervise.
func Run(supervisor *exec.Cmd, program string, args []string) error {
	runtime.LockOSThread() // the filter applies to this thread, on which the program continues
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot make a pair of sockets: %w", err)
	}
	supervisor.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[1]), "supervisor")}
	if err := supervisor.Start(); err != nil { // it ends with the program
		return fmt.Errorf("cannot start the supervisor of syncs: %w", err)
	}
	listener, err := filterSyncs()
	if err != nil {
		return fmt.Errorf("cannot install the seccomp filter: %w", err)
	}
	if err := unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("cannot hand over to the supervisor of syncs: %w", err)
	}
	return unix.Exec(program, append([]string{program}, args...), os.Environ())
}

// filterSyncs has the kernel tell about the syncs of this thread, and of all that it starts. It returns where.
func filterSyncs() (listener int, err error) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: unix.SYS_FSYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// A notification of the kernel and the answer to it, as in linux/seccomp.h.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		call       [64]byte
	}
	notified struct {
		id           uint64
		value        int64
		error, flags uint32
	}
)

// Supervise has each sync of the program of Run begin later, until the program has ended. Run starts it.
func Supervise(d time.Duration) error {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(3, b, oob, 0)
	if err != nil {
		return fmt.Errorf("cannot take the program over: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return errors.Join(errors.New("the program was not handed over"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return fmt.Errorf("the program was not handed over: %w", err)
	}
	listener := uintptr(fds[0])
	p := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for {
		// Before Linux 6.11, receiving does not end with the last process of the filter.
		if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot wait for a sync: %w", err)
		}
		if p[0].Revents&unix.POLLIN == 0 {
			if p[0].Revents&unix.POLLHUP != 0 {
				return nil
			}
			continue
		}
		var x notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&x)))
		switch {
		case errno == unix.EINTR || errno == unix.ENOENT: // ENOENT: the sync was interrupted
			continue
		case errno != 0:
			return fmt.Errorf("cannot receive a notification: %w", errno)
		}
		time.AfterFunc(d, func() {
			answer := notified{id: x.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			// It fails if the program has ended meanwhile.
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
		})
	}
}
