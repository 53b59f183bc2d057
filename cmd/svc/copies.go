package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// copies returns the directory of dumps and the file or bucket URL of snapshots, as responses name them.
func (o *options) copies(session time.Duration) (dumps, snapshot string, err error) {
	if dumps, err = filepath.Abs(o.DumpDir); err != nil {
		return "", "", err
	}
	file := o.Snapshots.file(o.DBPath)
	if b := o.Snapshots.bucket(session); b != nil {
		return dumps, b.Address(path.Base(file)), nil
	}
	snapshot, err = filepath.Abs(file)
	return dumps, snapshot, err
}

// dumpCommand creates a dump on a running server.
type dumpCommand struct {
	remoteOptions `embed:""`

	From string `placeholder:"DIR" help:"Dump this data directory instead. No server may have it open. It may be damaged, and is not changed; the readable part is dumped."`
	Out  string `placeholder:"FILE" help:"File to write the dump of --from to. It must not exist."`
}

// Run waits for the dump and prints its path on the server's host.
func (c *dumpCommand) Run(p program) error {
	if (c.From == "") != (c.Out == "") {
		return errors.New("--from and --out must be set together: the directory to dump and the file to write")
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
	task, made, err := to.Make(ctx, http.MethodPost, "/dumps", nil)
	if err != nil {
		return err
	}
	var details struct {
		DumpUID string `json:"dumpUid"`
	}
	if err := json.Unmarshal(task.Details, &details); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, join(made.Directory, details.DumpUID+".dump"))
	return err
}

// join appends a file name to a directory of the server, which may use backslashes in paths. dir may be "".
func join(dir, name string) string {
	switch {
	case dir == "":
		return name
	case strings.Contains(dir, "/"):
		return strings.TrimSuffix(dir, "/") + "/" + name
	}
	return strings.TrimSuffix(dir, `\`) + `\` + name
}

// snapshotCommand creates a snapshot on a running server.
type snapshotCommand struct {
	remoteOptions `embed:""`
}

// Run waits for the snapshot and prints its path or URL.
func (c *snapshotCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	_, made, err := to.Make(ctx, http.MethodPost, "/snapshots", nil)
	if err != nil {
		return err
	}
	if made.File == "" { // a server that does not send the header
		_, err = fmt.Fprintln(p.err, "the snapshot is in the server's snapshot directory")
		return err
	}
	_, err = fmt.Fprintln(p.out, made.File)
	return err
}

// exportCommand sends indexes of a running server to another server.
type exportCommand struct {
	To string `arg:"" name:"to" help:"URL of the server to send to."`

	remoteOptions `embed:""`

	ToKey    string   `name:"to-key" placeholder:"KEY" help:"API key of that server (default: the environment variable SVC_TO_KEY)."`
	Indexes  []string `name:"index" placeholder:"INDEX,…" help:"Indexes to send; * at the end matches any suffix (default: all)."`
	Filter   string   `name:"filter" placeholder:"FILTER" help:"Filter for the documents to send, such as 'year > 1990' (default: all)."`
	Override bool     `name:"override-settings" help:"Replace the settings of indexes that exist there."`
	Payload  string   `name:"payload-size" placeholder:"SIZE" help:"Maximum size of a request, such as 20 MiB."`
}

// toKeyVariable is the variable with the API key of the server that receives an export.
const toKeyVariable = "SVC_TO_KEY"

// Run waits for the export and prints the number of documents sent per index.
func (c *exportCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	key := c.ToKey
	if key == "" {
		key, _ = p.getenv(toKeyVariable)
	}
	how := map[string]any{"overrideSettings": c.Override}
	if c.Filter != "" {
		how["filter"] = c.Filter
	}
	indexes := map[string]any{}
	for _, index := range c.Indexes {
		indexes[index] = how
	}
	if len(indexes) == 0 {
		indexes["*"] = how
	}
	body := map[string]any{"url": c.To, "indexes": indexes}
	if key != "" {
		body["apiKey"] = key
	}
	if c.Payload != "" {
		body["payloadSize"] = c.Payload
	}
	task, err := to.Do(ctx, http.MethodPost, "/export", body)
	if err != nil {
		return err
	}
	var details struct {
		Indexes map[string]struct {
			Matched int `json:"matched_documents"`
		} `json:"indexes"`
	}
	if err := json.Unmarshal(task.Details, &details); err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(details.Indexes)) {
		fmt.Fprintf(p.out, "%s: %s\n", uid, counted(details.Indexes[uid].Matched, "document"))
	}
	if len(details.Indexes) == 0 {
		return errors.New("no index matches --index: nothing was exported")
	}
	return nil
}

// counted formats a number with its noun, in the plural unless n is 1.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
