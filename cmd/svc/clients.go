package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"svc/internal/client"
)

// dumpCommand has a running server make a dump.
type dumpCommand struct {
	remoteOptions `embed:""`

	From string `placeholder:"DIR" help:"Dump this data directory instead, which no server has open. It is only read, and may be damaged: what is readable comes out."`
	Out  string `placeholder:"FILE" help:"Where the dump of --from goes. The file must not exist."`
}

// Run waits for the dump and prints its name, without .dump.
func (c *dumpCommand) Run(p program) error {
	if (c.From == "") != (c.Out == "") {
		return errors.New("--from and --out go together: the directory, and the file that its dump is written to")
	}
	ctx, stop := untilStopped()
	defer stop()
	if c.From != "" {
		return c.salvage(ctx, p)
	}
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	task, err := to.Do(ctx, http.MethodPost, "/dumps", nil)
	if err != nil {
		return err
	}
	var details struct {
		DumpUID string `json:"dumpUid"`
	}
	if err := json.Unmarshal(task.Details, &details); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, details.DumpUID)
	return err
}

// tasksCommand lists tasks, waits for them or cancels them.
type tasksCommand struct {
	UID []int64 `arg:"" optional:"" help:"Numbers of tasks (default: the newest)."`

	remoteOptions `embed:""`

	Index  string `name:"index" placeholder:"INDEXES" help:"Of these indexes alone, with commas between them."`
	Status string `name:"status" placeholder:"STATUSES" help:"With these statuses alone: enqueued, processing, succeeded, failed, canceled."`
	Type   string `name:"type" placeholder:"TYPES" help:"Of these types alone, such as documentAdditionOrUpdate."`
	Limit  int    `name:"limit" default:"20" placeholder:"N" help:"So many at most (default: ${default})."`
	Wait   bool   `name:"wait" help:"Wait until the tasks have ended; the exit code tells whether all succeeded."`
	Cancel bool   `name:"cancel" help:"Cancel them. What they are must be said."`
	JSON   bool   `name:"json" help:"Print what the server answers."`
}

func (c *tasksCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	query := url.Values{}
	for name, value := range map[string]string{"indexUids": c.Index, "statuses": c.Status, "types": c.Type, "uids": joinNumbers(c.UID)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if c.Cancel {
		task, err := to.Do(ctx, http.MethodPost, "/tasks/cancel?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		return printJSON(p.out, task.Details)
	}
	query.Set("limit", strconv.Itoa(c.Limit))
	var list struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := to.Call(ctx, http.MethodGet, "/tasks?"+query.Encode(), nil, &list); err != nil {
		return err
	}
	var failed error
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "UID\tSTATUS\tTYPE\tINDEX\tENQUEUED\tDURATION\tERROR")
	}
	for _, raw := range list.Results {
		task := new(client.Task)
		if err := json.Unmarshal(raw, task); err != nil {
			return err
		}
		if c.Wait {
			if task, err = to.Wait(ctx, task.UID); err != nil {
				return err
			}
			if failed == nil {
				failed = task.Err()
			}
			if err := to.Call(ctx, http.MethodGet, "/tasks/"+strconv.FormatInt(task.UID, 10), nil, &raw); err != nil {
				return err
			}
		}
		if c.JSON {
			if err := printJSON(p.out, raw); err != nil {
				return err
			}
			continue
		}
		reason := ""
		if task.Error != nil {
			reason = task.Error.Message
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", task.UID, task.Status, task.Type, task.IndexUID, task.EnqueuedAt, task.Duration, reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return failed
}

func joinNumbers(list []int64) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return strings.Join(texts, ",")
}

// keyCommand lists, makes and deletes API keys.
type keyCommand struct {
	List   keyListCommand   `cmd:"" help:"Print the keys."`
	Create keyCreateCommand `cmd:"" help:"Make a key and print it."`
	Delete keyDeleteCommand `cmd:"" help:"Delete a key."`
}

// apiKey is what is read of a key.
type apiKey struct {
	UID       string   `json:"uid"`
	Key       string   `json:"key"`
	Name      string   `json:"name"`
	Actions   []string `json:"actions"`
	Indexes   []string `json:"indexes"`
	ExpiresAt string   `json:"expiresAt"`
}

type keyListCommand struct {
	remoteOptions `embed:""`
	ShowKeys      bool `name:"show-keys" help:"Print the keys themselves, too."`
}

func (c *keyListCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "UID\tNAME\tACTIONS\tINDEXES\tEXPIRES")
	if c.ShowKeys {
		fmt.Fprint(table, "\tKEY")
	}
	fmt.Fprintln(table)
	for offset := 0; ; {
		var page struct {
			Results []apiKey `json:"results"`
		}
		if err := to.Call(ctx, http.MethodGet, fmt.Sprintf("/keys?limit=100&offset=%d", offset), nil, &page); err != nil {
			return err
		}
		if len(page.Results) == 0 {
			return table.Flush()
		}
		offset += len(page.Results)
		for _, k := range page.Results {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s", k.UID, k.Name, strings.Join(k.Actions, ","), strings.Join(k.Indexes, ","), k.ExpiresAt)
			if c.ShowKeys {
				fmt.Fprintf(table, "\t%s", k.Key)
			}
			fmt.Fprintln(table)
		}
	}
}

