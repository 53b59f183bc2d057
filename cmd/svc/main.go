package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"svc/internal/apierr"
	"svc/internal/client"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2 // of the command line or the environment
)

// command is the command line.
type command struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version and the commit."`

	Serve    serveCommand    `cmd:"" default:"withargs" help:"Serve the HTTP API (the default)."`
	Health   healthCommand   `cmd:"" help:"Check a running server: exits with 0 if it is healthy, else with 1."`
	Version  versionCommand  `cmd:"" help:"Print the version and the commit."`
	Licenses licensesCommand `cmd:"" help:"Print the licences of the embedded word lists and lexicons."`
	Help     helpCommand     `cmd:"" help:"Print the help of a command."`

	Import    importCommand    `cmd:"" help:"Import a file of documents, or another server, into a running server; resumes after an interruption."`
	Search    searchCommand    `cmd:"" help:"Search an index of a running server."`
	Tasks     tasksCommand     `cmd:"" help:"List tasks of a running server, wait for them or cancel them."`
	Key       keyCommand       `cmd:"" help:"List, create and delete API keys of a running server."`
	Index     indexCommand     `cmd:"" help:"List, create, change and delete indexes of a running server."`
	Settings  settingsCommand  `cmd:"" help:"Show, change and reset settings of an index of a running server."`
	Analytics analyticsCommand `cmd:"" help:"Show or delete the counts of searches of a running server."`
	Group     groupCommand     `cmd:"" help:"Show and operate the group of a server."`
	Dump      dumpCommand      `cmd:"" help:"Create a dump on a running server, and print its path."`
	Snapshot  snapshotCommand  `cmd:"" help:"Create a snapshot on a running server, and print its path."`
	Restore   restoreCommand   `cmd:"" help:"Restore a data directory, or one index of a running server, from a bucket, as of a given time."`
	Export    exportCommand    `cmd:"" help:"Export indexes of a running server to another server."`

	Segment struct {
		Inspect inspectCommand `cmd:"" help:"Print a summary of a segment file."`
		Verify  verifyCommand  `cmd:"" help:"Check every byte of a segment file, or of all segment files below a directory."`
		Salvage salvageCommand `cmd:"" help:"Write the documents of a damaged segment file as NDJSON, and list the lost ones."`
	} `cmd:"" help:"Inspect, verify and salvage segment files."`

	Generate generateCommand `cmd:"" hidden:"" help:"Print completions and the manual page."`
}

// withVariable returns the help of an option: what it does, and its environment variable.
func withVariable(v *kong.Value) string {
	if v.Flag == nil || v.Flag.Group == nil {
		return v.Help // an argument, or a flag that stands on the command line only
	}
	return v.Help + " [" + variableName(v.Name) + "]"
}

// program is what surrounds a run: a test brings its own.
type program struct {
	getenv  func(string) (string, bool)
	environ func() []string // nil: none
	out     io.Writer
	err     io.Writer
	gc      *gcPacer // nil: none
}

func main() {
	var gc *gcPacer
	if os.Getenv("GOGC") == "" {
		gc = paceGC() // as long as the process lives
	}
	// The reader of the log may go away and return: only lines written meanwhile are lost.
	signal.Ignore(syscall.SIGPIPE)
	p := program{os.LookupEnv, os.Environ, os.Stdout, os.Stderr, gc}
	os.Exit(p.run(os.Args[1:]))
}

// run runs the program and returns its exit code.
func (p program) run(args []string) int {
	ctx, err := p.parse(args)
	if err != nil {
		var file *configError
		if errors.As(err, &file) { // kong names an option that has nothing to do with it
			fmt.Fprintf(p.err, "svc: %v\n", file)
			return exitFailure
		}
		fmt.Fprintf(p.err, "svc: %v\n", err)
		return exitUsage
	}
	if err := ctx.Run(p); err != nil {
		if refused := new(client.Error); errors.As(err, &refused) && refused.Code == "missing_authorization_header" {
			err = fmt.Errorf("the server requires a key: set --key or %s", keyVariable)
			if strings.HasPrefix(ctx.Command(), "import") {
				err = fmt.Errorf("%w, and with --from-key to the one of --from", err)
			}
		}
		fmt.Fprintf(p.err, "svc: %s\n", inOptions(ctx, advised(err)))
		return exitFailure
	}
	return 0
}

// parameters maps the names that the API uses in its messages to the options of commands.
var parameters = map[string]string{
	"primaryKey": "primary-key", "csvDelimiter": "csv-delimiter", "attributesToRetrieve": "attributes", "embedder": "embedder", "hybrid.embedder": "embedder",
	"semanticRatio": "semantic-ratio", "hybrid.semanticRatio": "semantic-ratio", "vector": "vector", "filter": "filter", "sort": "sort", "facets": "facets", "limit": "limit", "indexUid": "index", "from": "from", "to": "to",
	"offset": "offset", "actions": "action", "indexes": "index", "expiresAt": "expires", "rateLimit.searchesPerSecond": "searches-per-second", "rateLimit.writesPerSecond": "writes-per-second", "rateLimit.concurrent": "concurrent", "name": "name", "indexUids": "index", "statuses": "status", "types": "type",
	"payloadSize": "payload-size", "apiKey": "to-key", "overrideSettings": "override-settings",
}

// inOptions replaces API parameters in a server's message by the options of the command that ran.
func inOptions(ctx *kong.Context, message string) string {
	for _, flag := range ctx.Flags() {
		for parameter, option := range parameters {
			if option == flag.Name {
				message = strings.ReplaceAll(message, "`"+parameter+"`", "--"+option)
			}
		}
	}
	return message
}

// parse reads the command line, the environment and the configuration file.
func (p program) parse(args []string) (*kong.Context, error) {
	parser, err := newParser(p)
	if err != nil {
		return nil, err
	}
	if err := unknownCommand(parser, args); err != nil {
		return nil, err
	}
	ctx, err := parser.Parse(args)
	if err != nil || !serves(ctx) {
		return ctx, err
	}
	if err := p.checkVariables(ctx); err != nil {
		return nil, err
	}
	return ctx, serverOptions(ctx).validate()
}

// unknownCommand returns an error if the first word of a command line is not a command.
func unknownCommand(parser *kong.Kong, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil
	}
	var known []string
	for _, c := range parser.Model.Children {
		if c.Name == args[0] {
			return nil
		}
		if !c.Hidden {
			known = append(known, c.Name)
		}
	}
	if meant := apierr.Closest(args[0], known); meant != "" {
		return fmt.Errorf("there is no command %s: did you mean %s?", args[0], meant)
	}
	return fmt.Errorf("there is no command %s; the commands are %s", args[0], strings.Join(known, ", "))
}

// serverOptions are the options of the server as they were parsed.
func serverOptions(ctx *kong.Context) *options {
	return &ctx.Model.Target.Addr().Interface().(*command).Serve.options
}

func newParser(p program) (*kong.Kong, error) {
	return kong.New(&command{},
		kong.Name("svc"),
		kong.Description("A search engine over HTTP. Every server option can also be set in the environment (SVC_HTTP_ADDR) or in a TOML file (http_addr). The command line takes precedence, then the environment, then the file."),
		kong.Vars{"version": versionNotice()},
		kong.Writers(p.out, p.err),
		kong.Help(printHelp),
		kong.ValueFormatter(withVariable),
		kong.Resolvers(&settings{getenv: p.getenv}),
	)
}
