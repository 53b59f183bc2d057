package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// freeAddress returns an address where nobody listens. It is chosen, not asked of the system: a listener that is closed again lives on
// in each process that another test forks meanwhile, until that executes its program, and takes connections that nobody answers. Its
// port is below those that systems give out, and on Linux the host one of 15 million that are this machine: no other program has it.
func freeAddress() string {
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	}
	return fmt.Sprintf("%s:%d", host, 10_000+rand.IntN(20_000))
}
