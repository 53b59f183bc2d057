package fastapi

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/network"
	"svc/internal/rank"
	"svc/internal/search"
	"svc/internal/turns"
)

// A list of documents of all instances takes two steps. The first asks each shard for its number of documents and, for a sorted list,
// for the sort values of its first documents. This decides which documents of which shard are on the page. The second step fetches
// them. A page near the beginning takes one step, which already returns its documents.

// nearPage is the last document up to which a page takes one step.
const nearPage = 100

// networkFetch is a list of documents at work.
type networkFetch struct {
	*networkRead
	view    *index.View
	request *search.FetchRequest
	ids     [][]string // by part; nil: the request names no ids
}

// fetchNetwork appends the body of a list of documents of all instances.
func (s *Server) fetchNetwork(ctx context.Context, dst []byte, v *index.View, r *search.FetchRequest) ([]byte, error) {
	if r.Cursor != nil {
		return nil, apierr.New("invalid_document_cursor", "`cursor` cannot be used for the documents of several instances. Send `\"useNetwork\": false` to read on at this one.")
	}
	f := &networkFetch{networkRead: s.newNetworkRead(), view: v, request: r}
	if err := cmp.Or(search.CheckFetch(ctx, v, r), search.CheckSortedPage(r)); err != nil {
		return nil, err
	}
	if f.ring != nil {
		var err error
		if r.Filter, err = r.Foreign.Resolve(ctx, f.foreign(), v, r.Filter, "invalid_document_filter", r.Contains); err != nil {
			return nil, err
		}
	}
	if r.IDs != nil {
		f.ids = make([][]string, len(f.parts))
		for i := range f.ids {
			if f.ids[i] = []string{}; f.ring == nil {
				f.ids[i] = r.IDs
			}
		}
		for _, id := range r.IDs {
			if f.ring != nil {
				owner := f.ring.Owner([]byte(id))
				f.ids[owner] = append(f.ids[owner], id)
			}
		}
	}
	p, err := f.plan(ctx)
	if err != nil {
		return nil, err
	}
	answer := search.NewFetchAnswer(turns.Of(ctx).Account(), dst)
	if err := p.addAll(ctx, answer); err != nil {
		return nil, err
	}
	return answer.End(turns.Of(ctx), r, p.total, p.aggregations, f.errs)
}

// fetchPlan says which documents are on the page, and has those already fetched.
type fetchPlan struct {
	*networkFetch
	total   int
	windows []search.Window // by part; of documents not added yet
	order   []int           // parts of the documents on a sorted page; nil: one part after the other
	known   [][][]byte      // by part: the first documents of its window

	aggregations *aggregate.Result // of all parts; nil: not requested
}

// plan finds out which documents are on the page.
func (f *networkFetch) plan(ctx context.Context) (*fetchPlan, error) {
	r := f.request
	n := len(f.parts)
	end := r.Offset + min(r.Limit, search.MostSorted) // of a sorted page
	sorted, near := len(r.Sort) > 0, r.Offset <= nearPage && r.Limit <= nearPage-r.Offset
	first := search.Window{}
	if sorted || near {
		first.Count = end
	}
	windows := slices.Repeat([]search.Window{first}, n)
	answers, err := f.ask(ctx, windows, sorted, !near, r.Aggregations)
	if err != nil {
		return nil, err
	}
	p := &fetchPlan{networkFetch: f, known: make([][][]byte, n)}
	if r.Aggregations != nil {
		p.aggregations = r.Aggregations.New()
	}
	totals := make([]int, n)
	for i, a := range answers {
		totals[i] = a.Total
		p.total += a.Total
		if a.Aggregations != nil {
			if err := p.aggregations.Merge(turns.Of(ctx), a.Aggregations, "invalid_document_aggregations"); err != nil {
				return nil, err
			}
		}
	}
	if sorted {
		if err := f.more(ctx, answers, end, !near); err != nil {
			return nil, err
		}
		values := make([][][]rank.ScoreValue, n)
		for i, a := range answers {
			values[i] = a.Values
		}
		p.windows, p.order = search.SortedPage(values, r.Offset, r.Limit)
	} else {
		p.windows = search.Page(totals, r.Offset, r.Limit)
	}
	if near {
		for i, w := range p.windows {
			from := min(w.From, len(answers[i].Texts))
			p.known[i] = answers[i].Texts[from:min(w.From+w.Count, len(answers[i].Texts))]
		}
		return p, nil
	}
	if !slices.ContainsFunc(p.windows, func(w search.Window) bool { return w.Count > 0 }) { // the page is after the last document
		return p, nil
	}
	if answers, err = f.ask(ctx, p.windows, false, false, nil); err != nil {
		return nil, err
	}
	for i, a := range answers {
		p.known[i] = a.Texts
	}
	return p, nil
}

// more fetches the rest of the sort values of the first documents, up to the end of the page, if an answer has only a part of them.
func (f *networkFetch) more(ctx context.Context, answers []search.PeerDocuments, end int, bare bool) error {
	for {
		windows := make([]search.Window, len(answers))
		lacks := false
		for i, a := range answers {
			if n := len(a.Values); n > 0 && n < min(end, a.Total) {
				windows[i], lacks = search.Window{From: n, Count: min(end, a.Total) - n}, true
			}
		}
		if !lacks {
			return nil
		}
		rest, err := f.ask(ctx, windows, true, bare, nil)
		if err != nil {
			return err
		}
		for i := range answers {
			if a := &answers[i]; windows[i].Count > 0 {
				if len(rest[i].Values) == 0 { // fewer than there were
					a.Total = len(a.Values)
				}
				a.Values, a.Texts = append(a.Values, rest[i].Values...), append(a.Texts, rest[i].Texts...)
			}
		}
	}
}

