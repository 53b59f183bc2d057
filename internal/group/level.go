package group

// Voters of two versions of svc work together. The level of a voter is the newest version of entries (proposalVersion) that it reads.
// It announces its level when it connects. A leader writes entries of a level that all voters read, so a new version is used once the
// last voter supports it. A voter that receives an entry above its level stops following. A downgrade below that level is not
// possible. The levels of readers do not count: voters refuse a reader that does not read their entries.

// maxLevels limits how many members' levels are kept, including those of former members.
const maxLevels = 1000

// learn notes the level of another member.
func (v *Voter) learn(h *hello) {
	if !memberForm(h.Member) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.levels) >= maxLevels {
		clear(v.levels)
		clear(v.runs)
	}
	v.runs[h.Member] = h.Run
	v.levels[h.Member] = max(1, h.Level)
}

// written returns the level of the entries that this voter would write. A reader has to read it.
func (v *Voter) written() byte {
	if v.current() == nil {
		return 1
	}
	return v.level()
}

// level returns the newest level that all members read, as far as this one has heard of them.
func (v *Voter) level() byte {
	all := v.node.Members()
	v.mu.Lock()
	defer v.mu.Unlock()
	least := v.o.level
	for _, m := range all {
		if m.ID != v.id.Member {
			least = min(least, max(1, v.levels[m.ID]))
		}
	}
	return least
}
