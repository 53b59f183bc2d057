package task

import "maps"

// nameID stands for an index uid in task records. A swap of two indexes exchanges two names, and rewrites no task record.
type nameID uint32

// names maps ids to index uids and back; both directions are one to one.
// A value is immutable once readers can see it: writers clone it.
type names struct {
	texts map[nameID]string
	ids   map[string]nameID
	next  nameID
}

func newNames() *names {
	return &names{texts: map[nameID]string{}, ids: map[string]nameID{}}
}

func (n *names) clone() *names {
	return &names{maps.Clone(n.texts), maps.Clone(n.ids), n.next}
}

func (n *names) text(id nameID) string { return n.texts[id] }

func (n *names) id(uid string) (nameID, bool) {
	id, ok := n.ids[uid]
	return id, ok
}

// set names id, which replaces what id was called before.
func (n *names) set(id nameID, uid string) {
	n.texts[id] = uid
	n.ids[uid] = id
	n.next = max(n.next, id+1)
}

func (n *names) remove(id nameID) {
	uid := n.texts[id]
	delete(n.texts, id)
	if n.ids[uid] == id {
		delete(n.ids, uid)
	}
}
