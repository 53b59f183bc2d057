package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"text/tabwriter"
	"time"

	"svc/fastapi"
	"svc/internal/auth"
	"svc/internal/bucket"
	"svc/internal/group"
	"svc/internal/outbound"
	"svc/internal/publish"
	"svc/internal/task"
	"svc/internal/vfs"
)

// publishOptions say where the history of the data directory is published to.
type publishOptions struct {
	To        string        `name:"publish" placeholder:"URL" help:"Bucket for a continuous backup of the data directory: s3://bucket/prefix or file:///directory (default: none)."`
	Keep      days          `name:"publish-keep" default:"7d" placeholder:"TIME" help:"How long a point in time can be restored, such as 30d or 12h (default: ${default})."`
	Interval  time.Duration `name:"publish-interval" default:"1s" placeholder:"TIME" help:"Time between two uploads of changes, and with --follow between two looks for them (default: ${default})."`
	Rate      size          `name:"publish-rate" default:"0" placeholder:"SIZE" help:"Maximum upload rate, in bytes per second; 0 is no limit (default: ${default})."`
	Verify    days          `name:"publish-verify" default:"90d" placeholder:"TIME" help:"Time in which each file is read once from the bucket and compared, such as 30d; 0d reads none (default: ${default})."`
	Follow    string        `name:"follow" placeholder:"URL" help:"Bucket that another server publishes to: this one follows it, and answers reads from its copy of the data (default: none)."`
	Writer    string        `name:"follow-writer" placeholder:"URL" help:"Server that publishes, such as http://10.0.0.1:7700: a server with --follow forwards writes to it (default: writes are refused)."`
	Endpoint  string        `name:"publish-endpoint" placeholder:"URL" help:"Store of --publish or --follow that speaks S3 and has the bucket, such as https://s3.eu-west-3.amazonaws.com."`
	Region    string        `name:"publish-region" placeholder:"REGION" help:"Region of that store."`
	AccessKey string        `name:"publish-access-key" placeholder:"KEY" help:"Access key of that store."`
	SecretKey string        `name:"publish-secret-key" placeholder:"KEY" help:"Secret key of that store."`
}

// validate refuses options that do not fit together.
func (o *publishOptions) validate() error {
	switch {
	case o.Interval < 10*time.Millisecond || o.Interval > time.Hour:
		return errors.New("--publish-interval must be between 10ms and 1h")
	case o.Verify != 0 && time.Duration(o.Verify) < time.Hour:
		return errors.New("--publish-verify must be at least 1h, or 0d")
	case o.To != "" && o.Follow != "":
		return errors.New("--publish and --follow exclude each other: a server that follows a publication makes no changes of its own")
	case o.Follow == "" && o.Writer != "":
		return errors.New("--follow-writer needs --follow with a bucket")
	case o.Follow != "":
		if _, err := o.store(o.Follow, nil); err != nil {
			return fmt.Errorf("--follow: %w", err)
		}
		if _, err := o.writer(); err != nil {
			return fmt.Errorf("--follow-writer: %w", err)
		}
	case o.To != "":
		if _, err := o.store(o.To, nil); err != nil {
			return fmt.Errorf("--publish: %w", err)
		}
	case o.Endpoint != "" || o.AccessKey != "" || o.SecretKey != "":
		return errors.New("--publish-endpoint, --publish-access-key and --publish-secret-key need --publish or --follow with a bucket")
	}
	return nil
}

// store returns a bucket.
func (o *publishOptions) store(url string, transport http.RoundTripper) (bucket.Store, error) {
	return bucket.Open(bucket.Options{URL: url, Endpoint: o.Endpoint, Region: o.Region, AccessKey: o.AccessKey, SecretKey: o.SecretKey, Transport: transport})
}

// publication is the part of a server that publishes; nil: it does not.
type publication struct {
	*publish.Publisher
	transport *http.Transport
}

// publish begins to publish the directory of a writer.
func (o *options) publish(w *groupWriter, queue *task.Queue, keys *auth.Keys, log *slog.Logger) (*publication, error) {
	if o.Publish.To == "" {
		return nil, nil
	}
	return o.publishFeed(w.Feed(), queue, keys, log)
}

// publishReign begins to publish the data of a group, for as long as a voter leads it; nil: the group is not published.
func (o *options) publishReign(v *group.Voter, queue *task.Queue, keys *auth.Keys, log *slog.Logger) (*publication, error) {
	if o.Publish.To == "" {
		return nil, nil
	}
	feed, err := v.Feed()
	if err != nil {
		return nil, err
	}
	return o.publishFeed(feed, queue, keys, log)
}

// publishFeed begins to publish what a feed has, and closes it in the end.
func (o *options) publishFeed(feed publish.Feed, queue *task.Queue, keys *auth.Keys, log *slog.Logger) (*publication, error) {
	transport := o.AllowedNetworks.Transport()
	store, err := o.Publish.store(o.Publish.To, transport)
	if err != nil {
		return nil, errors.Join(err, feed.Close())
	}
	return &publication{publish.Start(publish.Options{
		Store: store, Feed: feed, Stores: groupStores{o.DBPath, queue, keys}, MasterKey: o.MasterKey,
		Keep: time.Duration(o.Publish.Keep), Verify: time.Duration(o.Publish.Verify), Rate: int64(o.Publish.Rate), Interval: o.Publish.Interval, Now: time.Now, Logger: log,
	}), transport}, nil
}

// publisher returns what the API tells of the publication.
func (p *publication) publisher() fastapi.Publisher {
	if p == nil {
		return nil
	}
	return p.Publisher
}

