package main

import "os"

// Windows has no signal that stops a process: rounds that would do that only wait.

func pause(*os.Process)  {}
func resume(*os.Process) {}
