package publish

import (
	"maps"
	"sync"
)

// objects are the objects of files that need no upload. Each is in the last image, or its upload began after that image was started.
// Retention relies on this: everything that an image and the entries after it need is in the image, or was uploaded later.
//
// Entries are published while an image is taken and sent. An entry may come after the image, and name a file of an earlier image.
// Such files are sent again with the image.
type objects struct {
	mu    sync.Mutex
	moved *sync.Cond // an upload or a removal has ended

	known    map[string]bool
	sending  map[string]bool
	removing string // the object that is being removed; "": none

	// An image is being made if making is true. It is the one of the number turn.
	making bool
	turn   int
	since  map[string]bool   // those whose upload began after the image was started
	relied map[string]upload // those that entries needed and that were known, but not in since
	before map[string]bool   // known objects when the image had been taken; nil: no image yet
}

func newObjects() *objects {
	o := &objects{known: map[string]bool{}, sending: map[string]bool{}}
	o.moved = sync.NewCond(&o.mu)
	return o
}

// reset sets the known objects: those in the store, as far as an earlier run of the program uploaded them.
func (o *objects) reset(known map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = known
}

// begin begins an image. An earlier one that was not published forgets nothing.
func (o *objects) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.known, o.before)
	o.making, o.before = true, nil
	o.turn++
	o.since, o.relied = map[string]bool{}, map[string]upload{}
}

// take forgets the objects that are neither in the image just taken nor in since. It returns those of them that later entries may
// need: they are uploaded again.
func (o *objects) take(files []upload) (again []upload) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.before, o.known = o.known, o.since
	for i := range files {
		if name := fileName(files[i].file); o.before[name] {
			o.known[name] = true
		}
	}
	for name, u := range o.relied {
		if !o.known[name] {
			u.there = true
			again = append(again, u)
		}
	}
	return again
}

// commit ends an image that was published.
func (o *objects) commit() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.making, o.before = false, nil
}

// forget has an object sent when it is needed next.
func (o *objects) forget(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, name)
	delete(o.since, name)
	delete(o.before, name)
}

// missing returns the total size of the unknown files.
func (o *objects) missing(files []upload) (bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	counted := map[string]bool{}
	for i := range files {
		if name := fileName(files[i].file); !o.known[name] && !counted[name] {
			counted[name] = true
			bytes += files[i].file.Size
		}
	}
	return bytes
}

// want reports whether a file is to be sent: then the caller sends it and calls made. It waits for an upload of the same file that runs.
func (o *objects) want(name string, u upload) (turn int, needed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sending[name] || o.removing == name {
		o.moved.Wait()
	}
	if !o.known[name] {
		o.sending[name] = true
		return o.turn, true
	}
	if o.making && o.before == nil && !o.since[name] {
		o.relied[name] = u
	}
	return 0, false
}

// made records the end of an upload for which want returned the turn. If an image was started and published meanwhile, the object
// does not become known, because retention removes it if the image lacks it.
func (o *objects) made(name string, turn int, sent bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sending, name)
	o.moved.Broadcast()
	switch {
	case !sent || !o.making && turn != o.turn:
	case o.making && o.before != nil && turn != o.turn: // entries before the image needed it
		o.before[name] = true
	default:
		o.known[name] = true
		if o.making && o.before == nil && turn == o.turn {
			o.since[name] = true
		}
	}
}

// remove removes an object unless it is needed. No image is being made.
func (o *objects) remove(name string, remove func() error) error {
	o.mu.Lock()
	if o.known[name] || o.sending[name] {
		o.mu.Unlock()
		return nil
	}
	o.removing = name
	o.mu.Unlock()
	err := remove()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removing = ""
	o.moved.Broadcast()
	return err
}