// addAll appends the documents of the page. It does not list them: a page may have as many as all instances say that they have.
func (p *fetchPlan) addAll(ctx context.Context, answer *search.FetchAnswer) error {
	for _, part := range p.order {
		if err := p.add(ctx, answer, part); err != nil {
			return err
		}
	}
	t := turns.Of(ctx)
	for part := range p.windows { // those of a sorted page are empty by now
		for p.windows[part].Count > 0 {
			if err := t.Yield(); err != nil {
				return err
			}
			if err := p.add(ctx, answer, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// add appends the next document of a part. It skips a document that was deleted after the page was planned.
func (p *fetchPlan) add(ctx context.Context, answer *search.FetchAnswer, part int) error {
	w := &p.windows[part]
	if len(p.known[part]) == 0 && w.Count > 0 {
		windows := make([]search.Window, len(p.parts))
		windows[part] = *w
		answers, err := p.ask(ctx, windows, false, false, nil)
		if err != nil {
			return err
		}
		if p.known[part] = answers[part].Texts; len(p.known[part]) == 0 {
			w.Count = 0
		}
	}
	if w.Count == 0 {
		return nil
	}
	document := p.known[part][0]
	p.known[part] = p.known[part][1:]
	w.From++
	w.Count--
	return answer.Add(document)
}

// ask returns what each part has in its window, and nothing for parts that no instance answers for. If all windows are empty, it asks
// each part only for its number of documents; otherwise it skips parts with empty windows. Aggregations cover all documents of a
// part.
func (f *networkFetch) ask(ctx context.Context, windows []search.Window, values, bare bool, aggregations *aggregate.Request) ([]search.PeerDocuments, error) {
	all := !slices.ContainsFunc(windows, func(w search.Window) bool { return w.Count > 0 })
	var of []int // by thing: its part
	for i := range f.parts {
		if f.ids != nil && len(f.ids[i]) == 0 {
			continue
		}
		if all || windows[i].Count > 0 {
			of = append(of, i)
		}
	}
	here, remotes := f.split(of)
	answers := make([]search.PeerDocuments, len(f.parts))
	r := *f.request
	r.Values, r.Bare, r.Aggregations = values, bare, aggregations
	q := &network.ReadRequest{Message: network.Documents, Shards: make([]string, len(of))}
	for thing, part := range of {
		q.Shards[thing] = f.parts[part].Shard
	}
	q.Body = func(things []int) []byte {
		asked := r.AppendRemote(nil, f.view.UID)
		asked = append(asked[:len(asked)-1], `,"shards":[`...)
		for i, thing := range things {
			if i > 0 {
				asked = append(asked, ',')
			}
			part := of[thing]
			asked = jsontext.AppendQuoted(append(asked, `{"name":`...), q.Shards[thing])
			asked = strconv.AppendInt(append(asked, `,"offset":`...), int64(windows[part].From), 10)
			asked = strconv.AppendInt(append(asked, `,"limit":`...), int64(windows[part].Count), 10)
			if f.ids != nil {
				asked = jsontext.AppendStrings(append(asked, `,"ids":`...), f.ids[part])
			}
			asked = append(asked, '}')
		}
		return append(asked, "]}"...)
	}
	local := func() error {
		for _, thing := range here {
			part := of[thing]
			own := r
			own.Shard, own.Offset, own.Limit = q.Shards[thing], windows[part].From, windows[part].Count
			if f.ids != nil {
				own.IDs = f.ids[part]
			}
			body, err := search.AppendPeerDocuments(ctx, nil, f.view, &own, search.ReadBytes)
			if err != nil {
				return err
			}
			parsed, err := search.ParseDocuments(body, []int{own.Limit}, bare, aggregations, readingIn(ctx))
			if err != nil {
				return err
			}
			answers[part] = parsed[0]
		}
		return nil
	}
	err := f.read(ctx, q, remotes, local, func(a *network.ReadAnswer, reading *search.Reading) error {
		limits := make([]int, len(a.Things))
		for i, thing := range a.Things {
			limits[i] = windows[of[thing]].Count
		}
		parsed, err := search.ParseDocuments(a.Body, limits, bare, aggregations, reading)
		if err != nil {
			return err
		}
		for i, thing := range a.Things {
			answers[of[thing]] = parsed[i]
		}
		return nil
	})
	return answers, err
}

// getFromNetwork answers with a document of another instance. done is false if this instance owns it.
func (s *Server) getFromNetwork(ctx *fasthttp.RequestCtx, v *index.View, id []byte, r *search.FetchRequest) (done bool, err error) {
	n := s.newNetworkRead()
	if n.ring != nil {
		owner := n.ring.Owner(id)
		if n.parts[owner].Local {
			return false, nil
		}
		n.parts = n.parts[owner : owner+1]
	} else if _, _, ok := v.Find(id); ok {
		return false, nil
	}
	limited, _, err := s.turn(ctx, 1)
	if err != nil {
		return false, err
	}
	defer limited.end()
	n.errs = new(search.RemoteErrors)
	f := &networkFetch{networkRead: n, view: v, request: r, ids: slices.Repeat([][]string{{string(id)}}, len(n.parts))}
	answers, err := f.ask(limited, slices.Repeat([]search.Window{{Count: 1}}, len(n.parts)), false, false, nil)
	if err != nil {
		return false, err
	}
	for _, a := range answers {
		if len(a.Texts) > 0 {
			return true, answerWith(ctx, func(dst []byte) ([]byte, error) { return append(dst, a.Texts[0]...), nil })
		}
	}
	if e := n.errs.First(); e != nil {
		return false, e
	}
	return false, noDocument(id)
}
