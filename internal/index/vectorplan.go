package index

import (
	"maps"
	"slices"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// vectorPlan is what a batch makes of one embedder.
type vectorPlan struct {
	name    string
	was, is *ViewEmbedder       // nil: it is added; it goes
	work    settings.VectorWork // on the vectors of documents that have them already
}

// all reports whether every document gets a new entry.
func (p *vectorPlan) all() bool {
	return p.is != nil && (p.was == nil || p.was.ID == p.is.ID && p.was.Binary && !p.is.Binary)
}

// recodes reports whether stored vectors become bits, or get another precision.
func (p *vectorPlan) recodes() bool {
	return p.was != nil && p.is != nil && p.was.ID == p.is.ID && !p.was.Binary && (p.is.Binary || p.is.Half != p.was.Half)
}

// moves reports whether some documents may get another entry, or be stored otherwise.
func (p *vectorPlan) moves() bool {
	return p.is == nil || p.work != settings.KeepVectors || p.was.ID != p.is.ID
}

// planVectors compares the embedders before and after the batch. It opens new and changed ones, which calls their
// providers: a batch with a failing embedder stops here.
func (b *batch) planVectors() error {
	b.embedders, b.nextID = b.base.embedders, b.base.nextEmbedder
	if b.settings == b.base.Settings {
		for _, e := range b.embedders {
			b.plans = append(b.plans, &vectorPlan{name: e.Name, was: e, is: e})
		}
		return nil
	}
	names := slices.Collect(maps.Keys(b.settings.Embedders))
	for _, e := range b.base.embedders {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	b.embedders = nil
	for _, name := range slices.Compact(names) {
		p := &vectorPlan{name: name}
		p.was, _ = b.base.Embedder(name)
		if cfg := b.settings.Embedders[name]; cfg != nil {
			if err := b.planEmbedder(p, cfg); err != nil {
				return err
			}
			b.embedders = append(b.embedders, p.is)
		}
		b.plans = append(b.plans, p)
	}
	return nil
}

// planEmbedder says what an embedder will be.
func (b *batch) planEmbedder(p *vectorPlan, cfg *settings.Embedder) error {
	asks := true
	if p.was != nil {
		p.work, asks = settings.EmbedderWork(p.was.Config, cfg)
		if !settings.SameSearchable(b.base.Settings, b.settings) && p.was.generates() && len(p.was.fragments) == 0 {
			p.work = max(p.work, settings.RenderVectors)
		}
		if p.was.Config.Equal(cfg) {
			p.is = p.was
			return nil
		}
	}
	e := &ViewEmbedder{Name: p.name, Dimensions: cfg.Dimensions, Binary: cfg.IsBinary(), Half: cfg.IsHalf(), Config: cfg, pool: b.ix.options.Embedders, opening: make(chan struct{}, 1)}
	if p.was != nil {
		e.fragments = p.was.fragments
		if !asks {
			e.Dimensions = p.was.Dimensions
		}
	}
	e.fragments = numberFragments(e.fragments, cfg.FragmentNames())
	if e.generates() {
		dimensions := e.Dimensions
		if asks {
			dimensions = 0
		}
		opened, err := e.pool.Open(b.ctx, cfg, dimensions, b.requests)
		if err != nil {
			return during(err, "opening the embedder `%s`", p.name)
		}
		e.Dimensions = opened.Dimensions()
		e.opened.Store(opened)
	}
	if e.Dimensions > segment.MaxDimensions {
		return apierr.New("invalid_settings_embedders",
			"The embedder `%s` would have %d dimensions: it can have %d at most.", p.name, e.Dimensions, segment.MaxDimensions)
	}
	p.is = e
	var err error
	switch {
	case p.was == nil:
		e.ID, err = b.newID()
	case e.Dimensions == p.was.Dimensions:
		e.ID, e.unfit = p.was.ID, p.was.unfit
	default: // vectors that were given stay where they are
		if e.generates() {
			p.work = settings.RemakeVectors
		}
		if e.ID, err = b.newID(); err == nil {
			e.unfit = b.unfitAfter(p.was, e.Dimensions)
		}
	}
	return err
}

// newID returns the next number for an embedder, or for another shape of one.
func (b *batch) newID() (segment.EmbedderID, error) {
	id := b.nextID
	if id+1 == 0 {
		return 0, apierr.New("invalid_settings_embedders",
			"The index has had %d embedders over time, the maximum. Add the documents to a new index.", id)
	}
	b.nextID++
	return id, nil
}

// unfitAfter returns the shapes of an embedder that do not fit other dimensions, and that some documents may have.
func (b *batch) unfitAfter(was *ViewEmbedder, dimensions int) []segment.EmbedderShape {
	unfit := slices.DeleteFunc(was.Shapes(), func(s segment.EmbedderShape) bool {
		return s.Dimensions == dimensions || !slices.ContainsFunc(b.base.Segments, func(l segment.Live) bool { return l.Vectors(s.ID) != nil })
	})
	slices.SortFunc(unfit, func(a, b segment.EmbedderShape) int { return int(a.ID) - int(b.ID) })
	return unfit
}

// addUnfit has embedders keep the vectors of other dimensions that a payload brings for them.
func (b *batch) addUnfit() error {
	for i, p := range b.plans {
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(b.vectors.unfit[p.name])), func(dimensions int) bool {
			return slices.ContainsFunc(p.is.Shapes(), func(s segment.EmbedderShape) bool { return s.Dimensions == dimensions })
		})
		if len(missing) == 0 {
			continue
		}
		e := &ViewEmbedder{Name: p.is.Name, ID: p.is.ID, Dimensions: p.is.Dimensions, Binary: p.is.Binary, Half: p.is.Half, Config: p.is.Config,
			unfit: slices.Clone(p.is.unfit), fragments: p.is.fragments, pool: p.is.pool, opening: make(chan struct{}, 1)}
		for _, dimensions := range missing {
			id, err := b.newID()
			if err != nil {
				return err
			}
			e.unfit = append(e.unfit, segment.EmbedderShape{ID: id, Dimensions: dimensions})
		}
		b.plans[i] = &vectorPlan{name: p.name, was: e, is: e, work: p.work}
		b.embedders = slices.Clone(b.embedders)
		b.embedders[slices.Index(b.embedders, p.is)] = e
	}
	return nil
}

// numberFragments gives names that are not in old the lowest free numbers, in order.
func numberFragments(old []fragmentEntry, names []string) []fragmentEntry {
	var list []fragmentEntry
	used := map[uint16]bool{}
	for _, f := range old {
		if slices.Contains(names, f.Name) {
			list = append(list, f)
			used[f.Number] = true
		}
	}
	next := uint16(0)
	for _, name := range names {
		if slices.ContainsFunc(list, func(f fragmentEntry) bool { return f.Name == name }) {
			continue
		}
		for used[next] {
			next++
		}
		used[next] = true
		list = append(list, fragmentEntry{name, next})
	}
	slices.SortFunc(list, func(a, b fragmentEntry) int { return int(a.Number) - int(b.Number) })
	return list
}

// shapes returns what builders need to know of the embedders.
func shapes(list []*ViewEmbedder) []segment.EmbedderShape {
	var out []segment.EmbedderShape
	for _, e := range list {
		out = append(out, e.Shapes()...)
	}
	return out
}
