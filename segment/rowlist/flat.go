package rowlist

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// A flat set is a roaring.Bitmap whose containers lie in one allocation, together with the set itself. The library allocates each
// container, and the garbage collector would mark each: sets of millions of rows in a cache have hundreds of thousands. The values of
// the containers are in mapped memory, or in a second allocation without pointers.
//
// The types below have the layout of those of the library. checkLayout compares them when the program starts.

// bitmapLayout is the layout of roaring.Bitmap.
type bitmapLayout struct {
	keys            []uint16
	containers      []containerLayout
	needCopyOnWrite []bool // a container is copied before it is changed in place
	copyOnWrite     bool
}

// containerLayout is the layout of an interface value that holds a pointer to a container.
type containerLayout struct{ kind, container unsafe.Pointer }

// valuesLayout is the layout of the containers of arrays, of uint16, and of runs, of two uint16 each.
type valuesLayout struct {
	values   unsafe.Pointer
	len, cap int
}

// bitsLayout is the layout of the containers of bits, in words of 64.
type bitsLayout struct {
	count int
	valuesLayout
}

// kindsOf has the first word of the interface values of the library's containers, by kind: containerArray…
var kindsOf = checkLayout()

// checkLayout panics if the library is one with another layout.
func checkLayout() (kinds [3]unsafe.Pointer) {
	b := roaring.BitmapOf(1)
	for v := range uint32(arrayMax + 1) {
		b.Add(1<<16 | 2*v)
	}
	b.AddRange(2<<16, 3<<16)
	b.RunOptimize()
	of := reflect.ValueOf(b).Elem()
	is := func(got reflect.Type, want ...any) {
		for i := 0; i < len(want); i += 2 {
			if got.Kind() != reflect.Struct || got.NumField() != len(want)/2 || got.Field(i/2).Name != want[i] || got.Field(i/2).Type.String() != want[i+1] {
				panic(fmt.Sprintf("rowlist: the bitmap library has another %s", got))
			}
		}
	}
	is(of.Type(), "highlowcontainer", "roaring.roaringArray")
	array := of.Field(0)
	is(array.Type(), "keys", "[]uint16", "containers", "[]roaring.container", "needCopyOnWrite", "[]bool", "copyOnWrite", "bool")
	container := func(i int) reflect.Type { return array.Field(1).Index(i).Elem().Type().Elem() }
	is(container(0), "content", "[]uint16")
	is(container(1), "cardinality", "int", "bitmap", "[]uint64")
	is(container(2), "iv", "[]roaring.interval16")
	is(container(2).Field(0).Type.Elem(), "start", "uint16", "length", "uint16")
	for i, c := range layoutOf(b).containers {
		kinds[[...]int{containerArray, containerBitmap, containerRuns}[i]] = c.kind
	}
	return kinds
}

func layoutOf(b *roaring.Bitmap) *bitmapLayout { return (*bitmapLayout)(unsafe.Pointer(b)) }

// exactRooms is up to which number of containers a set has no room for more of them. Larger sets have room for a multiple of it, so that
// there are few types.
const exactRooms = 64

// roomTypes has the types of the memory of sets, by whether containers of bits are among its containers, and their number.
var roomTypes [2][exactRooms + maxContainers/exactRooms]atomic.Pointer[reflect.Type]

// maxContainers is the number of keys of 16 bits.
const maxContainers = 1 << 16

// newFlat returns a set of n containers, at least one. withBits says whether some are containers of bits. The caller puts each of them.
func newFlat(n int, withBits bool) flat {
	known, headerBytes := &roomTypes[0], unsafe.Sizeof(valuesLayout{})
	if withBits {
		known, headerBytes = &roomTypes[1], unsafe.Sizeof(bitsLayout{})
	}
	class, room := n-1, n
	if n > exactRooms {
		class = exactRooms - 2 + (n+exactRooms-1)/exactRooms
		room = (class - exactRooms + 2) * exactRooms
	}
	t := known[class].Load()
	if t == nil {
		made := roomType(room, withBits)
		t = &made
		known[class].Store(t)
	}
	at := reflect.New(*t).UnsafePointer()
	f := flat{set: (*roaring.Bitmap)(at), headerBytes: headerBytes}
	at = unsafe.Add(at, unsafe.Sizeof(bitmapLayout{}))
	l := layoutOf(f.set)
	l.containers = unsafe.Slice((*containerLayout)(at), n)
	f.headers = unsafe.Add(at, uintptr(room)*unsafe.Sizeof(containerLayout{}))
	at = unsafe.Add(f.headers, uintptr(room)*headerBytes)
	l.keys = unsafe.Slice((*uint16)(at), n)
	l.needCopyOnWrite = unsafe.Slice((*bool)(unsafe.Add(at, 2*room)), n)
	return f
}

