package index

import (
	"fmt"
	"maps"
	"slices"

	"svc/internal/apierr"
)

// Aliases are the aliases at one moment. They are immutable. A nil Aliases has none.
//
// Successive versions share a base, and each has its own changes of it. So a move costs the same however many aliases there are.
type Aliases struct {
	base  *aliasBase
	index map[string]string   // alias → uid, where it differs from base; "": deleted
	names map[string][]string // uid → its aliases, in byte order, where they are others than in base
	count int
}

// aliasBase are the aliases of the base, both ways. It is shared by all states that differ from the base, and
// never changes.
type aliasBase struct {
	index map[string]string   // alias → uid
	names map[string][]string // uid → its aliases, in byte order
}

// newAliases returns aliases by alias → uid. The map is theirs.
func newAliases(index map[string]string) *Aliases {
	if len(index) == 0 {
		return nil
	}
	base := &aliasBase{index: index, names: map[string][]string{}}
	for _, alias := range slices.Sorted(maps.Keys(index)) {
		base.names[index[alias]] = append(base.names[index[alias]], alias)
	}
	return &Aliases{base: base, count: len(index)}
}

const (
	fewMoves    = 64   // moves applied one by one to the possibly long lists of aliases
	mostChanges = 1024 // of a base; then a new base is written
)

// after returns the aliases of another moment, and a itself if they are the same. nil removes an alias.
func (a *Aliases) after(changes map[string]*string) *Aliases {
	type change struct{ alias, from, to string }
	var some []change
	for alias, uid := range changes {
		c := change{alias: alias}
		if a.Has(alias) {
			c.from = a.Index(alias)
		}
		if uid != nil {
			c.to = *uid
		}
		if c.from != c.to {
			some = append(some, c)
		}
	}
	switch {
	case len(some) == 0:
		return a
	case a == nil || len(some) > fewMoves:
		index := a.all()
		for _, c := range some {
			if index[c.alias] = c.to; c.to == "" {
				delete(index, c.alias)
			}
		}
		return newAliases(index)
	}
	next := &Aliases{base: a.base, index: maps.Clone(a.index), names: maps.Clone(a.names), count: a.count}
	if len(a.index)+len(some) > mostChanges {
		next.base = a.folded()
		next.index, next.names = nil, nil
	}
	if next.index == nil {
		next.index, next.names = map[string]string{}, map[string][]string{}
	}
	for _, c := range some { // lists are shared: each changed one is a copy
		next.index[c.alias] = c.to
		if c.from != "" {
			next.names[c.from] = with(next.Of(c.from), c.alias, false)
			next.count--
		}
		if c.to != "" {
			next.names[c.to] = with(next.Of(c.to), c.alias, true)
			next.count++
		}
	}
	if next.count == 0 {
		return nil
	}
	return next
}

// folded returns a base that has all aliases.
func (a *Aliases) folded() *aliasBase {
	base := &aliasBase{index: a.all(), names: maps.Clone(a.base.names)}
	for uid, names := range a.names {
		if base.names[uid] = names; len(names) == 0 {
			delete(base.names, uid)
		}
	}
	return base
}

// all returns the index behind each alias, in a map of the caller.
func (a *Aliases) all() map[string]string {
	if a == nil {
		return map[string]string{}
	}
	all := maps.Clone(a.base.index)
	for alias, uid := range a.index {
		if all[alias] = uid; uid == "" {
			delete(all, alias)
		}
	}
	return all
}

// changesTo returns the changes that lead to the aliases in index.
func (a *Aliases) changesTo(index map[string]string) map[string]*string {
	changes := map[string]*string{}
	for alias := range a.all() {
		if index[alias] == "" {
			changes[alias] = nil
		}
	}
	for alias, uid := range index {
		if a.uid(alias) != uid {
			changes[alias] = &uid
		}
	}
	return changes
}

// uid returns the index behind an alias, or "" if there is no such alias.
func (a *Aliases) uid(alias string) string {
	if a == nil {
		return ""
	}
	if uid, changed := a.index[alias]; changed {
		return uid
	}
	return a.base.index[alias]
}

// with returns a copy of a list of aliases with or without one.
func with(names []string, alias string, in bool) []string {
	at, found := slices.BinarySearch(names, alias)
	switch {
	case in && !found:
		return slices.Concat(names[:at], []string{alias}, names[at:])
	case !in && found:
		return slices.Concat(names[:at], names[at+1:])
	}
	return names
}

// Index returns the uid of the index behind an alias. It returns other names unchanged.
func (a *Aliases) Index(name string) string {
	if uid := a.uid(name); uid != "" {
		return uid
	}
	return name
}

// Has reports whether a name is an alias.
func (a *Aliases) Has(name string) bool { return a.uid(name) != "" }

// Of returns the aliases of an index, in byte order. The slice is shared.
func (a *Aliases) Of(uid string) []string {
	if a == nil {
		return nil
	}
	if names, changed := a.names[uid]; changed {
		return names
	}
	return a.base.names[uid]
}

// All returns all aliases, in byte order.
func (a *Aliases) All() []string {
	if a == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(a.all()))
}

// Len returns how many aliases there are.
func (a *Aliases) Len() int {
	if a == nil {
		return 0
	}
	return a.count
}

// AliasMove points an alias at an index, or removes it.
type AliasMove struct {
	Alias string
	UID   string // "": the alias is removed
}

// Aliases returns those of now.
func (c *Catalog) Aliases() *Aliases { return c.aliases.Load() }

// MoveAliases makes all moves or none, and Aliases shows all or none of them. Errors: index_not_found,
// index_already_exists, alias_not_found.
func (c *Catalog) MoveAliases(moves []AliasMove) error {
	next, _, err := c.begins(catalogChange{})
	defer c.done()
	if err != nil {
		return err
	}
	next.last = c.changing.content.last // a batch that runs again finds its own change
	for _, m := range moves {
		_, taken := next.directory(m.Alias)
		switch _, there := next.directory(m.UID); {
		case taken:
			return apierr.New("index_already_exists", "Index `%s` exists, so an alias cannot have the same name.", m.Alias)
		case m.UID == "" && next.behind(m.Alias) == "":
			return NoAlias(m.Alias)
		case m.UID == "":
			next.Aliases[m.Alias] = nil
		case !there:
			return c.Missing(m.UID)
		default:
			next.Aliases[m.Alias] = &m.UID
		}
	}
	if err := c.write(next); err != nil {
		return fmt.Errorf("cannot change aliases: %w", err)
	}
	return nil
}

// NoAlias returns the error for a name that is not an alias.
func NoAlias(alias string) *apierr.Error {
	return apierr.New("alias_not_found", "There is no alias `%s`.", alias)
}

// AliasExists returns the error for an index that would get the name of an alias.
func AliasExists(alias, uid string) error {
	return apierr.New("alias_already_exists", "`%s` is an alias of the index `%s`, so an index cannot have this uid. Delete the alias first.", alias, uid)
}

// dropAliases removes the aliases of an index.
func (d *catalogDraft) dropAliases(uid string) {
	d.eachAlias(uid, func(alias string) { d.Aliases[alias] = nil })
}

// renameAliases points the aliases of an index at its new uid.
func (d *catalogDraft) renameAliases(from, to string) {
	d.eachAlias(from, func(alias string) { d.Aliases[alias] = &to })
}
