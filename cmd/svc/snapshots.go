package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"svc/internal/dump"
	"svc/internal/task"
)

// snapshotOptions say when snapshots are made, and where they go.
type snapshotOptions struct {
	Dir          string   `name:"snapshot-dir" default:"snapshots/" placeholder:"DIR" help:"Directory of snapshots (default: ${default})."`
	Schedule     schedule `name:"schedule-snapshot" placeholder:"SECONDS" help:"Create a snapshot at this interval, as in --schedule-snapshot=3600 (without a value: every day; default: none)."`
	NoCompaction bool     `name:"experimental-no-snapshot-compaction" help:"Copy the task queue with its free pages."`

	BucketURL    string `name:"s3-bucket-url" placeholder:"URL" help:"S3 store to upload snapshots to, instead of --snapshot-dir, such as https://s3.eu-west-3.amazonaws.com."`
	BucketRegion string `name:"s3-bucket-region" placeholder:"REGION" help:"Region of the store."`
	BucketName   string `name:"s3-bucket-name" placeholder:"BUCKET" help:"Bucket in the store."`
	Prefix       string `name:"s3-snapshot-prefix" placeholder:"PATH" help:"Prefix of the object names of snapshots."`
	AccessKey    string `name:"s3-access-key" placeholder:"KEY" help:"Access key of the store."`
	SecretKey    string `name:"s3-secret-key" placeholder:"KEY" help:"Secret key of the store."`
	RoleARN      string `name:"experimental-s3-role-arn" placeholder:"ARN" help:"Role to assume instead of using keys."`
	TokenFile    string `name:"experimental-s3-web-identity-token-file" placeholder:"FILE" help:"File with the web identity token of the role."`
	InFlight     int    `name:"experimental-s3-max-in-flight-parts" default:"10" placeholder:"N" help:"Parts of a snapshot that are uploaded at once (default: ${default})."`
	Level        int    `name:"experimental-s3-compression-level" default:"0" placeholder:"LEVEL" help:"Compression of uploaded snapshots, 0 (none) to 9 (default: ${default})."`
	Signature    int    `name:"experimental-s3-signature-duration-seconds" default:"28800" placeholder:"SECONDS" help:"No effect (default: ${default}): svc signs each request when it sends it."`
	PartSize     size   `name:"experimental-s3-multipart-part-size" default:"375 MiB" placeholder:"SIZE" help:"Size of a part, 10 MiB to 5 GiB (default: ${default}). Each part in flight needs this much disk space."`
}

// tokenDuration is the variable for the seconds that a session of the role lasts.
const tokenDuration = "SVC_EXPERIMENTAL_S3_WEB_IDENTITY_TOKEN_DURATION_SECONDS"

// validate refuses a store of snapshots that is named in part, or has two kinds of credentials.
func (o *snapshotOptions) validate() error {
	place := []string{o.BucketURL, o.BucketRegion, o.BucketName, o.Prefix}
	given := 0
	for _, s := range place {
		if s != "" {
			given++
		}
	}
	keys, role := o.AccessKey != "" || o.SecretKey != "", o.RoleARN != "" || o.TokenFile != ""
	switch {
	case given == 0 && !keys && !role:
		return nil
	case given < len(place):
		return errors.New("set all of --s3-bucket-url, --s3-bucket-region, --s3-bucket-name and --s3-snapshot-prefix, or none of them and no S3 key")
	case keys && role:
		return errors.New("--s3-access-key and --experimental-s3-role-arn exclude each other")
	case keys && (o.AccessKey == "" || o.SecretKey == ""):
		return errors.New("--s3-access-key and --s3-secret-key must be set together")
	case role && (o.RoleARN == "" || o.TokenFile == ""):
		return errors.New("--experimental-s3-role-arn and --experimental-s3-web-identity-token-file must be set together")
	case !keys && !role:
		return errors.New("the S3 store needs --s3-access-key and --s3-secret-key, or --experimental-s3-role-arn and --experimental-s3-web-identity-token-file")
	}
	if err := o.bucket(0).Check(); err != nil {
		return fmt.Errorf("the store of snapshots: %w", err)
	}
	return nil
}

