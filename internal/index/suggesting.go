package index

// Suggesting returns the uids of the indexes with the setting suggestions. It looks at open indexes only, and does not count as use.
func (c *Catalog) Suggesting() (uids []string) {
	for _, ix := range c.loaded.byUse() {
		if v := ix.current.Load(); v.Settings.Suggestions != nil && !v.evicted {
			uids = append(uids, v.UID)
		}
	}
	return uids
}