func (p *publication) Close() error {
	if p == nil {
		return nil
	}
	defer p.transport.CloseIdleConnections()
	return p.Publisher.Close()
}

// restoreCommand restores a publication as a data directory, or as an index of a running server.
type restoreCommand struct {
	From      string `name:"from" placeholder:"URL" help:"Bucket that a server published to: s3://bucket/prefix or file:///directory (default: --publish of a server with this environment and configuration file, as for the options of the store)."`
	To        string `name:"to" placeholder:"DIR" help:"Data directory to create. It must be empty or missing. With --index, a directory for the files on the way (default: that for temporary files)."`
	At        string `name:"at" placeholder:"MOMENT" help:"What to restore: a time such as 2026-01-31T12:00:00Z, or a position such as 1.2.345 (default: the last position)."`
	List      bool   `name:"list" help:"List what can be restored, and restore nothing."`
	Verify    bool   `name:"verify" help:"Read and compare all objects of the bucket, or those that --at needs. List what is damaged, and restore nothing."`
	Endpoint  string `name:"endpoint" placeholder:"URL" help:"Endpoint of the S3 store with the bucket."`
	Region    string `name:"region" placeholder:"REGION" help:"Region of that store."`
	AccessKey string `name:"access-key" placeholder:"KEY" help:"Access key of that store."`
	SecretKey string `name:"secret-key" placeholder:"KEY" help:"Secret key of that store."`
	MasterKey string `name:"master-key" placeholder:"KEY" help:"Master key of the server that published."`

	restoreIndexOptions `embed:""`
	remoteOptions       `embed:""`
}

// Run restores, or lists.
func (c *restoreCommand) Run(p program) error {
	if ctx, err := p.parse([]string{serveName}); err == nil {
		server := serverOptions(ctx)
		if c.MasterKey == "" {
			c.MasterKey = server.MasterKey
		}
		if c.From == "" {
			c.From = server.Publish.To
		}
		if c.Endpoint == "" && c.AccessKey == "" && c.SecretKey == "" {
			c.Endpoint, c.Region, c.AccessKey, c.SecretKey = server.Publish.Endpoint, server.Publish.Region, server.Publish.AccessKey, server.Publish.SecretKey
		}
	}
	switch {
	case c.From == "":
		return errors.New("set --from to the bucket that a server published to")
	case c.Index == "" && (c.As != "" || c.Replace || c.URL != "" || c.Key != ""):
		return errors.New("--as, --replace, --url and --key need --index with the name of an index")
	case c.To == "" && c.Index == "" && !c.List && !c.Verify:
		return errors.New("set --to to the data directory to create, or --index to the index to restore into a running server, or list with --list what can be restored")
	}
	target, err := publish.ParseTarget(c.At)
	if err != nil {
		return fmt.Errorf("--at: %w", err)
	}
	ctx, stop := untilStopped()
	defer stop()
	transport := outbound.Any().Transport()
	defer transport.CloseIdleConnections()
	store, err := bucket.Open(bucket.Options{URL: c.From, Endpoint: c.Endpoint, Region: c.Region, AccessKey: c.AccessKey, SecretKey: c.SecretKey, Transport: transport})
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	archive, err := publish.Open(ctx, store, c.MasterKey)
	if err != nil {
		return err
	}
	if c.List {
		ranges, err := archive.Ranges(ctx)
		if err != nil {
			return err
		}
		return listRanges(p.out, ranges)
	}
	if c.Verify {
		return c.verify(ctx, p, archive, target)
	}
	if c.Index != "" {
		return c.restoreIndex(ctx, p, archive, target)
	}
	made, err := archive.Restore(ctx, publish.RestoreOptions{FS: vfs.OS, Dir: c.To, Target: target, Logger: slog.New(slog.NewTextHandler(p.err, nil))})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s has the data of %s, position %v: %d files of %d bytes.\nStart svc on it with --db-path %s and the same master key, and publish to another prefix from then on.\n",
		c.To, made.At.UTC().Format(time.RFC3339Nano), made.Position, made.Files, made.Bytes, c.To)
	return err
}

// verify reads the publication and prints its damaged objects, one per line.
func (c *restoreCommand) verify(ctx context.Context, p program, archive *publish.Archive, target publish.Target) error {
	o := publish.VerifyOptions{Damaged: func(d publish.Damage) {
		what := d.Object
		if d.File != "" {
			what += " (" + d.File + ")"
		}
		fmt.Fprintf(p.out, "damaged: %s, which positions %v to %v need: %v\n", what, d.From, d.To, d.Err)
	}}
	if c.At != "" {
		o.Target = &target
	}
	v, err := archive.Verify(ctx, o)
	if err != nil {
		return err
	}
	if v.Damaged > 0 {
		return fmt.Errorf("missing or damaged: %s, listed above", counted(v.Damaged, "object"))
	}
	_, err = fmt.Fprintf(p.out, "%s intact, with files of %d bytes\n", counted(v.Objects, "object"), v.Bytes)
	return err
}

// listRanges prints what can be restored, a line for each run of the server.
func listRanges(w io.Writer, ranges []publish.Range) error {
	if len(ranges) == 0 {
		_, err := fmt.Fprintln(w, "nothing can be restored yet: the first upload has not finished")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tTO\tFIRST POSITION\tLAST POSITION\tIMAGES")
	for _, r := range ranges {
		fmt.Fprintf(t, "%s\t%s\t%v\t%v\t%d\n", r.Begin.UTC().Format(time.RFC3339), r.End.UTC().Format(time.RFC3339), r.From, r.To, r.Images)
	}
	return t.Flush()
}
