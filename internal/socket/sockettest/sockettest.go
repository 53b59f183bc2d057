// Package sockettest has addresses for servers of tests.
package sockettest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Host returns a loopback address. On Linux it is one of 15 million, so that no other program uses it, and a port of it is still free after
// a restart. Any connection of this machine may get a port of 127.0.0.1 meanwhile, but other systems have that address alone.
func Host() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
}
