package index

import (
	"fmt"
	"maps"
	"slices"

	"svc/internal/apierr"
)

// Aliases are the aliases of one moment. They do not change. A nil Aliases has none.
type Aliases struct {
	index map[string]string   // alias → uid
	names map[string][]string // uid → its aliases, in byte order
}

func newAliases(index map[string]string) *Aliases {
	if len(index) == 0 {
		return nil
	}
	a := &Aliases{index: index, names: map[string][]string{}}
	for _, alias := range slices.Sorted(maps.Keys(index)) {
		a.names[index[alias]] = append(a.names[index[alias]], alias)
	}
	return a
}

// fewMoves is up to how many aliases that changed are changed one by one, in lists of aliases that may be long.
const fewMoves = 64

// after returns the aliases of another moment, and a itself if they are the same. index is not changed any more.
func (a *Aliases) after(index map[string]string) *Aliases {
	if a == nil || len(index) == 0 {
		return newAliases(index)
	}
	type change struct{ alias, from, to string }
	var changes []change
	for alias, uid := range index {
		if was := a.index[alias]; was != uid {
			changes = append(changes, change{alias, was, uid})
		}
	}
	for alias, was := range a.index {
		if index[alias] == "" {
			changes = append(changes, change{alias, was, ""})
		}
	}
	switch {
	case len(changes) == 0:
		return a
	case len(changes) > fewMoves:
		return newAliases(index)
	}
	next := &Aliases{index: index, names: maps.Clone(a.names)}
	for _, c := range changes { // the lists of a are shared: each changed one is a copy
		if names := with(next.names[c.from], c.alias, false); c.from != "" && len(names) > 0 {
			next.names[c.from] = names
		} else {
			delete(next.names, c.from)
		}
		if c.to != "" {
			next.names[c.to] = with(next.names[c.to], c.alias, true)
		}
	}
	return next
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

// Index returns the uid of the index behind an alias, and what is no alias as it is.
func (a *Aliases) Index(name string) string {
	if a == nil {
		return name
	}
	if uid, ok := a.index[name]; ok {
		return uid
	}
	return name
}

// Has reports whether a name is an alias.
func (a *Aliases) Has(name string) bool { return a != nil && a.index[name] != "" }

// Of returns the aliases of an index, in byte order. The slice is shared.
func (a *Aliases) Of(uid string) []string {
	if a == nil {
		return nil
	}
	return a.names[uid]
}

// All returns all aliases, in byte order.
func (a *Aliases) All() []string {
	if a == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(a.index))
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
	next.Last = c.changing.content.Last // a batch that runs again finds its own change
	for _, m := range moves {
		_, taken := next.Indexes[m.Alias]
		switch _, there := next.Indexes[m.UID]; {
		case taken:
			return apierr.New("index_already_exists", "Index `%s` exists, so an alias cannot have the same name.", m.Alias)
		case m.UID == "" && next.Aliases[m.Alias] == "":
			return NoAlias(m.Alias)
		case m.UID == "":
			delete(next.Aliases, m.Alias)
		case !there:
			return c.Missing(m.UID)
		default:
			next.Aliases[m.Alias] = m.UID
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
func (c *catalogContent) dropAliases(uid string) {
	maps.DeleteFunc(c.Aliases, func(_, of string) bool { return of == uid })
}

// renameAliases points the aliases of an index at its new uid.
func (c *catalogContent) renameAliases(from, to string) {
	for alias, of := range c.Aliases {
		if of == from {
			c.Aliases[alias] = to
		}
	}
}
