package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"svc/internal/client"
	"svc/internal/index"
	"svc/internal/task"
)

// tasksCommand lists tasks, waits for them or cancels them.
type tasksCommand struct {
	UID []uint32 `arg:"" optional:"" help:"Task uids (default: the newest tasks)."`

	remoteOptions `embed:""`

	Index  []string `name:"index" placeholder:"INDEX,…" help:"Only tasks of these indexes."`
	Status []string `name:"status" placeholder:"STATUS,…" help:"Only tasks with these statuses: enqueued, processing, succeeded, failed, canceled."`
	Type   []string `name:"type" placeholder:"TYPE,…" help:"Only tasks of these types, such as documentAdditionOrUpdate."`
	Limit  int      `name:"limit" default:"20" placeholder:"N" help:"Maximum number of tasks (default: ${default})."`
	Wait   bool     `name:"wait" help:"Wait until the tasks have ended; the exit code tells whether all succeeded."`
	Cancel bool     `name:"cancel" help:"Cancel tasks: those with the given uids, --index, --status or --type."`
	JSON   bool     `name:"json" help:"Print the server's JSON."`
}

// query returns the parameters that select the tasks. It checks the options, so that errors name these and not the parameters of the API.
func (c *tasksCommand) query() (url.Values, error) {
	for _, uid := range c.Index {
		if uid != "*" && !index.ValidUID(uid) {
			return nil, fmt.Errorf("--index: %q is not a valid index name", uid)
		}
	}
	for _, name := range c.Status {
		if _, err := task.ParseStatus(name); err != nil {
			return nil, fmt.Errorf("--status: %q is not a status; use %s", name, strings.Join(task.StatusNames(), ", "))
		}
	}
	for _, name := range c.Type {
		if _, err := task.ParseKind(name); err != nil {
			return nil, fmt.Errorf("--type: %q is not a task type; use %s", name, strings.Join(task.KindNames(), ", "))
		}
	}
	var uids []string
	for _, uid := range c.UID {
		uids = append(uids, strconv.FormatUint(uint64(uid), 10))
	}
	query := url.Values{}
	for name, list := range map[string][]string{"indexUids": c.Index, "statuses": c.Status, "types": c.Type, "uids": uids} {
		if len(list) > 0 {
			query.Set(name, strings.Join(list, ","))
		}
	}
	switch {
	case c.Cancel && len(query) == 0:
		return nil, errors.New("--cancel needs task uids, --index, --status or --type. To cancel all unfinished tasks, add --status enqueued,processing")
	case c.Limit < 0:
		return nil, fmt.Errorf("--limit must be 0 or more, got %d", c.Limit)
	}
	return query, nil
}

// Run prints the tasks. A named task that does not exist is an error.
func (c *tasksCommand) Run(p program) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	if c.Cancel {
		ended, err := to.Do(ctx, http.MethodPost, "/tasks/cancel?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		return c.printCanceled(p.out, ended.Details)
	}
	query.Set("limit", strconv.Itoa(max(c.Limit, len(c.UID))))
	var list struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := to.Call(ctx, http.MethodGet, "/tasks?"+query.Encode(), nil, &list); err != nil {
		return err
	}
	missing := slices.Clone(c.UID)
	var failed error
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if !c.JSON && len(list.Results) > 0 {
		fmt.Fprintln(table, "UID\tSTATUS\tTYPE\tINDEX\tENQUEUED\tDURATION\tERROR")
	}
	for _, raw := range list.Results {
		t := new(client.Task)
		if err := json.Unmarshal(raw, t); err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(uid uint32) bool { return int64(uid) == t.UID })
		if c.Wait {
			if t, err = to.Wait(ctx, t.UID); err != nil {
				return err
			}
			if failed == nil {
				failed = t.Err()
			}
			if err := to.Call(ctx, http.MethodGet, "/tasks/"+strconv.FormatInt(t.UID, 10), nil, &raw); err != nil {
				return err
			}
		}
		if c.JSON {
			if err := printJSON(p.out, raw); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.UID, t.Status, t.Type, t.IndexUID, shortTime(t.EnqueuedAt), shortDuration(t.Duration), reasonOf(t))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case len(missing) > 0:
		return errors.Join(c.notThere(missing), failed)
	case len(list.Results) == 0 && !c.JSON:
		fmt.Fprintln(p.err, "no matching tasks")
	}
	return failed
}

// printCanceled prints how many tasks were canceled.
func (c *tasksCommand) printCanceled(w io.Writer, details json.RawMessage) error {
	if c.JSON {
		return printJSON(w, details)
	}
	var n struct{ MatchedTasks, CanceledTasks int }
	if err := json.Unmarshal(details, &n); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "canceled %d of %s\n", n.CanceledTasks, counted(n.MatchedTasks, "matching task"))
	return err
}

// notThere returns the error for named tasks that were not found.
func (c *tasksCommand) notThere(uids []uint32) error {
	like := ""
	if len(c.Index)+len(c.Status)+len(c.Type) > 0 {
		like = " that matches the options"
	}
	var errs []error
	for _, uid := range uids {
		errs = append(errs, fmt.Errorf("there is no task %d%s", uid, like))
	}
	return errors.Join(errs...)
}

// reasonOf returns why a task failed or is paused.
func reasonOf(t *client.Task) string {
	switch {
	case t.Error != nil:
		return t.Error.Message
	case t.Parked != nil && t.Parked.Reason != nil:
		return fmt.Sprintf("paused since %s, tried %d times: %s", shortTime(t.Parked.Since), t.Parked.Tries, t.Parked.Reason.Message)
	}
	return ""
}

// shortTime formats a time of the API in the local time zone, to the second.
func shortTime(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return at.Local().Format(time.DateTime)
}

// shortDuration formats a duration of the API, such as PT1M2.5S, as 1 min 2 s.
func shortDuration(text string) string {
	rest, ok := strings.CutPrefix(text, "PT")
	if !ok {
		return text
	}
	d, err := time.ParseDuration(strings.ToLower(rest))
	switch {
	case err != nil:
		return text
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
