package index

import (
	"cmp"
	"slices"
	"strings"
)

// MissingModel is a local model that searches of an index need, and that is not on this machine.
type MissingModel struct {
	IndexUID  string `json:"indexUid"`
	Embedder  string `json:"embedder"`
	Directory string `json:"directory"` // where its files belong
}

// MissingModels returns the models that are missing, by index and embedder. It opens no index.
func (c *Catalog) MissingModels() (all []MissingModel) {
	for _, ix := range c.all() {
		o := ix.Outline()
		for name, cfg := range o.Settings.Embedders {
			if cfg == nil {
				continue
			}
			if dir := c.options.Embedders.MissingModel(cfg); dir != "" {
				all = append(all, MissingModel{o.UID, name, dir})
			}
		}
	}
	slices.SortFunc(all, func(a, b MissingModel) int {
		return cmp.Or(strings.Compare(a.IndexUID, b.IndexUID), strings.Compare(a.Embedder, b.Embedder))
	})
	return all
}
