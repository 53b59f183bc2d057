package settings

import "strings"

// elementRules decide which paths lead to elements: objects that may contain an attribute that a rule with elements covers.
type elementRules struct {
	all   bool            // a pattern begins with a star
	above map[string]bool // paths above the fixed parts of patterns
	below patterns        // patterns that end with a star
}

// add takes up a pattern with the feature elements: its objects, and the paths above and below it.
func (e *elementRules) add(pattern string) {
	if strings.HasPrefix(pattern, "*") {
		e.all = true
		return
	}
	if e.above == nil {
		e.above = map[string]bool{}
	}
	fixed, open := strings.CutSuffix(pattern, "*")
	for i := range fixed {
		if fixed[i] == '.' {
			e.above[fixed[:i]] = true
		}
	}
	if open {
		e.below.add(pattern, 0)
	}
}

func (e *elementRules) any() bool { return e.all || e.above != nil }

// scope reports whether objects at a path are elements.
func (e *elementRules) scope(name string) bool {
	return e.any() && (e.all || e.above[name] || e.below.first(name+".") >= 0)
}
