// Package suggest maintains the indexes of suggestions. An index with the setting suggestions has one, whose uid ends with
// _suggestions. Its documents are popular queries with hits or, before there are any searches, frequent words and facet values.
//
// The index is written by tasks, like those of any client: settings when it is created, changed documents, and the ids of documents
// to delete. So followers, dumps and snapshots need no special code. Documents that svc did not create stay as they are: the id of
// one that it created is a hash of its text.
//
// Only open indexes are processed, because an unused index has no new queries. When an index for which the Builder has made
// suggestions is deleted or renamed, its suggestions are deleted. Other indexes of that name, from a dump or another instance, stay.
package suggest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/analytics"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/internal/search"
	"svc/internal/settings"
	"svc/internal/task"
	"svc/segment"
)

const (
	lookEvery  = 20 * time.Second // for indexes that want suggestions
	buildEvery = time.Hour
	retryAfter = 5 * time.Minute // of an error
)

// maxQueries is how many queries of the analytics are read for an index.
const maxQueries = 4 * settings.MaxSuggestions

// ownSettings are the settings with which an index of suggestions is created. Its users may change them.
const ownSettings = `{"searchableAttributes": ["query"], "filterableAttributes": ["source"], "sortableAttributes": ["count"],
	"rankingRules": ["words", "typo", "proximity", "attribute", "exactness", "count:desc"]}`

// maxUID is the longest uid of an index.
const maxUID = 400

// Options of a Builder.
type Options struct {
	Catalog   *index.Catalog
	Queue     *task.Queue
	Analytics *analytics.Recorder // nil: searches are not counted
	Spread    func() bool         // reports whether documents are spread over instances, which get no suggestions; nil: never
	Log       *slog.Logger
}

// Builder keeps the indexes of suggestions.
type Builder struct {
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	made map[string]*made // by uid
}

// made is the last index of suggestions of an index.
type made struct {
	at       time.Duration // since the start of the program; after an error it is earlier, so that the next try comes soon
	complete bool          // it was written, as far as is known
	settings *settings.Suggestions
	state    uint64 // generation of the index
	counted  uint64 // searches in it that had been counted
	last     *uint32
	ended    bool   // the index is deleted, and a task deletes its suggestions
	failed   string // why; "": it has not
}

