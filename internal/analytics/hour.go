package analytics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/sealedjson"
)

// hour counts hours since 1970.
type hour int64

const hourSeconds = int64(time.Hour / time.Second)

// hourOf returns the hour of a moment.
func hourOf(t time.Time) hour {
	s := t.Unix()
	h := s / hourSeconds
	if s%hourSeconds < 0 {
		h--
	}
	return hour(h)
}

func (h hour) start() time.Time { return time.Unix(int64(h)*hourSeconds, 0).UTC() }

// The name of the file of an hour.
const (
	hourLayout = "2006-01-02T15"
	hourSuffix = ".json"
)

func (h hour) name() string { return h.start().Format(hourLayout) + hourSuffix }

// parseHour reads the name of a file.
func parseHour(name string) (h hour, ok bool) {
	text, ok := strings.CutSuffix(name, hourSuffix)
	t, err := time.Parse(hourLayout, text)
	h = hourOf(t)
	return h, ok && err == nil && h.name() == name
}

const hourVersion = 1 // of the format of the files of hours

// What stays of an hour when it ends: half of the queries are the most frequent ones, a quarter those that most often find nothing,
// and a quarter those of the slowest searches.
const (
	keptQueries = 1_000
	keptFilters = 250
)

// hourContent is the content of the file of an hour, a sealed JSON object.
type hourContent struct {
	Hour         time.Time `json:"hour"`
	Queries      []counted `json:"queries"`
	Filters      []counted `json:"filters"`
	OtherQueries []counted `json:"otherQueries"` // by index; "" is for all indexes that have none
	OtherFilters []counted `json:"otherFilters"`
}

type counted struct {
	Index string `json:"index"`
	Text  string `json:"text,omitempty"`
	Counts
}

// lists are the lists of a content by kind.
func (c *hourContent) lists() [kinds]*[]counted {
	return [kinds]*[]counted{queryKind: &c.Queries, filterKind: &c.Filters, restOf + queryKind: &c.OtherQueries, restOf + filterKind: &c.OtherFilters}
}

// encodeHour returns the content of a file, whose entries are in the order of their keys.
func encodeHour(h hour, entries []*entry) ([]byte, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, byKey)
	c := hourContent{Hour: h.start(), Queries: []counted{}, Filters: []counted{}, OtherQueries: []counted{}, OtherFilters: []counted{}}
	lists := c.lists()
	for _, e := range entries {
		k, index, text := splitKey(e.key)
		*lists[k] = append(*lists[k], counted{index, text, e.Counts})
	}
	return json.Marshal(c)
}

// decodeHour reads the content of a file.
func decodeHour(h hour, b []byte) ([]*entry, error) {
	var c hourContent
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, err
	}
	if !c.Hour.Equal(h.start()) {
		return nil, fmt.Errorf("it belongs to the hour %v", c.Hour)
	}
	var entries []*entry
	for k, list := range c.lists() {
		for _, of := range *list {
			key := string(append(appendKey(nil, kind(k), of.Index), of.Text...))
			if !validKey(key) || strings.IndexByte(of.Index, 0) >= 0 {
				return nil, fmt.Errorf("%q is not a query or filter", of.Text)
			}
			entries = append(entries, &entry{key: key, Counts: of.Counts})
		}
	}
	return entries, nil
}

// writeHour replaces the entries of an hour, durably. A file without entries stays until the end of the retention, because a removal
// is not a commit point.
func (r *Recorder) writeHour(h hour, entries []*entry) error {
	b, err := encodeHour(h, entries)
	if err != nil {
		return err
	}
	return sealedjson.Write(r.fs, r.path(h.name()), hourVersion, b)
}

// readHour returns the entries of an hour.
func (r *Recorder) readHour(h hour) ([]*entry, error) {
	name := r.path(h.name())
	b, err := sealedjson.Read(r.fs, name, hourVersion)
	if err != nil {
		return nil, err
	}
	entries, err := decodeHour(h, b)
	if err != nil {
		return nil, &apierr.Corruption{File: name, Offset: -1, Reason: err.Error()}
	}
	return entries, nil
}

// hours returns the hours that have files, in order.
func (r *Recorder) hours() ([]hour, error) {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return nil, err
	}
	var all []hour
	for _, name := range names {
		if h, ok := parseHour(name); ok {
			all = append(all, h)
		}
	}
	slices.Sort(all)
	return all, nil
}

func byKey(a, b *entry) int { return cmp.Compare(a.key, b.key) }

// choose returns up to most entries of a kind, those that stay.
func choose(entries []*entry, k kind, most int) map[string]bool {
	of := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return kind(e.key[0]) != k })
	stay := make(map[string]bool, min(most, len(of)))
	orders := []struct {
		share int
		value func(*entry) uint64
	}{
		{most / 2, func(e *entry) uint64 { return e.Searches }},
		{most / 4, func(e *entry) uint64 { return e.None }},
		{most / 4, func(e *entry) uint64 { return e.Longest }},
	}
	if k == filterKind {
		orders = orders[:1]
		orders[0].share = most
	}
	for _, o := range orders {
		slices.SortFunc(of, func(a, b *entry) int { return cmp.Or(cmp.Compare(o.value(b), o.value(a)), byKey(a, b)) })
		for _, e := range of[:min(o.share, len(of))] {
			stay[e.key] = true
		}
	}
	return stay
}

// mostUsed returns the entries that are left of an hour. The others are added to the rests of their indexes.
func mostUsed(entries []*entry) []*entry {
	queries, filters := choose(entries, queryKind, keptQueries), choose(entries, filterKind, keptFilters)
	var kept []*entry
	rests := map[string]*entry{}
	for _, e := range entries {
		k, index, _ := splitKey(e.key)
		if queries[e.key] || filters[e.key] {
			kept = append(kept, e)
			continue
		}
		rest := restKey(k%restOf, index)
		if rests[rest] == nil {
			rests[rest] = &entry{key: rest}
		}
		rests[rest].add(&e.Counts)
	}
	return slices.AppendSeq(kept, maps.Values(rests))
}

// makeRoom adds the less used half of the entries of a kind to the rests of their indexes when there is little room left. r.mu is held.
func (r *Recorder) makeRoom() {
	for _, k := range []kind{queryKind, filterKind} {
		if r.live.distinct[k].Load() < most[k]/10*9 {
			continue
		}
		stay := choose(r.live.copies(), k, int(most[k]/2))
		for _, e := range r.live.remove(func(e *entry) bool { return kind(e.key[0]) == k && !stay[e.key] }) {
			_, index, _ := splitKey(e.key)
			r.live.addRest(k, index, &e.Counts)
			if k == queryKind {
				r.folded.Add(e.Searches)
			}
		}
		r.journal.rewrite = true // it still has the deleted counts
	}
}
