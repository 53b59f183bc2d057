package main

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	began          = time.Now()
	getThreadTimes = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetThreadTimes")
)

// Times since some beginning.
func wallTime() time.Duration { return time.Since(began) }

func threadTime() time.Duration {
	var created, ended, kernel, user windows.Filetime
	ok, _, err := getThreadTimes.Call(uintptr(windows.CurrentThread()), uintptr(unsafe.Pointer(&created)),
		uintptr(unsafe.Pointer(&ended)), uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user)))
	if ok == 0 {
		panic(err) // every thread has its times
	}
	return lasted(kernel) + lasted(user)
}

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
