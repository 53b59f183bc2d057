//go:build unix && !linux

package mapped

import "golang.org/x/sys/unix"

func advise(pages []byte, a Advice) {
	advice := [...]int{Random: unix.MADV_RANDOM, Sequential: unix.MADV_SEQUENTIAL, WillNeed: unix.MADV_WILLNEED, DontNeed: unix.MADV_DONTNEED, Normal: unix.MADV_NORMAL, PageOut: unix.MADV_DONTNEED}
	_ = unix.Madvise(pages, advice[a])
}
