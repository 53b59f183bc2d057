package main

import "os"

// Windows has no signal that pauses a process: rounds that would use it only wait.

func pause(*os.Process)  {}
func resume(*os.Process) {}
