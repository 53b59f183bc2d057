package selection

import (
	"slices"
	"strings"
)

// pathSet is a set of paths, or of their rests further down in a document. A few are compared one by one, many are looked up by name,
// so the cost of selecting from a document does not depend on the number of paths.
type pathSet struct {
	few  []string
	many *pathNode // nil: few
}

// pathNode is where a name of a path leads.
type pathNode struct {
	whole bool // a path ends here
	below map[string]*pathNode
}

// FewPaths is how many paths are compared one by one.
const FewPaths = 16

// newPathSet represents few paths as a list, and many as a tree by their members.
func newPathSet(paths []string) pathSet {
	if len(paths) <= FewPaths {
		return pathSet{few: paths}
	}
	root := &pathNode{}
	for _, path := range paths {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			next := at.below[name]
			if next == nil {
				if at.below == nil {
					at.below = make(map[string]*pathNode)
				}
				next = &pathNode{}
				at.below[name] = next
			}
			at = next
		}
		at.whole = true
	}
	return pathSet{many: root}
}

// members returns an upper bound of the number of members of an object that the paths lead to, or 0 if it is unknown. A path with a
// dot may lead to several: a.b is a member of a, or a member whose key contains the dot.
func (p pathSet) members() int {
	for _, path := range p.few {
		if strings.IndexByte(path, '.') >= 0 {
			return 0
		}
	}
	return len(p.few)
}

// under returns the rests of the paths below the member key, whether there are any, and whether one of the paths is the member
// itself. The key may have dots.
func (p pathSet) under(key []byte) (below pathSet, some, whole bool) {
	if p.many == nil {
		rest, whole := pathsBelow(p.few, key)
		return pathSet{few: rest}, len(rest) > 0, whole
	}
	at := p.many
	for name := range strings.SplitSeq(string(key), ".") {
		if at = at.below[name]; at == nil {
			return pathSet{}, false, false
		}
	}
	return pathSet{many: at}, len(at.below) > 0, at.whole
}

// pathsBelow returns the rests of the paths below the member key, and whether one of them is the member itself.
func pathsBelow(paths []string, key []byte) (below []string, whole bool) {
	for _, p := range paths {
		n := len(key)
		switch {
		case len(p) < n || p[:n] != string(key):
		case len(p) == n:
			return nil, true
		case p[n] == '.':
			below = append(below, p[n+1:])
		}
	}
	return below, false
}

// Covering finds the names that cover a path: the path itself and its parents.
type Covering struct {
	few  []string
	many map[string]int // the first place of each name in the list; nil: few
}

// NewCovering keeps few names as a list, and many as a map to the first place of each.
func NewCovering(names []string) Covering {
	if len(names) <= FewPaths {
		return Covering{few: names}
	}
	c := Covering{many: make(map[string]int, len(names))}
	for i, name := range names {
		if _, known := c.many[name]; !known {
			c.many[name] = i
		}
	}
	return c
}

// First returns the place of the first name in the list that covers the path, or −1.
func (c Covering) First(path string) int {
	if c.many == nil {
		return slices.IndexFunc(c.few, func(name string) bool { return Covers(name, path) })
	}
	first := -1
	found := func(name string) {
		if i, ok := c.many[name]; ok && (first < 0 || i < first) {
			first = i
		}
	}
	found(path)
	for i := range len(path) {
		if path[i] == '.' {
			found(path[:i])
		}
	}
	return first
}

// Covers reports whether a path is attribute or below it.
func Covers(attribute, path string) bool {
	return strings.HasPrefix(path, attribute) && (len(path) == len(attribute) || path[len(attribute)] == '.')
}