// New returns a Builder, which the caller closes before the queue, the catalog and the analytics.
func New(o Options) *Builder {
	b := &Builder{o: o, made: map[string]*made{}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.ctx = pace.Beside(b.ctx, o.Catalog.Searches())
	return b
}

// Start has the Builder look at the indexes now and then.
func (b *Builder) Start() { b.done.Go(b.keep) }

// Close ends the work.
func (b *Builder) Close() error {
	b.stop()
	b.done.Wait()
	return nil
}

func (b *Builder) keep() {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	began := time.Now()
	for {
		select {
		case <-ticks.C:
			b.Look(time.Since(began))
		case <-b.ctx.Done():
			return
		}
	}
}

// Look makes the suggestions that are due. now is the time since the start of the program. Only one goroutine at a time may call it:
// after Start, that of the Builder.
func (b *Builder) Look(now time.Duration) {
	if b.o.Spread != nil && b.o.Spread() {
		return
	}
	for _, uid := range b.o.Catalog.Suggesting() {
		if b.ctx.Err() != nil {
			return
		}
		m := b.of(uid)
		b.note(uid, m, "make", b.refresh(uid, m, now))
	}
	for uid, m := range b.made {
		if b.ctx.Err() != nil {
			return
		}
		if b.o.Catalog.Get(uid) != nil || b.o.Catalog.Damaged(uid) {
			m.ended = false
			continue
		}
		over, err := b.end(uid+search.SuggestionsSuffix, m)
		if b.note(uid, m, "delete", err); over {
			delete(b.made, uid)
		}
	}
}

// of returns the state of an index.
func (b *Builder) of(uid string) *made {
	m := b.made[uid]
	if m == nil {
		m = &made{}
		b.made[uid] = m
	}
	return m
}

// note logs an error once.
func (b *Builder) note(uid string, m *made, what string, err error) {
	switch {
	case b.ctx.Err() != nil:
	case err == nil:
		m.failed = ""
	case m.failed != err.Error():
		m.failed = err.Error()
		b.o.Log.Warn("cannot "+what+" suggestions", slog.String("index", uid), slog.Any("error", err))
	}
}

// waits reports whether the last task is not finished. It notes whether the task failed.
func (b *Builder) waits(m *made) bool {
	if m.last == nil {
		return false
	}
	t, err := b.o.Queue.Task(*m.last, nil)
	switch {
	case err != nil:
	case !t.Status.Finished():
		return true
	case t.Status != task.Succeeded:
		m.complete = false
	}
	m.last = nil
	return false
}

// end deletes the suggestions of a deleted index. over says that nothing is left to do.
//
// Documents that svc created are deleted by id, so that tasks of users enqueued meanwhile keep theirs. A later call deletes the index
// if it is then empty and no task for it waits.
func (b *Builder) end(to string, m *made) (over bool, err error) {
	m.settings = nil // one that is created again gets new ones at once
	if b.waits(m) {
		return false, nil
	}
	ix := b.o.Catalog.Get(to)
	if ix == nil || ix.Outline().PrimaryKey != "id" {
		return true, nil
	}
	if !m.ended {
		present, err := b.present(to)
		if err != nil || len(present) == 0 {
			return err == nil, err
		}
		err = b.enqueue(m, task.New{IndexUID: to, Content: task.DeleteDocuments{IDs: slices.Sorted(maps.Keys(present))}})
		m.ended = err == nil
		return false, err
	}
	waiting, err := b.o.Queue.Tasks(task.Filter{IndexUIDs: []string{to}, Statuses: []task.Status{task.Enqueued, task.Processing}})
	if err != nil || waiting.Total > 0 {
		return false, err
	}
	v, err := ix.ReadView()
	if err != nil {
		return false, err
	}
	defer v.Release()
	if v.Documents() == 0 {
		err = b.enqueue(m, task.New{IndexUID: to, Content: task.DeleteIndex{}})
	}
	return err == nil, err
}

// refresh makes the suggestions of an index if they are due, and writes the changes.
func (b *Builder) refresh(uid string, m *made, now time.Duration) (err error) {
	if b.waits(m) {
		return nil
	}
	defer func() {
		if err != nil {
			m.complete, m.at = false, now+retryAfter-buildEvery
		}
	}()
	ix := b.o.Catalog.Get(uid)
	if ix == nil {
		return nil
	}
	v, err := ix.ReadView()
	if err != nil {
		return err
	}
	defer v.Release()
	wanted := v.Settings.Suggestions
	if wanted == nil || m.settings != nil && now-m.at < buildEvery && reflect.DeepEqual(wanted, m.settings) {
		return nil
	}
	queries, counted, err := b.queries(uid)
	if err != nil {
		return err
	}
	same := m.complete && reflect.DeepEqual(wanted, m.settings) && m.state == v.Generation && m.counted == counted
	m.settings, m.at, m.state, m.counted = wanted, now, v.Generation, counted
	if same {
		return nil
	}
	var all []search.Suggestion
	worker := pace.Of(b.ctx)
	rest := func() error {
		worker.Yield()
		return b.ctx.Err()
	}
	err = mapped.Guard(func() (err error) {
		all, err = search.Suggestions(b.ctx, v, queries, rest)
		return err
	})
	if err != nil {
		return err
	}
	err = b.write(uid, m, all)
	m.complete = err == nil
	return err
}

// queries returns the queries of an index that found something, the most frequent first, and the number of counted searches.
func (b *Builder) queries(uid string) (queries []search.Suggestion, counted uint64, err error) {
	if b.o.Analytics == nil {
		return nil, 0, nil
	}
	r, err := b.o.Analytics.Queries(b.ctx, analytics.Range{Index: uid}, analytics.MostSearched, maxQueries)
	if err != nil {
		return nil, 0, err
	}
	counted = r.Other
	for i := range r.Rows {
		row := &r.Rows[i]
		counted += row.Searches
		found := row.Searches - min(row.None, row.Searches)
		if found == 0 || strings.TrimSpace(row.Text) == "" || row.Cut() {
			continue
		}
		queries = append(queries, search.Suggestion{Query: row.Text, Count: int(found)})
	}
	return queries, counted, nil
}

// write enqueues the changes that bring the index of suggestions up to date.
func (b *Builder) write(uid string, m *made, all []search.Suggestion) error {
	to := uid + search.SuggestionsSuffix
	switch {
	case len(to) > maxUID:
		return errors.New("the uid of the index is too long: with " + search.SuggestionsSuffix + " it has more than 400 characters")
	case b.o.Catalog.Aliases().Has(to):
		return errors.New("the alias " + to + " has the name of the index of suggestions")
	}
	present, err := b.present(to)
	if err != nil {
		return err
	}
	if present == nil {
		if len(all) == 0 {
			return nil
		}
		update, err := settings.ParseUpdate([]byte(ownSettings), settings.Features{})
		if err != nil {
			return err
		}
		if err := b.enqueue(m, task.New{IndexUID: to, Content: task.UpdateSettings{Update: update, MayCreate: true}}); err != nil {
			return err
		}
	}
	if err := b.add(m, to, all, present); err != nil {
		return err
	}
	var gone []string
	for id := range present {
		gone = append(gone, id)
	}
	if len(gone) == 0 {
		return nil
	}
	return b.enqueue(m, task.New{IndexUID: to, Content: task.DeleteDocuments{IDs: gone}})
}

// present returns the suggestions in an index by their ids, or nil if there is no such index.
func (b *Builder) present(uid string) (present map[string]search.Suggestion, err error) {
	ix := b.o.Catalog.Get(uid)
	if ix == nil {
		if b.o.Catalog.Damaged(uid) {
			return nil, b.o.Catalog.Missing(uid)
		}
		return nil, nil
	}
	v, err := ix.ReadView()
	if err != nil {
		return nil, err
	}
	defer v.Release()
	if v.PrimaryKey != "" && v.PrimaryKey != "id" {
		return nil, apierr.New("index_primary_key_already_exists", "the index %s has the primary key %s, and no room for suggestions", uid, v.PrimaryKey)
	}
	present = map[string]search.Suggestion{}
	err = mapped.Guard(func() error {
		return v.EachDocument(nil, func(_ int, _ segment.Row, doc []byte) error {
			if s, own := search.ParseSuggestion(doc); own {
				present[s.ID] = s
			}
			return b.ctx.Err()
		})
	})
	return present, err
}

// add has those documents written that are new or have changed. It removes those from present that stay.
func (b *Builder) add(m *made, to string, all []search.Suggestion, present map[string]search.Suggestion) error {
	payload, err := b.o.Queue.NewPayload()
	if err != nil {
		return err
	}
	defer payload.Discard() // unless it is enqueued
	documents := 0
	for _, s := range all {
		before, known := present[s.ID]
		if delete(present, s.ID); known && before == s {
			continue
		}
		doc, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := payload.Write(append(doc, '\n')); err != nil {
			return err
		}
		documents++
	}
	if documents == 0 {
		return nil
	}
	return b.enqueue(m, task.New{IndexUID: to, Content: task.AddDocuments{PrimaryKey: "id", Documents: documents, MayCreate: true}, Payload: payload})
}

func (b *Builder) enqueue(m *made, n task.New) error {
	t, err := b.o.Queue.Enqueue(b.ctx, n)
	if err == nil {
		m.last = &t.UID
	}
	return err
}
