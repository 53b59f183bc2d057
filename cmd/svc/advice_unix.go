//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// permissionAdvice says who denies access to a path, and what to do.
func permissionAdvice(path string) string {
	at, info := deniedAt(path)
	if at == "" {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	me := os.Geteuid()
	need := uint32(unix.W_OK)
	if info.IsDir() {
		need |= unix.X_OK
	}
	if unix.Faccessat(unix.AT_FDCWD, at, need, unix.AT_EACCESS) == nil {
		return "Its owner and mode allow that: look for a rule of SELinux or AppArmor, or for a sandbox such as ProtectSystem= of systemd"
	}
	if int(stat.Uid) == me {
		return fmt.Sprintf("%s has the mode %v: allow its owner to write, for example with chmod u+rwX", at, info.Mode())
	}
	return fmt.Sprintf("svc runs as %s, but %s belongs to %s and has the mode %v. Run svc as that user, change the owner with chown, or choose another place",
		userName(me), at, userName(int(stat.Uid)), info.Mode()&(fs.ModeDir|fs.ModePerm))
}

// userName returns the name of a user, or its number.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "user " + number
}
