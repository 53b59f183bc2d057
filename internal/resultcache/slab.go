package resultcache

// The garbage collector scans the cache several times a second under load. A hundred thousand entries with pointers to each other
// would be most of its work. So entries are contiguous in a slab, refer to each other by number, and contain their short keys.

// ref is the number of an entry of a slab, from 1.
type ref uint32

const none ref = 0

// shortKey is the maximum length of a key that is stored inside its entry.
const shortKey = 41

// entry is a cached result with its links in the lists of its shard.
type entry struct {
	value any
	long  string // the key, if it is a long one
	owner uint64
	hash  uint64
	due   uint64 // the clock at the last use, plus the benefit: the entry with the least is evicted first
	bytes int

	chain         ref // the next with this hash
	older, newer  ref // neighbours in its list, by use
	after, before ref // neighbours in the ring of its owner

	spare  bool  // see PutSpare
	kind   uint8 // see Kind
	length uint8 // of the key, if it is a short one
	key    [shortKey]byte
}

// longKey returns a copy of a key for name; "" for a short one, which needs none.
func longKey(key []byte) string {
	if len(key) > shortKey {
		return string(key)
	}
	return ""
}

// name sets the key of an entry.
func (e *entry) name(key []byte, long string) {
	if e.long, e.length = long, 0; long == "" {
		e.length = uint8(copy(e.key[:], key))
	}
}

// has reports whether an entry has a key.
func (e *entry) has(key []byte) bool {
	if len(key) > shortKey {
		return e.long == string(key)
	}
	return e.long == "" && string(e.key[:e.length]) == string(key)
}

// slabEntries is the number of entries that are allocated together.
const slabEntries = 64

// slabPart is entries that are allocated together.
type slabPart [slabEntries]entry

// slab is the memory of a shard's entries, without gaps.
type slab struct {
	parts []*slabPart
	used  int
}

// at returns the entry with a number. The pointer is valid until the entry is moved.
func (s *slab) at(r ref) *entry { return &s.parts[(r-1)/slabEntries][(r-1)%slabEntries] }

// last returns the last entry.
func (s *slab) last() ref { return ref(s.used) }

// isFull reports whether there is no room for another entry.
func (s *slab) isFull() bool { return s.used == len(s.parts)*slabEntries }

// add makes room for more entries.
func (s *slab) add(p *slabPart) { s.parts = append(s.parts, p) }

// take appends an entry, for which there is room, and returns its number.
func (s *slab) take() ref {
	s.used++
	return s.last()
}

// giveLast removes the last entry. One unused part stays allocated, so that adding and removing an entry does not allocate each time.
func (s *slab) giveLast() {
	*s.at(s.last()) = entry{}
	s.used--
	if n := len(s.parts); n > 1 && s.used <= (n-2)*slabEntries {
		s.parts[n-1] = nil
		s.parts = s.parts[:n-1]
	}
}
