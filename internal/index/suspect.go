package index

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
)

// suspect is an open index of which a file turned out not to be usable any more.
type suspect struct {
	ix     *Index
	damage *apierr.Corruption
}

// suspect has an index set aside soon. It does not wait: whoever met the damage holds a view of it, and maybe locks.
func (c *Catalog) suspect(ix *Index, damage *apierr.Corruption) {
	select {
	case c.suspects <- suspect{ix, damage}:
	default: // as many wait already; it will be met again
	}
}

// setSuspectsAside ends with ctx.
func (c *Catalog) setSuspectsAside(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-c.suspects:
			for !c.setOpenAside(s.ix, s.damage) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}
}

// setOpenAside sets an open index aside: the others go on without it, and it can be deleted. It reports false while a batch
// is at work on it, which will meet the damage, or leave it behind.
func (c *Catalog) setOpenAside(ix *Index, damage *apierr.Corruption) bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	uid := ix.UID()
	if c.Get(uid) != ix || c.changing.closed {
		return true // deleted, or aside already
	}
	v := ix.View()
	named := slices.ContainsFunc(v.files, func(f *file) bool { return f.has(damage.File) })
	v.Release()
	if !named {
		return true // its segment was replaced meanwhile
	}
	if !ix.writing.TryLock() {
		return false
	}
	defer ix.writing.Unlock()
	d := damagedIndex{dir: path.Join(c.dir, directoryName(c.changing.content.Indexes[uid])), err: damage}
	if m, err := readManifest(c.options.FS, d.dir); err == nil {
		d.nextBatch, d.results = m.NextBatch, m.Results
	}
	c.open.Lock()
	delete(c.open.indexes, uid)
	c.open.damaged[uid] = d
	c.open.Unlock()
	ix.closeFor(damage)
	c.options.Logger.Error("an index is set aside: one of its files cannot be used any more; the others go on without it. Mend its directory, or delete the index",
		slog.String("index", uid), slog.String("directory", d.dir), slog.Any("error", damage))
	return true
}

// Damages says what is damaged: which indexes were set aside, and of how many segments of each of the others damage is known.
func (c *Catalog) Damages() (aside []string, segments map[string]int) {
	if !c.met.Load() {
		return nil, nil
	}
	segments = make(map[string]int)
	for _, ix := range c.all() {
		v := ix.View()
		n := 0
		for _, f := range v.files {
			if f.isDamaged() {
				n++
			}
		}
		v.Release()
		if n > 0 {
			segments[ix.UID()] = n
		}
	}
	c.open.RLock()
	defer c.open.RUnlock()
	for uid := range c.open.damaged {
		aside = append(aside, uid)
	}
	slices.Sort(aside)
	return aside, segments
}
