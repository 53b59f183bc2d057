package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"

	"svc/internal/client"
)

// analyticsCommand shows reports about searches, or deletes their data.
type analyticsCommand struct {
	Report string `arg:"" optional:"" default:"top-queries" enum:"top-queries,no-results,slow,filters" help:"top-queries, no-results, slow or filters (default: ${default})."`

	remoteOptions `embed:""`

	Index  string `name:"index" placeholder:"INDEX" help:"Only searches of this index."`
	From   string `name:"from" placeholder:"DATE" help:"Only searches since this day, or this time as RFC 3339."`
	To     string `name:"to" placeholder:"DATE" help:"Only searches until the end of this day, or this time."`
	Limit  int    `name:"limit" default:"20" placeholder:"N" help:"Maximum number of rows, up to 1000 (default: ${default})."`
	Delete bool   `name:"delete" help:"Delete the counts of these searches. Needs --index, --from or --to."`
	JSON   bool   `name:"json" help:"Print the server's JSON."`
}

// Run prints a report, a row a line.
func (c *analyticsCommand) Run(p program) error {
	query := url.Values{}
	for name, text := range map[string]string{"indexUid": c.Index, "from": c.From, "to": c.To} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if c.Delete && len(query) == 0 {
		return errors.New("--delete needs --index, --from or --to. To delete all counts, use --from 1970-01-01")
	}
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	if c.Delete {
		return to.Call(ctx, http.MethodDelete, "/analytics?"+query.Encode(), nil, nil)
	}
	query.Set("limit", strconv.Itoa(c.Limit))
	return c.print(ctx, p.out, to, "/analytics/"+c.Report+"?"+query.Encode())
}

// analyticsRow is a query or a filter of a report.
type analyticsRow struct {
	Query, Filter, IndexUID             string
	Count, NoResults                    uint64
	MeanMs, LongestMs, ClickThroughRate float64
	MeanPosition                        *float64
}

// print prints a report as a table, or as the server sent it.
func (c *analyticsCommand) print(ctx context.Context, w io.Writer, to *client.Client, path string) error {
	var answer json.RawMessage
	if err := to.Call(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, answer)
	}
	var report struct {
		Results []analyticsRow
		Other   uint64
	}
	if err := json.Unmarshal(answer, &report); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head, clicks := "QUERY", "\tCLICK-THROUGH\tPOSITION"
	if c.Report == "filters" {
		head, clicks = "FILTER", ""
	}
	fmt.Fprintf(t, "COUNT\tNO RESULTS\tMEAN MS\tLONGEST MS%s\tINDEX\t%s\n", clicks, head)
	for i := range report.Results {
		row := &report.Results[i]
		fmt.Fprintf(t, "%d\t%d\t%.1f\t%.1f", row.Count, row.NoResults, row.MeanMs, row.LongestMs)
		if clicks != "" {
			position := "-"
			if row.MeanPosition != nil {
				position = fmt.Sprintf("%.1f", *row.MeanPosition)
			}
			fmt.Fprintf(t, "\t%.1f%%\t%s", 100*row.ClickThroughRate, position)
		}
		fmt.Fprintf(t, "\t%s\t%q\n", row.IndexUID, row.Query+row.Filter)
	}
	if report.Other > 0 {
		fmt.Fprintf(t, "%d searches are for rare queries\n", report.Other)
	}
	return t.Flush()
}
