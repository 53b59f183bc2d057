package main

import (
	"time"

	"golang.org/x/sys/windows"
)

var began = time.Now()

// Times since some start. The system reports the time of a thread too coarsely, so it is the process's, which does nothing else
// meanwhile.
func wallTime() time.Duration   { return time.Since(began) }
func threadTime() time.Duration { return processTime() }

func processTime() time.Duration {
	var created, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user); err != nil {
		panic(err) // every process has its times
	}
	return lasted(kernel) + lasted(user)
}

// lasted returns a span of time, which Windows counts in 100 ns.
func lasted(t windows.Filetime) time.Duration {
	return 100 * time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime))
}
