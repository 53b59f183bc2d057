package index

import (
	"slices"
	"strings"
)

// Suggesting returns the uids of the indexes with the setting suggestions. It looks at open indexes only, and does not count as use.
func (c *Catalog) Suggesting() (uids []string) {
	for _, ix := range c.loaded.byUse() {
		if v := ix.current.Load(); v.Settings.Suggestions != nil && !v.evicted {
			uids = append(uids, v.UID)
		}
	}
	return uids
}

// EndingWith returns the uids that end with a suffix, ascending.
func (c *Catalog) EndingWith(suffix string) (uids []string) {
	c.open.RLock()
	defer c.open.RUnlock()
	for uid := range c.open.indexes {
		if strings.HasSuffix(uid, suffix) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}
