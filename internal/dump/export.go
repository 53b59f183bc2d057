package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/task"
	"svc/segment"
)

const (
	// senders take turns with the documents of an index, so that the work of the other side begins with the first
	// of them. Programs that watch the tasks there count on it: a small index arrives one document a request.
	senders = 40

	sendersBytes = 128 << 20 // of documents that wait to be sent, however large a payload may be
	inFlight     = 4         // requests with documents at once

	minPayload   = 20 << 20 // bytes of a request that any other side is assumed to take
	payloadSpare = 1 << 20  // bytes left below the limit of this side
)

// exported is what the details of a finished export say of an index.
type exported struct {
	task.ExportIndex
	Matched int `json:"matched_documents"`
}

// export runs the one task of an export batch.
func (m *Maker) export(ctx context.Context, _ *task.Queue, tasks []*task.Task, p index.Progress) ([]task.Outcome, error) {
	c, ok := tasks[0].Content.(task.ExportTo)
	if !ok {
		return nil, fmt.Errorf("task %d is not an export", tasks[0].UID)
	}
	frozen, err := m.o.Catalog.Freeze()
	if err != nil {
		return nil, err
	}
	defer frozen.Release()
	type chosen struct {
		uid   string
		place int // in frozen
		how   task.ExportIndex
	}
	var list []chosen
	for i, o := range frozen.Outlines() {
		if how, ok := match(c.Indexes, o.UID); ok {
			list = append(list, chosen{o.UID, i, how})
		}
	}
	r := newRemote(m.o.Allowed.Transport(), c.URL, c.APIKey)
	defer r.close()
	e := &exporter{m: m, ctx: ctx, remote: r, payload: c.PayloadSize, frozen: frozen, progress: p}
	if e.payload == 0 {
		e.payload = max(m.o.PayloadLimit-payloadSpare, minPayload)
	}
	done := map[string]exported{}
	for i, x := range list {
		p(0, index.Step{Name: fmt.Sprintf("Exporting index %q", x.uid), Finished: i, Total: len(list)})
		n, err := e.index(x.place, x.how)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("cannot export index %s to %s: %w", x.uid, settings.RedactURL(c.URL), err)
		}
		if x.how.Filter == nil {
			x.how.Filter = null
		}
		done[x.uid] = exported{x.how, n}
	}
	details, err := e.details(tasks[0].Details, done)
	if err != nil {
		return nil, err
	}
	return []task.Outcome{{Details: details}}, nil
}

// match returns what an export says of an index: by its uid, else by the longest pattern, PREFIX*, that matches.
func match(patterns map[string]task.ExportIndex, uid string) (how task.ExportIndex, ok bool) {
	if how, ok := patterns[uid]; ok {
		return how, true
	}
	longest := -1
	for pattern, x := range patterns {
		prefix, isPattern := strings.CutSuffix(pattern, "*")
		if isPattern && strings.HasPrefix(uid, prefix) && len(prefix) > longest {
			how, ok, longest = x, true, len(prefix)
		}
	}
	return how, ok
}

// exporter is one export on its way.
type exporter struct {
	m        *Maker
	ctx      context.Context
	remote   *remote
	payload  int64 // bytes of documents in a request, at most, unless one document has more
	frozen   *index.Frozen
	progress index.Progress
}

// details returns the details of the enqueued task, with what was exported instead of the patterns.
func (e *exporter) details(enqueued json.RawMessage, done map[string]exported) (json.RawMessage, error) {
	indexes, err := encode(done)
	if err != nil {
		return nil, err
	}
	var before struct {
		URL         string  `json:"url"`
		APIKey      *string `json:"apiKey,omitempty"`
		PayloadSize *string `json:"payloadSize,omitempty"`
	}
	if err := json.Unmarshal(enqueued, &before); err != nil {
		return nil, fmt.Errorf("cannot read the details of the export: %w", err)
	}
	b, err := encode(before)
	if err != nil {
		return nil, err
	}
	return append(appendMember(b[:len(b)-1], "indexes", indexes), '}'), nil
}

// index exports the index at a place of the outlines and returns how many documents it sent.
func (e *exporter) index(place int, how task.ExportIndex) (int, error) {
	v, err := e.frozen.ReadView(place)
	if err != nil {
		return 0, err
	}
	defer e.frozen.Done(place)
	if err := v.CheckSums(e.ctx); err != nil {
		return 0, err
	}
	rows, n, err := e.rows(v, valueOrNil(how.Filter))
	if err != nil {
		return 0, err
	}
	exists, err := e.remote.has(e.ctx, v.UID)
	if err != nil {
		return 0, err
	}
	switch key := textOrNil(v.PrimaryKey); {
	case !exists:
		err = e.remote.send(e.ctx, "POST", "/indexes", map[string]any{"uid": v.UID, "primaryKey": key})
	case how.OverrideSettings:
		err = e.remote.send(e.ctx, "PATCH", "/indexes/"+v.UID, map[string]any{"primaryKey": key})
	}
	if err != nil {
		return 0, err
	}
	if !exists || how.OverrideSettings {
		all, err := SettingsFor(v, e.m.o.Features())
		if err != nil {
			return 0, err
		}
		if err := e.remote.send(e.ctx, "PATCH", "/indexes/"+v.UID+"/settings", all); err != nil {
			return 0, err
		}
	}
	return n, e.documents(v, rows, n)
}

