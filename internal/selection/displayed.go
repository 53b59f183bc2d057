package selection

import (
	"slices"

	"svc/internal/settings"
)

// Retrieved returns the paths that a hit shows, nil for all: the requested paths that some document has, as far as they are
// displayed. Both lists are nil for all; an empty list of displayed attributes does not restrict named paths.
func Retrieved(fields *settings.Fields, displayed, requested []string) []string {
	if requested == nil || slices.Contains(requested, "*") {
		return displayed
	}
	shown := make([]string, 0, len(requested))
	d := NewDisplayed(displayed)
	for _, name := range requested {
		switch _, known := fields.ID(name); {
		case !known:
		case len(displayed) == 0:
			shown = append(shown, name)
		default:
			shown = d.AppendWithin(shown, name)
		}
	}
	return shown
}

// Displayed are the displayed attributes.
type Displayed struct {
	all    []string // nil: everything is displayed
	cover  Covering
	sorted []string // where they are many
}

// NewDisplayed returns the displayed attributes; nil: all.
func NewDisplayed(displayed []string) Displayed {
	d := Displayed{all: displayed, cover: NewCovering(displayed)}
	if len(displayed) > FewPaths {
		d.sorted = slices.Sorted(slices.Values(displayed))
	}
	return d
}

// AppendWithin appends the displayed paths within a path: the path itself if it or a parent is displayed, else the displayed paths
// below it.
func (d *Displayed) AppendWithin(dst []string, path string) []string {
	if d.all == nil || d.cover.First(path) >= 0 {
		return append(dst, path)
	}
	if d.sorted == nil {
		for _, name := range d.all {
			if Covers(path, name) {
				dst = append(dst, name)
			}
		}
		return dst
	}
	at, _ := slices.BinarySearch(d.sorted, path+".")
	for ; at < len(d.sorted) && Covers(path, d.sorted[at]); at++ {
		dst = append(dst, d.sorted[at])
	}
	return dst
}
