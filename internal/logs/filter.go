package logs

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
)

// Levels beyond slog's own.
const (
	LevelTrace = slog.LevelDebug - 4
	LevelOff   = slog.Level(math.MaxInt32)
)

// levelNames are the names of the levels, each at its number.
var levelNames = [...]string{"OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}

var levels = [...]slog.Level{LevelOff, slog.LevelError, slog.LevelWarn, slog.LevelInfo, slog.LevelDebug, LevelTrace}

// ParseLevel reads off, error, warn, info, debug or trace, in any case, or their numbers from 0 on.
func ParseLevel(text string) (level slog.Level, ok bool) {
	for i, name := range levelNames {
		if strings.EqualFold(text, name) || len(text) == 1 && text[0] == byte('0'+i) {
			return levels[i], true
		}
	}
	return 0, false
}

// levelName returns the name of the highest level that is not above l.
func levelName(l slog.Level) string {
	for i := 1; i < len(levels); i++ {
		if l >= levels[i] {
			return levelNames[i]
		}
	}
	return levelNames[len(levels)-1]
}

// Filter says from which level on records of a part are let through.
type Filter struct {
	rest  slog.Level // of parts that are not named
	parts []part     // the longest names first
}

type part struct {
	name  string
	level slog.Level
}

// AtLeast passes records from a level on, of all parts.
func AtLeast(level slog.Level) Filter { return Filter{rest: level} }

// ParseFilter reads a list such as "info,task=debug,svc::index=off": a level for all other parts (default: off), and levels of parts.
// The last of equal names counts. A part is named by its target, or by the end or the beginning of it.
func ParseFilter(text string) (Filter, error) {
	f := AtLeast(LevelOff)
	for piece := range strings.SplitSeq(text, ",") {
		name, levelText, named := strings.Cut(piece, "=")
		if !named {
			name, levelText = "", piece
		}
		level, ok := ParseLevel(levelText)
		switch {
		case !ok:
			return Filter{}, fmt.Errorf("%q is not a level: use off, error, warn, info, debug or trace", levelText)
		case !named:
			f.rest = level
			continue
		case name == "":
			return Filter{}, fmt.Errorf("%q names no part: use a level, or PART=LEVEL", piece)
		}
		f.parts = slices.DeleteFunc(f.parts, func(p part) bool { return p.name == name })
		f.parts = append(f.parts, part{name, level})
	}
	slices.SortStableFunc(f.parts, func(a, b part) int { return cmp.Compare(len(b.name), len(a.name)) })
	return f, nil
}

// level returns the level from which on records of a target pass.
func (f *Filter) level(target string) slog.Level {
	for _, p := range f.parts {
		if target == p.name || strings.HasPrefix(target, p.name+"::") || strings.HasSuffix(target, "::"+p.name) {
			return p.level
		}
	}
	return f.rest
}

// lowest returns the level below which nothing passes.
func (f *Filter) lowest() slog.Level {
	lowest := f.rest
	for _, p := range f.parts {
		lowest = min(lowest, p.level)
	}
	return lowest
}
