package task

import "encoding/json"

// CancelTasks cancels those of Tasks that are unfinished when it runs. See Queue.Match.
type CancelTasks struct {
	Query string   // "?" and the raw query string that chose the tasks
	Tasks []uint32 // as chosen when the request came
}

func (CancelTasks) Kind() Kind { return TaskCancelation }

func (c CancelTasks) details(_ string, o *outcome) json.RawMessage {
	return encode(struct {
		Matched  int    `json:"matchedTasks"`
		Canceled *int   `json:"canceledTasks"`
		Filter   string `json:"originalFilter"`
	}{len(c.Tasks), o.counter(), c.Query})
}

// DeleteTasks deletes those of Tasks that are finished when it runs. See Queue.Match.
type DeleteTasks struct {
	Query   string
	Tasks   []uint32
	Deleted int // how many it has deleted so far
}

func (DeleteTasks) Kind() Kind { return TaskDeletion }

func (c DeleteTasks) details(_ string, o *outcome) json.RawMessage {
	deleted := o.counter()
	if o != nil && o.failed {
		deleted = &c.Deleted // it was canceled after that
	}
	return encode(struct {
		Matched int    `json:"matchedTasks"`
		Deleted *int   `json:"deletedTasks"`
		Filter  string `json:"originalFilter"`
	}{len(c.Tasks), deleted, c.Query})
}

func (c CancelTasks) freesQueue() bool { return len(c.Tasks) > 0 }
func (c DeleteTasks) freesQueue() bool { return len(c.Tasks) > 0 }
