package main

import (
	"fmt"
	"math/rand/v2"

	"svc/internal/socket/sockettest"
)

// freeAddress returns an address at which nothing listens. It does not ask the system for one: a closed listener lives on in a process
// that another test forks until that process executes its program, and accepts connections that nothing answers. The port is below the
// range that systems assign.
func freeAddress() string {
	return fmt.Sprintf("%s:%d", sockettest.Host(), 10_000+rand.IntN(20_000))
}