type keyCreateCommand struct {
	remoteOptions `embed:""`

	Actions []string `name:"action" required:"" placeholder:"ACTION,…" help:"What it allows, such as search,documents.add."`
	Indexes []string `name:"index" default:"*" placeholder:"INDEX,…" help:"Where (default: every index)."`
	Name    string   `name:"name" placeholder:"TEXT" help:"Name of the key."`
	Expires string   `name:"expires" placeholder:"DATE" help:"When it ends to be valid, such as 2030-01-31 (default: never)."`
}

func (c *keyCreateCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	body := map[string]any{"actions": c.Actions, "indexes": c.Indexes, "expiresAt": nil}
	if c.Name != "" {
		body["name"] = c.Name
	}
	if c.Expires != "" {
		body["expiresAt"] = c.Expires
	}
	var key apiKey
	if err := to.CallOnce(ctx, http.MethodPost, "/keys", body, &key); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, key.Key)
	return err
}

type keyDeleteCommand struct {
	Which string `arg:"" name:"which" help:"The key, or its uid."`

	remoteOptions `embed:""`
}

func (c *keyDeleteCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	return to.CallOnce(ctx, http.MethodDelete, "/keys/"+url.PathEscape(c.Which), nil, nil)
}

// searchCommand searches an index.
type searchCommand struct {
	Index string   `arg:"" help:"Index to search."`
	Query []string `arg:"" optional:"" help:"Words to look for (default: every document)."`

	remoteOptions `embed:""`

	Filter     string   `name:"filter" placeholder:"FILTER" help:"What hits must be like, such as 'year > 1990'."`
	Sort       []string `name:"sort" placeholder:"FIELD:asc,…" help:"What they are sorted by."`
	Facets     []string `name:"facets" placeholder:"FIELD,…" help:"Fields whose values are counted."`
	Attributes []string `name:"attributes" placeholder:"FIELD,…" help:"Fields to print (default: all)."`
	Limit      int      `name:"limit" default:"20" placeholder:"N" help:"Hits at most (default: ${default})."`
	Offset     int      `name:"offset" default:"0" placeholder:"N" help:"Hits to leave out (default: ${default})."`
	JSON       bool     `name:"json" help:"Print the whole answer."`
}

// Run prints a hit a line, and on standard error how many there are and how long it took.
func (c *searchCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	body := map[string]any{"q": strings.Join(c.Query, " "), "limit": c.Limit, "offset": c.Offset}
	if c.Filter != "" {
		body["filter"] = c.Filter
	}
	for name, list := range map[string][]string{"sort": c.Sort, "facets": c.Facets, "attributesToRetrieve": c.Attributes} {
		if len(list) > 0 {
			body[name] = list
		}
	}
	var answer json.RawMessage
	if err := to.Call(ctx, http.MethodPost, "/indexes/"+url.PathEscape(c.Index)+"/search", body, &answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.out, answer)
	}
	var found struct {
		Hits               []json.RawMessage `json:"hits"`
		EstimatedTotalHits int               `json:"estimatedTotalHits"`
		ProcessingTimeMs   int               `json:"processingTimeMs"`
		FacetDistribution  json.RawMessage   `json:"facetDistribution"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return err
	}
	for _, hit := range found.Hits {
		if _, err := fmt.Fprintf(p.out, "%s\n", hit); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.err, "%d of about %d hits, %d ms\n", len(found.Hits), found.EstimatedTotalHits, found.ProcessingTimeMs)
	if found.FacetDistribution != nil {
		fmt.Fprintf(p.err, "%s\n", found.FacetDistribution)
	}
	return nil
}
