package settings

import "slices"

// readSearchable reads names and groups of names. In a list without groups, a "*" anywhere stands for all attributes.
func readSearchable(s *Settings, v value) error {
	items, err := v.items()
	if err != nil {
		return v.wrong("an array of strings, or of strings and arrays of strings")
	}
	entries := make([]SearchableEntry, len(items))
	grouped := false
	for i, item := range items {
		if entries[i], err = readSearchableEntry(item); err != nil {
			return err
		}
		grouped = grouped || !entries[i].Plain
	}
	names := searchableNames(entries)
	switch {
	case grouped:
		if err := checkGrouped(names, v); err != nil {
			return err
		}
	case slices.Contains(names, "*"):
		entries = nil
	}
	s.SearchableAttributes = entries
	return nil
}

func readSearchableEntry(v value) (SearchableEntry, error) {
	if v.raw[0] != '[' {
		name, err := v.text()
		if err != nil {
			return SearchableEntry{}, v.wrong("a string, or an array of strings for attributes with the same rank")
		}
		return SearchableEntry{Names: []string{name}, Plain: true}, nil
	}
	items, err := v.items()
	if err != nil {
		return SearchableEntry{}, err
	}
	if len(items) == 0 {
		return SearchableEntry{}, v.fail("is an empty group. Name at least one attribute, or remove the group.")
	}
	entry := SearchableEntry{Names: make([]string, len(items))}
	for i, item := range items {
		if entry.Names[i], err = item.text(); err != nil {
			return SearchableEntry{}, item.wrong("a string (groups cannot be nested)")
		}
	}
	return entry, nil
}

// checkGrouped refuses lists that contradict groups: an attribute with two ranks, or "*" beside a group.
func checkGrouped(names []string, v value) error {
	if slices.Contains(names, "*") {
		return v.fail("has \"*\" and a group. \"*\" stands for all attributes, with the same rank: send either [\"*\"] or names.")
	}
	slices.Sort(names)
	for i, name := range names[1:] {
		if name == names[i] {
			return v.fail("names %.80q twice. In a list with groups, name each attribute once.", name)
		}
	}
	return nil
}

func showSearchable(entries []SearchableEntry) any {
	if entries == nil {
		return []string{"*"}
	}
	shown := make([]any, len(entries))
	for i, entry := range entries {
		if shown[i] = entry.Names; entry.Plain {
			shown[i] = entry.Names[0]
		}
	}
	return shown
}

// searchableNames returns the names of all entries; the slice is the caller's.
func searchableNames(entries []SearchableEntry) []string {
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Names...)
	}
	return names
}
