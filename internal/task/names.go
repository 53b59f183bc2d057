package task

import (
	"maps"
	"math"
)

// nameID stands for an index uid in task records. A swap of two indexes swaps two names, and rewrites no task record.
type nameID uint32

// names maps ids to index uids and back; both directions are one to one. A value is immutable once readers can see it: writers clone it.
//
// Clones share a large table, and each has the differences from it. So a new name among 100,000 does not copy 100,000.
type names struct {
	base  nameTable // shared, never changed
	since nameTable // differences from base
	next  nameID
}

// nameTable is a part of names. In a table of differences, removed entries have the text removedText or the id removedID.
type nameTable struct {
	texts map[nameID]string
	ids   map[string]nameID
}

// Marks of differences. An index uid is never empty, and there are less than 2³² − 1 names.
const (
	removedText = ""
	removedID   = math.MaxUint32
)

func newNames() *names { return &names{since: newNameTable()} }

func newNameTable() nameTable { return nameTable{map[nameID]string{}, map[string]nameID{}} }

// clone costs about the square root of the number of names, averaged over many that are followed by one change.
func (n *names) clone() *names {
	if d := len(n.since.ids) + len(n.since.texts); d*d > len(n.base.ids) {
		return &names{n.all(), newNameTable(), n.next}
	}
	return &names{n.base, nameTable{maps.Clone(n.since.texts), maps.Clone(n.since.ids)}, n.next}
}

// all returns a table of all names.
func (n *names) all() nameTable {
	t := nameTable{make(map[nameID]string, len(n.base.texts)+len(n.since.texts)), make(map[string]nameID, len(n.base.ids)+len(n.since.ids))}
	maps.Copy(t.texts, n.base.texts)
	maps.Copy(t.ids, n.base.ids)
	for id, text := range n.since.texts {
		if t.texts[id] = text; text == removedText {
			delete(t.texts, id)
		}
	}
	for text, id := range n.since.ids {
		if t.ids[text] = id; id == removedID {
			delete(t.ids, text)
		}
	}
	return t
}

func (n *names) text(id nameID) string {
	if text, ok := n.since.texts[id]; ok {
		return text
	}
	return n.base.texts[id]
}

// id returns the number of an index uid. The differences count before the shared table.
func (n *names) id(uid string) (nameID, bool) {
	id, ok := n.since.ids[uid]
	if !ok {
		id, ok = n.base.ids[uid]
	}
	return id, ok && id != removedID
}

// each calls f for each name, in any order.
func (n *names) each(f func(uid string, id nameID)) {
	for uid, id := range n.since.ids {
		if id != removedID {
			f(uid, id)
		}
	}
	for uid, id := range n.base.ids {
		if _, differs := n.since.ids[uid]; !differs {
			f(uid, id)
		}
	}
}

// set names id, which replaces what id was called before.
func (n *names) set(id nameID, uid string) {
	n.since.texts[id] = uid
	n.since.ids[uid] = id
	n.next = max(n.next, id+1)
}

// remove removes a number, and its uid if that still leads to it: after a swap it may lead to another.
func (n *names) remove(id nameID) {
	uid := n.text(id)
	if of, ok := n.id(uid); ok && of == id {
		n.since.ids[uid] = removedID
	}
	n.since.texts[id] = removedText
}
