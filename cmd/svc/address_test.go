package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// freeAddress returns an address at which nothing listens. It does not ask the system for one: a closed listener lives on in a process
// that another test forks until that process executes its program, and accepts connections that nothing answers. The port is below the
// range that systems assign. On Linux the host is one of 15 million loopback addresses, so that no other program uses it.
func freeAddress() string {
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	}
	return fmt.Sprintf("%s:%d", host, 10_000+rand.IntN(20_000))
}
