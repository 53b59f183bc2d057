package task

// class is a task as auto-batching sees it.
type class uint8

const (
	addition class = iota
	byIDs
	byFilter
	byCommitted // a deletion that finds committed documents only, by a filter or of expired ones
	clearing
	settingsClass
	indexDeletion
	ruleUpdate
	ruleClear
	unbatched // creation, update, swap, edit, compaction and all global kinds
)

// mode is the kind of work that the tasks of a batch add up to so far. Its numbers are stored.
type mode uint8

const (
	additions     mode = iota // and deletions by id
	idDeletions               // only
	deletions                 // by id and filter
	clears                    // all documents go: payloads are not read
	settingsMode              // settings updates
	settingsClear             // deletions first, then settings
	removal                   // the index goes
	single                    // one unbatched task
	ruleUpdates               // of search rules
	ruleClears                // of search rules
	mixed                     // additions and deletions by id and filter, in their order
)

// firstMode is the mode of a batch of one task.
var firstMode = [...]mode{
	addition: additions, byIDs: idDeletions, byFilter: deletions, byCommitted: deletions, clearing: clears,
	settingsClass: settingsMode, indexDeletion: removal, ruleUpdate: ruleUpdates, ruleClear: ruleClears, unbatched: single,
}

const closes = ^mode(0)

// joins is the table of auto-batching: the mode that a batch gets when a task of a class joins, or closes.
var joins = [...][unbatched + 1]mode{
	//             addition, ids,       filter,   committed filter, delete-all, settings, index deletion, rule update, rule clear, unbatched
	additions:     {additions, additions, mixed, closes, clears, closes, removal, closes, closes, closes},
	idDeletions:   {additions, idDeletions, deletions, deletions, clears, closes, removal, closes, closes, closes},
	deletions:     {mixed, deletions, deletions, deletions, clears, closes, removal, closes, closes, closes},
	clears:        {closes, clears, clears, clears, clears, closes, removal, closes, closes, closes},
	settingsMode:  {closes, closes, closes, closes, settingsClear, settingsMode, removal, closes, closes, closes},
	settingsClear: {closes, settingsClear, settingsClear, settingsClear, settingsClear, settingsClear, removal, closes, closes, closes},
	removal:       {closes, closes, closes, closes, closes, closes, closes, closes, closes, closes},
	single:        {closes, closes, closes, closes, closes, closes, closes, closes, closes, closes},
	ruleUpdates:   {closes, closes, closes, closes, closes, closes, closes, ruleUpdates, closes, closes},
	ruleClears:    {closes, closes, closes, closes, closes, closes, closes, closes, ruleClears, closes},
	// Payloads before a delete-all are not read, but a filter may have counted their documents.
	mixed: {mixed, mixed, mixed, closes, closes, closes, removal, closes, closes, closes},
}

// Reasons for which a batch takes no more tasks, as the API shows them.
const (
	reasonEmptyQueue  = "no other task was waiting"
	reasonEmptyIndex  = "no other task of this index was waiting"
	reasonCount       = "the batch reached the largest number of tasks"
	reasonSize        = "the next payload would have made the batch too large"
	reasonAlone       = "tasks of type %s run one by one"
	reasonMixed       = "a task of type %s does not batch with the previous ones"
	reasonWrongKey    = "the task names a primary key that the index does not have"
	reasonIndexKey    = "the next task names another primary key than the index has"
	reasonBatchKey    = "the next task names another primary key than the batch"
	reasonInference   = "the next task names a primary key, but the batch infers one from its documents"
	reasonMayCreate   = "the next task may create the index, but the previous ones may not"
	reasonDeleted     = "the index is deleted"
	reasonAllTogether = "all waiting tasks of type %s run together"
)

// plan is the work of a batch. The journal stores it while the batch runs, so a run after a crash does the same work, whatever the
// partly changed indexes would suggest.
type plan struct {
	Mode       mode   `json:"mode"`
	Index      string `json:"index,omitempty"`
	Existed    bool   `json:"existed,omitempty"`    // the index, before the batch
	Create     bool   `json:"create,omitempty"`     // the batch creates the index
	PrimaryKey string `json:"primaryKey,omitempty"` // of the additions; ""; the index's own, or to be inferred
	WrongKey   bool   `json:"wrongKey,omitempty"`   // the only task asks for another key than the index has, or can have
	Documents  int    `json:"documents,omitempty"`  // in the index before the batch
	NewExisted bool   `json:"newExisted,omitempty"` // of a rename: the new uid was taken
	Strategy   string `json:"strategy"`

	uncounted error // the index's documents could not be counted; not set for a batch that a crash interrupted, which uses the recorded count
}

// folder grows a batch from the left.
type folder struct {
	plan
	key       string // primary key of the index before the batch
	additions int
}

// newFolder begins a batch with its first task.
func newFolder(t *Task, state indexState, exists bool) *folder {
	f := &folder{key: state.primaryKey}
	f.Mode, f.Index = firstMode[classOf(t.Content)], t.IndexUID
	f.Existed, f.Documents, f.uncounted = exists, state.documents, state.uncounted
	f.Create = !exists && mayCreate(t.Content)
	if c, ok := t.Content.(AddDocuments); ok {
		f.additions = 1
		f.PrimaryKey = c.PrimaryKey
		f.WrongKey = c.EmptyKey || f.key != "" && c.PrimaryKey != "" && c.PrimaryKey != f.key
	}
	return f
}

// join takes the next task into the batch, or says why not.
func (f *folder) join(t *Task) (joined bool, reason string) {
	if f.WrongKey {
		return false, reasonWrongKey
	}
	m := joins[f.Mode][classOf(t.Content)]
	if m == closes {
		if f.Mode == removal {
			return false, reasonDeleted
		}
		return false, reasonMixed
	}
	if !f.Existed && !f.Create && mayCreate(t.Content) {
		return false, reasonMayCreate
	}
	if c, ok := t.Content.(AddDocuments); ok {
		if c.EmptyKey {
			return false, reasonWrongKey
		}
		if reason := f.keyDiffers(c.PrimaryKey); reason != "" {
			return false, reason
		}
		if f.additions == 0 {
			f.PrimaryKey = c.PrimaryKey
		}
		f.additions++
	}
	f.Mode = m
	return true, ""
}

// keyDiffers says why an addition with a primary key can't join; "" when it can.
func (f *folder) keyDiffers(key string) string {
	switch {
	case key == "" || key == f.key:
	case f.key != "":
		return reasonIndexKey
	case f.additions == 0 || key == f.PrimaryKey:
	case f.PrimaryKey == "":
		return reasonInference
	default:
		return reasonBatchKey
	}
	return ""
}
