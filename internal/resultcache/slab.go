package resultcache

// The garbage collector looks at all that is kept, some times a second where searches are many: a hundred thousand entries with
// pointers to each other would be most of its work. So entries lie side by side, name each other by number, and hold their keys.

// ref is the number of an entry of a slab, from 1.
type ref uint32

const none ref = 0

// shortKey is how long a key is at most that stands in its entry.
const shortKey = 41

// entry is a result with its places in lists.
type entry struct {
	value any
	long  string // the key, if it is a long one
	owner uint64
	hash  uint64
	due   uint64 // the clock when it was used last, and its worth: the entry with the least is dropped first
	bytes int

	chain         ref // the next with this hash
	older, newer  ref // in the same list, by use
	after, before ref // of the same owner, a ring

	spare  bool  // see PutSpare
	kind   uint8 // see Kind
	length uint8 // of the key, if it is a short one
	key    [shortKey]byte
}

// name gives an entry its key.
func (e *entry) name(key []byte) {
	if len(key) > shortKey {
		e.long, e.length = string(key), 0
		return
	}
	e.long, e.length = "", uint8(copy(e.key[:], key))
}

// has reports whether an entry has a key.
func (e *entry) has(key []byte) bool {
	if len(key) > shortKey {
		return e.long == string(key)
	}
	return e.long == "" && string(e.key[:e.length]) == string(key)
}

// slabEntries is how many entries are made at once.
const slabEntries = 64

// slab is the memory of a shard's entries, without gaps.
type slab struct {
	parts []*[slabEntries]entry
	used  int
}

// at returns an entry. It stays where it is until it is moved.
func (s *slab) at(r ref) *entry { return &s.parts[(r-1)/slabEntries][(r-1)%slabEntries] }

// last returns the last entry.
func (s *slab) last() ref { return ref(s.used) }

// take returns an entry behind the last one.
func (s *slab) take() ref {
	if s.used == len(s.parts)*slabEntries {
		s.parts = append(s.parts, new([slabEntries]entry))
	}
	s.used++
	return s.last()
}

// giveLast takes the last entry back, and frees memory that is two parts behind it.
func (s *slab) giveLast() {
	*s.at(s.last()) = entry{}
	s.used--
	if n := len(s.parts); n > 1 && s.used <= (n-2)*slabEntries {
		s.parts[n-1] = nil
		s.parts = s.parts[:n-1]
	}
}