// roomType returns the type of the memory of a set with room for some containers.
func roomType(room int, withBits bool) reflect.Type {
	header := reflect.TypeFor[valuesLayout]()
	if withBits {
		header = reflect.TypeFor[bitsLayout]()
	}
	return reflect.StructOf([]reflect.StructField{
		{Name: "Set", Type: reflect.TypeFor[roaring.Bitmap]()},
		{Name: "Containers", Type: reflect.ArrayOf(room, reflect.TypeFor[containerLayout]())},
		{Name: "Headers", Type: reflect.ArrayOf(room, header)},
		{Name: "Keys", Type: reflect.ArrayOf(room, reflect.TypeFor[uint16]())},
		{Name: "NeedCopy", Type: reflect.ArrayOf(room, reflect.TypeFor[bool]())},
	})
}

// flat is a set that is being made.
type flat struct {
	set         *roaring.Bitmap
	headers     unsafe.Pointer // of the containers, in the memory of the set
	headerBytes uintptr        // of one
}

// put sets a container with its key, the number of its rows, and its values in bytes, which it uses in place.
func (f flat) put(i int, key uint16, kind byte, count int, bytes []byte) {
	l := layoutOf(f.set)
	l.keys[i], l.needCopyOnWrite[i] = key, true
	header := unsafe.Add(f.headers, uintptr(i)*f.headerBytes)
	l.containers[i] = containerLayout{kindsOf[kind], header}
	n := len(bytes) / valueBytes[kind]
	values := valuesLayout{unsafe.Pointer(unsafe.SliceData(bytes)), n, n}
	if kind == containerBitmap {
		*(*bitsLayout)(header) = bitsLayout{count, values}
	} else {
		*(*valuesLayout)(header) = values
	}
}

// valueBytes is the size of the elements of containers, by kind.
var valueBytes = [...]int{containerArray: 2, containerBitmap: 8, containerRuns: 4}

// flatOf returns the set of a code in Roaring format. It uses the code in place or, with copied, a copy of the values. ok is false if
// the code is damaged.
func flatOf(code []byte, copied bool) (set *roaring.Bitmap, ok bool) {
	var c RoaringCursor
	if !c.Init(code) {
		return nil, false
	}
	start, n, size, withBits := c, 0, 0, false
	for ; c.container < c.containers; c.nextContainer() {
		n, size, withBits = n+1, size+c.size, withBits || c.kind == containerBitmap
	}
	if n < c.containers {
		return nil, false
	}
	f := newFlat(n, withBits)
	var values []byte
	if copied {
		values = make([]byte, 0, size)
	}
	for c = start; c.container < c.containers; c.nextContainer() {
		bytes := code[c.begin : c.begin+c.size]
		if copied {
			values = append(values, bytes...)
			bytes = values[len(values)-len(bytes):]
		}
		f.put(c.container, uint16(c.key), c.kind, c.card, bytes)
	}
	return f.set, true
}

// Flat returns a copy of a set in two allocations, without spare capacity. Containers are copied before they are changed in place.
func Flat(b *roaring.Bitmap) *roaring.Bitmap {
	l := layoutOf(b)
	n := len(l.containers)
	if n == 0 {
		return roaring.New()
	}
	size, withBits := 0, false
	for _, c := range l.containers {
		kind, _, values := c.content()
		size, withBits = size+len(values), withBits || kind == containerBitmap
	}
	f := newFlat(n, withBits)
	to := make([]byte, 0, size)
	for i, c := range l.containers {
		kind, count, values := c.content()
		to = append(to, values...)
		f.put(i, l.keys[i], kind, count, to[len(to)-len(values):])
	}
	return f.set
}

// Flattened is Flat of a set that nobody else has. It returns a set that is already flat.
func Flattened(b *roaring.Bitmap) *roaring.Bitmap {
	if isFlat(b) {
		return b
	}
	return Flat(b)
}

// isFlat reports whether a set is flat and was not changed since.
func isFlat(b *roaring.Bitmap) bool {
	l := layoutOf(b)
	if len(l.containers) == 0 {
		return true
	}
	return unsafe.Pointer(unsafe.SliceData(l.containers)) == unsafe.Add(unsafe.Pointer(b), unsafe.Sizeof(*l)) && !slices.Contains(l.needCopyOnWrite, false)
}

// content returns the kind of a container and the bytes of its values. count is the number of rows, for containers of bits alone.
func (c containerLayout) content() (kind byte, count int, values []byte) {
	var v *valuesLayout
	switch c.kind {
	case kindsOf[containerBitmap]:
		bits := (*bitsLayout)(c.container)
		kind, count, v = containerBitmap, bits.count, &bits.valuesLayout
	case kindsOf[containerRuns]:
		kind, v = containerRuns, (*valuesLayout)(c.container)
	default:
		kind, v = containerArray, (*valuesLayout)(c.container)
	}
	return kind, count, unsafe.Slice((*byte)(v.values), v.len*valueBytes[kind])
}