// bucket returns where snapshots are uploaded, nil for nowhere.
func (o *snapshotOptions) bucket(session time.Duration) *dump.Bucket {
	if o.BucketURL == "" {
		return nil
	}
	return &dump.Bucket{
		URL: o.BucketURL, Region: o.BucketRegion, Name: o.BucketName, Prefix: o.Prefix,
		AccessKey: o.AccessKey, SecretKey: o.SecretKey, RoleARN: o.RoleARN, TokenFile: o.TokenFile, TokenDuration: session,
		InFlight: o.InFlight, CompressionLevel: o.Level, PartSize: int64(o.PartSize),
	}
}

// session reads how long a session of the role lasts.
func (p program) session() (time.Duration, error) {
	text, ok := p.getenv(tokenDuration)
	if !ok {
		return time.Hour, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s must be a number of seconds from 1, but it is %q", tokenDuration, text)
	}
	return time.Duration(n) * time.Second, nil
}

// file is the snapshot of a data directory.
func (o *snapshotOptions) file(data string) string {
	if whole, err := filepath.Abs(data); err == nil { // "." has a name, too
		data = whole
	}
	return path.Join(filepath.ToSlash(o.Dir), filepath.Base(data)+".snapshot")
}

// everyDay is what --schedule-snapshot means without a value.
const everyDay = 24 * time.Hour

// schedule is a time between two snapshots, 0 for none: a flag that may have a value, in seconds.
type schedule time.Duration

// IsBool tells kong that the flag may have no value.
func (*schedule) IsBool() bool { return true }

// Decode takes the value that follows the flag, if one does.
func (s *schedule) Decode(ctx *kong.DecodeContext) error {
	next := ctx.Scan.Peek()
	text, isText := next.Value.(string)
	switch {
	case next.Type == kong.FlagValueToken:
		ctx.Scan.Pop()
		if on, ok := next.Value.(bool); ok {
			text, isText = strconv.FormatBool(on), true
		}
		if !isText {
			return fmt.Errorf("%v is not a number of seconds", next.Value)
		}
		return s.set(text)
	case isText && text != "" && strings.Trim(text, "0123456789") == "":
		ctx.Scan.Pop()
		return s.set(text)
	}
	*s = schedule(everyDay)
	return nil
}

// set reads an interval in seconds. true is a day, false is never.
func (s *schedule) set(text string) error {
	switch text {
	case "true":
		*s = schedule(everyDay)
		return nil
	case "false":
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not an interval: use a number of seconds from 1, or no value for a day", text)
	}
	*s = schedule(time.Duration(n) * time.Second)
	return nil
}

// isSchedule reports whether a flag is of type schedule, which is a boolean or a number.
func isSchedule(flag *kong.Flag) bool { return flag.Target.Type() == reflect.TypeFor[schedule]() }

// ticker asks for snapshots until it is closed.
type ticker struct {
	stop context.CancelFunc
	done sync.WaitGroup
}

// start enqueues a snapshot every s, the first one after s. Waiting snapshots become one.
func (s schedule) start(queue *task.Queue, log *slog.Logger) *ticker {
	ctx, stop := context.WithCancel(context.Background())
	t := &ticker{stop: stop}
	if s == 0 {
		return t
	}
	t.done.Go(func() {
		every := time.NewTicker(time.Duration(s))
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if _, err := queue.Enqueue(ctx, task.New{Content: task.CreateSnapshot{}}); err != nil && ctx.Err() == nil {
				log.Error("a scheduled snapshot cannot be enqueued", "error", err)
			}
		}
	})
	return t
}

// Close waits for the ticker's end.
func (t *ticker) Close() error {
	t.stop()
	t.done.Wait()
	return nil
}
