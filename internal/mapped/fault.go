package mapped

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"svc/internal/apierr"
)

// A page of a mapping that cannot be read, because of a bad sector or a truncated file, raises SIGBUS in its reader. So code reads
// mapped memory in a Guard, or calls Watch and passes the recovered value to Damage.

// mappings are the open mappings, to find the file of an address.
var mappings = struct {
	sync.RWMutex
	files map[*File]struct{}
}{files: map[*File]struct{}{}}

// Watch makes faults of the calling goroutine panics, for the rest of its life. Without it they end the process.
func Watch() { debug.SetPanicOnFault(true) }

// Guard calls f. A fault on mapped memory, and a panic with an *apierr.Corruption, become its error; it hands on other panics.
func Guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			damage := Damage(p)
			if damage == nil {
				panic(p)
			}
			err = damage
		}
	}()
	return f()
}

// Damage returns the error that a recovered panic means for a file: that it is damaged, or unreadable. It returns nil for other
// panics.
func Damage(p any) *apierr.Corruption {
	err, ok := p.(error)
	if !ok {
		return nil
	}
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		return damage
	}
	var fault interface {
		runtime.Error
		Addr() uintptr
	}
	if !errors.As(err, &fault) {
		return nil
	}
	mappings.RLock()
	defer mappings.RUnlock()
	for f := range mappings.files {
		begin := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
		if at := fault.Addr(); at >= begin && at < begin+uintptr(len(f.data)) {
			return f.unreadable(int64(at - begin))
		}
	}
	return nil
}

// OnFault sets a function that is called for faults in the file, before the reader gets the error. It may add to damage.
func (f *File) OnFault(tell func(damage *apierr.Corruption)) { f.fault.Store(&tell) }

func (f *File) unreadable(offset int64) *apierr.Corruption {
	damage := &apierr.Corruption{File: f.name, Offset: offset, Fatal: true,
		Reason: fmt.Sprintf("the page cannot be read: the disk fails, or the file no longer has its %d bytes", len(f.data))}
	if tell := f.fault.Load(); tell != nil {
		(*tell)(damage)
	}
	return damage
}
