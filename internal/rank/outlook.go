package rank

// Rules and access paths learn here about the rules before and after them, through traits. They never look at the type of a rule.

// lookBehind returns all aspects that the rules after i look at, except the one that breaks ties. ok is false if they look at other
// things, too.
func (s *request) lookBehind(i int) (all aspects, ok bool) {
	for _, r := range s.rules[i+1:] {
		switch t := r.traits(); {
		case t.hidden:
		case t.only == 0:
			return all, false
		default:
			all |= t.only
		}
	}
	return all, true
}

// orderBehind returns how the next rule orders documents before their positions are read, or nil if it cannot. at is the index in
// s.rules of the rule that sums up displacements, if it follows directly, else −1.
func (s *request) orderBehind(i int) (order orderOf, at int) {
	behind := s.rules[i+1:]
	if len(behind) > 0 {
		if order = behind[0].traits().order; order != nil {
			behind = behind[1:]
		}
	}
	if len(behind) > 0 && behind[0].traits().adds == addsDisplacements {
		return order, len(s.rules) - len(behind)
	}
	return order, -1
}

// setsFollow reports whether a rule after i works on bitmaps.
func (s *request) setsFollow(i int) bool {
	for _, r := range s.rules[i+1:] {
		if r.traits().sets {
			return true
		}
	}
	return false
}

// together returns the rules from i on that read occurrences, up to one that changes which words count.
func (s *request) together(i int, with *charges) {
	for _, r := range s.rules[i:] {
		t := r.traits()
		if t.adds != addsNothing {
			with[t.adds] = t.charge
		} else if t.levels {
			return
		}
	}
}

// whereWords says what is known about the positions of the query's words in documents.
type whereWords uint8

const (
	placesUnknown whereWords = iota
	inPlace                  // each word is as near to its place as possible
	elsewhere                // in each document, some word is not
)

// placesOf returns what the rules found about the places of words, on the way to a set.
func placesOf(stack []verdict) whereWords {
	for i := range stack {
		switch p := &stack[i]; {
		case p.by.traits().adds != addsDisplacements:
		case p.rank == p.ranks:
			return inPlace
		default:
			return elsewhere
		}
	}
	return placesUnknown
}
