package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"svc/internal/client"
)

// keyCommand lists, makes and deletes API keys.
type keyCommand struct {
	List   keyListCommand   `cmd:"" help:"List keys."`
	Create keyCreateCommand `cmd:"" help:"Create a key and print it."`
	Delete keyDeleteCommand `cmd:"" help:"Delete a key."`
}

// apiKey has the used members of a key.
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
	ShowKeys      bool `name:"show-keys" help:"Also print the values of the keys."`
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

	Actions []string `name:"action" required:"" placeholder:"ACTION,…" help:"Actions of the key, such as search,documents.add."`
	Indexes []string `name:"index" default:"*" placeholder:"INDEX,…" help:"Indexes of the key (default: all)."`
	Name    string   `name:"name" placeholder:"TEXT" help:"Name of the key."`
	Expires string   `name:"expires" placeholder:"DATE" help:"Expiry date, such as 2030-01-31 (default: never)."`

	Searches   int `name:"searches-per-second" placeholder:"N" help:"Maximum searches per second (default: no limit)."`
	Writes     int `name:"writes-per-second" placeholder:"N" help:"Maximum writing requests per second (default: no limit)."`
	Concurrent int `name:"concurrent" placeholder:"N" help:"Maximum concurrent requests (default: no limit)."`
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
	limits := map[string]int{"searchesPerSecond": c.Searches, "writesPerSecond": c.Writes, "concurrent": c.Concurrent}
	maps.DeleteFunc(limits, func(_ string, n int) bool { return n == 0 })
	if len(limits) > 0 {
		body["rateLimit"] = limits
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

	Filter     string    `name:"filter" placeholder:"FILTER" help:"Filter for the hits, such as 'year > 1990'."`
	Sort       []string  `name:"sort" placeholder:"FIELD:asc,…" help:"Sort order of the hits."`
	Facets     []string  `name:"facets" placeholder:"FIELD,…" help:"Fields to count values of."`
	Attributes []string  `name:"attributes" placeholder:"FIELD,…" help:"Fields to print (default: all)."`
	Embedder   string    `name:"embedder" placeholder:"NAME" help:"Embedder for hybrid search."`
	Ratio      *float64  `name:"semantic-ratio" placeholder:"N" help:"Weight of vectors in hybrid search, from 0 (keywords only) to 1 (vectors only) (default: 0.5). Needs --embedder."`
	Vector     []float32 `name:"vector" placeholder:"N,…" help:"Query vector, instead of one that the embedder computes. Needs --embedder."`
	Limit      int       `name:"limit" default:"20" placeholder:"N" help:"Maximum number of hits (default: ${default})."`
	Offset     int       `name:"offset" default:"0" placeholder:"N" help:"Number of hits to skip (default: ${default})."`
	All        bool      `name:"all" help:"Print all hits, whatever --limit is. Excludes --offset, --facets and --json."`
	JSON       bool      `name:"json" help:"Print the server's JSON."`
}

// countOfHits says how many hits are printed, and about how many there are if these are more.
func countOfHits(printed, total int) string {
	switch {
	case printed < total:
		return fmt.Sprintf("%d of about %d hits", printed, total)
	case printed == 1:
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", printed)
}

// Run prints a hit per line, and the number of hits and the time to standard error.
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
	if err := c.byMeaning(body); err != nil {
		return err
	}
	if c.All {
		if c.Offset > 0 || len(c.Facets) > 0 || c.JSON {
			return errors.New("--all prints every hit: leave out --offset, --facets and --json")
		}
		return c.all(ctx, p, to, body)
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
		SemanticHitCount   *int              `json:"semanticHitCount"`
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
	semantic := ""
	if found.SemanticHitCount != nil {
		semantic = fmt.Sprintf(", %d semantic", *found.SemanticHitCount)
	}
	took := "less than 1 ms"
	if found.ProcessingTimeMs > 0 {
		took = fmt.Sprintf("%d ms", found.ProcessingTimeMs)
	}
	fmt.Fprintf(p.err, "%s%s, %s\n", countOfHits(len(found.Hits), found.EstimatedTotalHits), semantic, took)
	if found.FacetDistribution != nil {
		fmt.Fprintf(p.err, "%s\n", found.FacetDistribution)
	}
	return nil
}

// hitsOfPage is how many hits are requested at a time when all are printed.
const hitsOfPage = 1000

// all prints all hits, page by page behind a cursor.
func (c *searchCommand) all(ctx context.Context, p program, to *client.Client, body map[string]any) error {
	delete(body, "offset")
	body["limit"], body["cursor"] = hitsOfPage, ""
	out := bufio.NewWriter(p.out)
	for n := 0; ; {
		var page struct {
			Hits       []json.RawMessage `json:"hits"`
			NextCursor *string           `json:"nextCursor"`
		}
		if err := to.Call(ctx, http.MethodPost, "/indexes/"+url.PathEscape(c.Index)+"/search", body, &page); err != nil {
			return err
		}
		for _, hit := range page.Hits {
			out.Write(hit)
			out.WriteByte('\n')
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if n += len(page.Hits); page.NextCursor == nil {
			fmt.Fprintf(p.err, "%d hits\n", n)
			return nil
		}
		body["cursor"] = *page.NextCursor
	}
}

// byMeaning adds the parameters of a hybrid search to the body.
func (c *searchCommand) byMeaning(body map[string]any) error {
	if c.Embedder == "" {
		if c.Ratio != nil || c.Vector != nil {
			return errors.New("--semantic-ratio and --vector need --embedder, the name of an embedder of the index")
		}
		return nil
	}
	hybrid := map[string]any{"embedder": c.Embedder}
	if c.Ratio != nil {
		if *c.Ratio < 0 || *c.Ratio > 1 {
			return fmt.Errorf("--semantic-ratio must be between 0 and 1, got %v", *c.Ratio)
		}
		hybrid["semanticRatio"] = *c.Ratio
	}
	body["hybrid"] = hybrid
	if c.Vector != nil {
		body["vector"] = c.Vector
	}
	return nil
}
