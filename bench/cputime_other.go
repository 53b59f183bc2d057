//go:build !linux

package main

import "time"

func cpuTime(int) time.Duration { return 0 }
