package index

import (
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// Trial is a view under other settings, as far as possible without new segments. It is never stored, and its results are not cached
// with the segments.
type Trial struct {
	*View
	Reindexing []Reindexing // changes that are not tried, in the order of the settings

	scopes []*resultcache.Scope
}

// Reindexing is a change of a setting that searches see only after documents were read again.
type Reindexing struct {
	Setting string
	Tried   bool   // the trial has the rest of the change
	What    string // what would have to be made, as a sentence
}

// triedSettings are the settings that decide which documents are found, and in which order. Settings for displayed attributes,
// filters and the destinations of texts cannot be tried, because callers may have only the right to search.
var triedSettings = []string{
	"searchableAttributes", "rankingRules", "stopWords", "nonSeparatorTokens", "separatorTokens", "dictionary", "synonyms", "distinctAttribute",
	"proximityPrecision", "typoTolerance", "localizedAttributes", "prefixSearch",
}

// Try returns the view under other settings. The caller releases it, and still owns v. The error, an *apierr.Error, says which
// setting cannot be tried, or is not valid.
func (ix *Index) Try(v *View, u *settings.Update) (*Trial, error) {
	t := &Trial{}
	now, fields := v.Settings, v.Fields
	err := u.Each(func(key string, one *settings.Update) error {
		if !slices.Contains(triedSettings, key) {
			return apierr.New("bad_request", "The setting `%s` cannot be tried. You can try %s.", key, strings.Join(triedSettings, ", "))
		}
		next, err := now.Apply(one)
		if err != nil {
			return err
		}
		resolved := settings.Resolve(v.names, next, v.PrimaryKey)
		stale := settings.Changes(now, next, fields, resolved)
		if what := staleWhat(&stale, next, resolved); what != "" {
			t.Reindexing = append(t.Reindexing, Reindexing{Setting: key, What: what})
			return nil
		}
		if !settings.SameSearchable(now, next) && slices.ContainsFunc(v.embedders, func(e *ViewEmbedder) bool { return e.generates() && len(e.fragments) == 0 }) {
			t.Reindexing = append(t.Reindexing, Reindexing{Setting: key, Tried: true,
				What: "Vectors of documents whose template uses searchable fields: the existing vectors are compared."})
		}
		now, fields = next, resolved
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.View = v.successor()
	t.setSettings(now, fields)
	for range v.files {
		t.scopes = append(t.scopes, ix.catalog.results.Scope())
	}
	t.show(ix.catalog.results, v.files, v.Segments)
	if v.kept != nil && v.kept.serves(t.likeness) {
		t.keep(v.kept)
	}
	t.Cache.Close() // which would keep results with the segments, and a stamp of the settings for as long as they live
	t.Cache = query.NewCache(ix.catalog.results, t.scopes...)
	return t, nil
}

// staleWhat says what would have to be rebuilt before searches are possible under some settings, or "".
func staleWhat(stale *settings.Rebuild, s *settings.Settings, fields *settings.Fields) string {
	switch {
	case stale.Words:
		return "The words of every document."
	case stale.Prefixes && s.PrefixSearch != settings.PrefixDisabled:
		return "The prefixes of every document."
	case stale.Geo:
		return "The geographic positions of every document."
	case len(stale.AddColumns) > 0:
		return fmt.Sprintf("The values of %s, of every document.", nameFields(fields, stale.AddColumns))
	}
	return ""
}

func nameFields(fields *settings.Fields, ids []segment.FieldID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "`" + fields.Info(id).Name + "`"
	}
	return strings.Join(names, ", ")
}

// Release gives the trial back.
func (t *Trial) Release() {
	t.View.Release()
	for _, s := range t.scopes {
		s.Close()
	}
}
