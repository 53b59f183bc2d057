package index

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"time"

	"svc/internal/apierr"
)

// suspect is an index with a file that turned out to be unusable, or with damaged columns.
type suspect struct {
	ix     *Index
	damage error
}

// suspect quarantines an index soon. It does not wait: the caller that met the damage holds a view of the index, and maybe
// locks.
func (c *Catalog) suspect(ix *Index, damage error) {
	select {
	case c.suspects <- suspect{ix, damage}:
	default: // as many wait already; it will be met again
	}
}

// quarantineSuspects quarantines indexes that turn out to be damaged, unless columns are all that is damaged and can be rebuilt. It
// ends with ctx.
func (c *Catalog) quarantineSuspects(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-c.suspects:
			if isColumns(fileOf(s.damage)) && c.rebuildColumns(ctx, s) {
				continue
			}
			var damage *apierr.Corruption
			if !errors.As(s.damage, &damage) || damage.Fatal || !isColumns(damage.File) {
				c.awaitQuarantine(ctx, s)
			}
		}
	}
}

// awaitQuarantine quarantines an index as soon as no batch is at work on it. It ends with ctx.
func (c *Catalog) awaitQuarantine(ctx context.Context, s suspect) {
	for !c.quarantineOpen(s.ix, s.damage) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fileOf returns the name of the damaged file that an error is about, or "".
func fileOf(err error) string {
	var damage *apierr.Corruption
	if errors.As(err, &damage) {
		return damage.File
	}
	return ""
}

// quarantineOpen quarantines an open index: the others continue, and it can be deleted. It returns false while a batch is running on
// it; the batch will find the damage, or remove the damaged file.
func (c *Catalog) quarantineOpen(ix *Index, damage error) bool {
	c.changing.Lock()
	defer c.changing.Unlock()
	uid := ix.UID()
	if c.Get(uid) != ix || c.changing.closed {
		return true // deleted, or in quarantine already
	}
	// Before the look at its files: a batch in between could replace the damaged one.
	if !ix.writing.TryLock() {
		return false
	}
	defer ix.writing.Unlock()
	if v := ix.current.Load(); v.evicted {
		now := ix.openWith(false)
		switch {
		case errors.Is(now, errColumns) && lasting(damage) && !isColumns(fileOf(damage)): // of what they are to be made
		case now == nil || !lasting(now) || errors.Is(now, errColumns):
			return true // repaired, or not known to be damaged
		default:
			damage = now
		}
	} else {
		name := fileOf(damage)
		if !slices.ContainsFunc(v.files, func(f *file) bool { return f.has(name) }) {
			return true // its segment was replaced meanwhile
		}
	}
	d := damagedIndex{dir: path.Join(c.dir, directoryName(c.changing.content.indexes[uid])), err: damage}
	d.readBatch(c.options.FS)
	c.open.Lock()
	delete(c.open.indexes, uid)
	c.open.damaged[uid] = d
	c.open.Unlock()
	c.met.Store(true)
	ix.closeFor(damage)
	c.options.Logger.Error("an index is quarantined: one of its files is damaged or unreadable; the others continue. Restore its directory and restart, or delete the index",
		slog.String("index", uid), slog.String("directory", d.dir), slog.Any("error", damage))
	return true
}

// Damages returns the quarantined indexes, and the number of segments with known damage of each other index.
func (c *Catalog) Damages() (quarantined []string, segments map[string]int) {
	if !c.met.Load() {
		return nil, nil
	}
	segments = make(map[string]int)
	for _, ix := range c.loaded.byUse() { // damaged indexes are not evicted
		n := 0
		for _, f := range ix.current.Load().files {
			if f.isDamaged() {
				n++
			}
		}
		if n > 0 {
			segments[ix.UID()] = n
		}
	}
	c.open.RLock()
	defer c.open.RUnlock()
	for uid := range c.open.damaged {
		quarantined = append(quarantined, uid)
	}
	slices.Sort(quarantined)
	return quarantined, segments
}
