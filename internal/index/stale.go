package index

import (
	"slices"
	"sync"

	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// stale describes the words of a view that another version of the analysis made than this program's.
type stale struct {
	Parts     []text.Part // each once, in the order of text.ComparePart
	Documents int         // live documents in segments with such words
	Lost      bool        // this program cannot repeat the analysis of some of them, so queries may miss words
}

// Stale describes the stale words of the view. It is computed once a view.
func (v *View) Stale() stale { return v.stale() }

// findStale finds the segments whose words another version of the analysis made. Lost says that this program cannot repeat one of
// these versions.
func (v *View) findStale() (s stale) {
	possible := sync.OnceValue(v.pipelines)
	for i, f := range v.files {
		if parts := v.staleIn(f, possible); len(parts) > 0 {
			_, lost := text.VersionsOf(parts)
			s.Lost = s.Lost || len(lost) > 0
			s.Parts = append(s.Parts, parts...)
			s.Documents += liveCount(v.Segments[i])
		}
	}
	slices.SortFunc(s.Parts, text.ComparePart)
	s.Parts = slices.Compact(s.Parts)
	return s
}

// OlderAnalyzers returns the analyzers of the older versions that made stale words of the view, if this program can repeat them. They
// are shared, and created once per view.
func (v *View) OlderAnalyzers() []*text.Analyzer { return v.older() }

// findOlder returns an analyzer for each older version that the program can repeat. Queries are read with
// each of them, too.
func (v *View) findOlder() (older []*text.Analyzer) {
	var seen []text.Versions
	possible := sync.OnceValue(v.pipelines)
	for _, f := range v.files {
		parts := v.staleIn(f, possible)
		if at, lost := text.VersionsOf(parts); len(lost) < len(parts) && !slices.Contains(seen, at) {
			seen = append(seen, at)
			older = append(older, v.Analyzer.At(at))
		}
	}
	return older
}

// staleIn returns the stale parts of the analysis of a segment.
func (v *View) staleIn(f *file, possible func() text.Pipelines) []text.Part {
	made := f.Analysis()
	parts := make([]text.Part, len(made))
	for i, p := range made {
		parts[i] = text.Part(p)
	}
	if len(v.Analyzer.Stale(parts, text.Possible(text.Locales{"deu"}))) == 0 { // for all fields, so the fields need not be read
		return nil
	}
	return v.Analyzer.Stale(parts, possible())
}

// pipelines returns the pipelines that texts of the index may go through.
func (v *View) pipelines() text.Pipelines { return pipelinesOf(v.Fields) }

// pipelinesOf returns the parts of the analysis that texts of an index can go through, by the locales of its
// searchable fields.
func pipelinesOf(fields *settings.Fields) text.Pipelines {
	var all []text.Locales
	for id := range fields.Len() {
		if info := fields.Info(segment.FieldID(id)); info.Searchable && len(info.Locales) > 0 {
			all = append(all, info.Locales)
		}
	}
	return text.Possible(all...)
}

// recorded returns parts in the form that segments record.
func recorded(parts []text.Part) []segment.AnalysisPart {
	made := make([]segment.AnalysisPart, len(parts))
	for i, p := range parts {
		made[i] = segment.AnalysisPart(p)
	}
	return made
}