// rows returns the documents that a filter matches: nil for all.
func (e *exporter) rows(v *index.View, body json.RawMessage) (rows []*roaring.Bitmap, n int, err error) {
	if body == nil {
		return nil, v.Documents(), nil
	}
	f, err := filter.FromJSON(body, "invalid_export_index_filter")
	if err != nil {
		return nil, 0, fmt.Errorf("the filter: %s", err) // not with the code: clients know this failure as internal
	}
	var unopened error
	bound, err := f.Bind(filter.Env{
		Fields: v.Fields, Code: "invalid_export_index_filter", Contains: true, Embedders: v.FilterEmbedders(),
		ForeignKeys: v.Settings.ForeignKeys, Parted: v.Shards() != nil,
		Foreign: func(uid string) (target *filter.Foreign, err error) {
			target, unopened = e.foreign(uid)
			return target, unopened
		},
		Shard: func(name string) func(segment.Live) *roaring.Bitmap { return v.Shard(v.Shards(), name) },
	})
	if unopened != nil {
		return nil, 0, err
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the filter: %s", err)
	}
	for _, l := range v.Segments {
		matched := bound.Rows(l)
		if l.Deleted != nil {
			matched = roaring.AndNot(matched, l.Deleted)
		}
		rows = append(rows, matched)
		n += int(matched.GetCardinality())
	}
	return rows, n, nil
}

// SettingsFor returns all settings of an index, secrets in clear text, except those whose feature is off, because a server would
// refuse them. features is the body of GET /experimental-features.
func SettingsFor(v *index.View, features []byte) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(v.Settings.Patch(), &all); err != nil {
		return nil, err
	}
	var on map[string]bool
	if err := json.Unmarshal(features, &on); err != nil {
		return nil, err
	}
	for setting, feature := range map[string]string{"chat": "chatCompletions", "foreignKeys": "foreignKeys"} {
		if !on[feature] {
			delete(all, setting)
		}
	}
	return all, nil
}

// documents sends the documents of rows in turn by each of the senders.
func (e *exporter) documents(v *index.View, rows []*roaring.Bitmap, total int) error {
	group, ctx := errgroup.WithContext(e.ctx)
	group.SetLimit(inFlight)
	path := "/indexes/" + v.UID + "/documents"
	var waiting [senders]bytes.Buffer
	bytesWaiting, n := 0, 0
	flush := func(i int) {
		body := bytes.Clone(waiting[i].Bytes())
		bytesWaiting -= len(body)
		waiting[i] = bytes.Buffer{}
		group.Go(func() error { return e.remote.documents(ctx, path, body) })
	}
	unfit, err := EachFitting(v, rows, func(doc []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := n % senders
		if w := &waiting[i]; w.Len() > 0 && int64(w.Len()+len(doc)+1) > e.payload {
			flush(i)
		}
		waiting[i].Write(doc)
		waiting[i].WriteByte('\n')
		bytesWaiting += len(doc) + 1
		if bytesWaiting > sendersBytes {
			largest := 0
			for k := range waiting {
				if waiting[k].Len() > waiting[largest].Len() {
					largest = k
				}
			}
			flush(largest)
		}
		if n%documentsPerReport == 0 {
			e.progress(1, index.Step{Name: "document", Finished: n, Total: total})
		}
		n++
		return nil
	})
	if unfit > 0 {
		e.m.o.Logger.Warn("vectors that do not fit their embedder are not exported", "index", v.UID, "documents", unfit)
	}
	if err == nil {
		for i := range waiting {
			if waiting[i].Len() > 0 {
				flush(i)
			}
		}
	}
	if e := group.Wait(); e != nil { // what went wrong first
		err = e
	}
	return err
}

// foreign opens the index of a foreign key in a filter, or returns nil if there is none.
func (e *exporter) foreign(uid string) (*filter.Foreign, error) {
	for i, o := range e.frozen.Outlines() {
		if o.UID != uid {
			continue
		}
		v, err := e.frozen.ReadView(i)
		if err != nil {
			return nil, err
		}
		return &filter.Foreign{Fields: v.Fields, Segments: v.Segments, Embedders: v.FilterEmbedders()}, nil
	}
	return nil, nil
}
