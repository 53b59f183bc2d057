package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"

	"svc/internal/client"
)

// indexCommand lists, creates, changes and deletes indexes. Each command but list waits for its task.
type indexCommand struct {
	List    indexListCommand    `cmd:"" help:"List indexes."`
	Create  indexCreateCommand  `cmd:"" help:"Create an index."`
	Update  indexUpdateCommand  `cmd:"" help:"Rename an index or set its primary key."`
	Delete  indexDeleteCommand  `cmd:"" help:"Delete indexes with their documents and settings."`
	Swap    indexSwapCommand    `cmd:"" help:"Swap two indexes, so that each has the other's name."`
	Compact indexCompactCommand `cmd:"" help:"Compact an index: rewrite it without deleted documents."`
}

type indexListCommand struct {
	Names []string `arg:"" optional:"" help:"Indexes to list (default: all)."`

	remoteOptions `embed:""`

	JSON bool `name:"json" help:"Print the server's JSON."`
}

// listedIndex has the fields of an index that are listed.
type listedIndex struct {
	UID        string `json:"uid"`
	PrimaryKey string `json:"primaryKey"`
	CreatedAt  string `json:"createdAt"`
	UpdatedAt  string `json:"updatedAt"`
}

// Run prints the indexes with their numbers of documents. A named index that does not exist is an error.
func (c *indexListCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	names := c.Names
	if len(names) == 0 {
		if names, err = indexNames(ctx, to); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "NAME\tPRIMARY KEY\tDOCUMENTS\tCREATED\tUPDATED")
	}
	for _, name := range names {
		var x listedIndex
		path := "/indexes/" + url.PathEscape(name)
		if err := to.Call(ctx, http.MethodGet, path, nil, &x); err != nil {
			return errors.Join(err, table.Flush())
		}
		if c.JSON {
			if err := printJSON(p.out, x); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", x.UID, x.PrimaryKey, documentsOf(ctx, to, path), shortTime(x.CreatedAt), shortTime(x.UpdatedAt))
	}
	return table.Flush()
}

// documentsOf returns the number of documents of an index, "?" if the key does not allow to see it.
func documentsOf(ctx context.Context, to *client.Client, path string) string {
	var stats struct{ NumberOfDocuments int }
	if err := to.Call(ctx, http.MethodGet, path+"/stats", nil, &stats); err != nil {
		return "?"
	}
	return fmt.Sprint(stats.NumberOfDocuments)
}

type indexCreateCommand struct {
	Name string `arg:"" help:"Name of the index."`

	remoteOptions `embed:""`

	PrimaryKey string `name:"primary-key" placeholder:"FIELD" help:"Field with the document ids (default: inferred from the first documents)."`
}

func (c *indexCreateCommand) Run(p program) error {
	body := map[string]any{"uid": c.Name}
	if c.PrimaryKey != "" {
		body["primaryKey"] = c.PrimaryKey
	}
	return c.do(p, http.MethodPost, "/indexes", body)
}

type indexUpdateCommand struct {
	Name string `arg:"" help:"Name of the index."`

	remoteOptions `embed:""`

	Rename     string `name:"rename" placeholder:"NAME" help:"New name of the index."`
	PrimaryKey string `name:"primary-key" placeholder:"FIELD" help:"Field with the document ids. The index must be empty."`
}

func (c *indexUpdateCommand) Run(p program) error {
	body := map[string]any{}
	if c.Rename != "" {
		body["uid"] = c.Rename
	}
	if c.PrimaryKey != "" {
		body["primaryKey"] = c.PrimaryKey
	}
	if len(body) == 0 {
		return errors.New("nothing to change: give --rename or --primary-key")
	}
	return c.do(p, http.MethodPatch, "/indexes/"+url.PathEscape(c.Name), body)
}

type indexDeleteCommand struct {
	Names []string `arg:"" help:"Names of the indexes."`

	remoteOptions `embed:""`
}

// Run deletes the indexes one after the other. It continues after an error, and stops at a signal.
func (c *indexDeleteCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range c.Names {
		if ctx.Err() != nil {
			break
		}
		if _, err := to.Do(ctx, http.MethodDelete, "/indexes/"+url.PathEscape(name), nil); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

type indexSwapCommand struct {
	A string `arg:"" help:"Name of one index."`
	B string `arg:"" help:"Name of the other index."`

	remoteOptions `embed:""`
}

func (c *indexSwapCommand) Run(p program) error {
	return c.do(p, http.MethodPost, "/swap-indexes", []any{map[string]any{"indexes": []string{c.A, c.B}}})
}

type indexCompactCommand struct {
	Name string `arg:"" help:"Name of the index."`

	remoteOptions `embed:""`
}

func (c *indexCompactCommand) Run(p program) error {
	return c.do(p, http.MethodPost, "/indexes/"+url.PathEscape(c.Name)+"/compact", nil)
}

// do sends a request that becomes a task, and waits until that has succeeded.
func (o *remoteOptions) do(p program, method, path string, body any) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := o.connect(p)
	if err != nil {
		return err
	}
	_, err = to.Do(ctx, method, path, body)
	return err
}
