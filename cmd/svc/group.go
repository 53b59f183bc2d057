package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"svc/fastapi"
	"svc/internal/auth"
	"svc/internal/group"
	"svc/internal/mapped"
	"svc/internal/task"
	"svc/internal/vfs"
)

// groupOptions say which group a server belongs to, and as what.
type groupOptions struct {
	Name  string        `name:"group-name" placeholder:"NAME" help:"Name of the group that this server belongs to (default: none)."`
	Addr  string        `name:"group-addr" placeholder:"HOST:PORT" help:"Address where the writer of a group listens for its readers, or a voter for the other voters."`
	Role  string        `name:"group-role" default:"writer" enum:"writer,reader,voter" placeholder:"ROLE" help:"writer, reader or voter (default: ${default}). A reader follows the writer, answers reads from its copy of the data, and forwards writes. Voters elect the one that writes."`
	Join  []string      `name:"group-join" placeholder:"HOST:PORT" help:"Addresses of members of the group, separated by commas: of the writer, or of all voters. Voters need it, and readers of either."`
	Cert  string        `name:"group-tls-cert" placeholder:"FILE" help:"Certificate chain of this member of a group, valid for servers and clients. Members then accept only members with a certificate of --group-tls-ca."`
	Key   string        `name:"group-tls-key" placeholder:"FILE" help:"Private key of the certificate of --group-tls-cert."`
	CA    string        `name:"group-tls-ca" placeholder:"FILE" help:"Authorities that sign the certificates of the other members of a group."`
	Drain time.Duration `name:"group-drain" default:"0s" placeholder:"TIME" help:"How long a voter that is stopped goes on answering while /health is 503, so that load balancers leave it (default: ${default}). It hands the lead over first."`
}

// validate refuses options that do not fit together, and says which one to add or to leave out.
func (o *groupOptions) validate() error {
	switch c := o.certificates(); {
	case o.Drain < 0:
		return fmt.Errorf("--group-drain must be at least 0s, got %v", o.Drain)
	case o.Drain > 0 && !o.votes():
		return errors.New("--group-drain is for voters. Add --group-role voter, or leave it out")
	case o.Name == "" && (o.Addr != "" || len(o.Join) > 0 || o.reads() || o.votes() || c != (group.Certificates{})):
		return errors.New("--group-addr, --group-role, --group-join and the --group-tls options need --group-name")
	case o.Name == "":
		return nil
	case c != (group.Certificates{}) && (c.Cert == "" || c.Key == "" || c.CA == ""):
		return errors.New("--group-tls-cert, --group-tls-key and --group-tls-ca must be set together")
	case o.reads() && len(o.Join) == 0:
		return errors.New("a reader needs --group-join with the address of the group's writer")
	case !o.reads() && o.Addr == "":
		return errors.New("the writer of a group needs --group-addr, where its readers reach it")
	case o.votes() && !slices.Contains(o.Join, o.Addr):
		return errors.New("a voter needs --group-join with the addresses of all voters of the group: its own --group-addr, and the others")
	case !o.reads() && !o.votes() && len(o.Join) > 0:
		return errors.New("--group-join is for readers. Add --group-role reader, or leave it out")
	}
	for _, addr := range o.Join {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("--group-join: %w", err)
		}
	}
	return nil
}

// certificates returns the files of the certificates with which members authenticate each other, in addition to the master key.
func (o *groupOptions) certificates() group.Certificates {
	return group.Certificates{Cert: o.Cert, Key: o.Key, CA: o.CA}
}

func (o *groupOptions) votes() bool { return o.Role == string(group.RoleVoter) }

// leads reports whether a reader with these options has become the writer, and so continues as the writer.
func (o *groupOptions) leads(dir string) bool {
	id, err := group.ReadIdentity(vfs.OS, dir)
	return err == nil && id.Role == group.RoleWriter && id.Promoted && !id.Fenced && id.Name == o.Name && o.Addr != ""
}

func (o *groupOptions) reads() bool { return o.Role == string(group.RoleReader) }

// checkAlone refuses to start a server without a group on the data of a reader, because they would no longer equal those of its
// writer.
func (o *groupOptions) checkAlone(dir string) error {
	id, err := group.ReadIdentity(vfs.OS, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case id.Role == group.RoleReader:
		if id.Name == "" {
			return fmt.Errorf("%s follows a publication. Start it with --follow, or make it the data of a writer: svc group promote --db-path %s", dir, dir)
		}
		return fmt.Errorf("%s belongs to a reader of the group %q. Start it with --group-role reader, or make it the writer: svc group promote --db-path %s", dir, id.Name, dir)
	case id.Role == group.RoleVoter:
		return fmt.Errorf("%s belongs to a voter of the group %q. Start it with --group-role voter", dir, id.Name)
	case id.Fenced:
		return fmt.Errorf("another member of the group %q has become its writer in term %d and has newer data. To continue with this data anyway, remove %s", id.Name, id.Term, path.Join(dir, group.IdentityFile))
	}
	return nil
}

// groupWriter is the part of a server that is the writer of a group, or has a log to publish; nil: neither.
type groupWriter struct {
	*group.Writer
	listener net.Listener // nil: it is in no group
}

// openWriter opens the group of a server that writes, nil if it has none. The data directory is locked.
func (o *options) openWriter(log *slog.Logger) (*groupWriter, error) {
	switch {
	case o.Group.Name == "" && o.Publish.To == "":
		return nil, o.Group.checkAlone(o.DBPath)
	case o.Group.Name == "":
		w, err := o.newWriter(log)
		return &groupWriter{w, nil}, err
	}
	if o.MasterKey == "" {
		return nil, errNoMasterKey
	}
	l, err := net.Listen("tcp", o.Group.Addr)
	if err != nil {
		return nil, listenError("--group-addr", o.Group.Addr, err)
	}
	w, err := o.newWriter(log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &groupWriter{w, l}, nil
}

func (o *options) newWriter(log *slog.Logger) (*group.Writer, error) {
	return group.OpenWriter(group.WriterOptions{FS: vfs.OS, Dir: o.DBPath, Name: o.Group.Name, MasterKey: o.MasterKey, TLS: o.Group.certificates(), Format: formatVersion, Version: svcVersion, Logger: log})
}

// fs returns the file system that the stores of the data directory use.
func (w *groupWriter) fs() vfs.FS {
	if w == nil {
		return vfs.OS
	}
	return w.FS()
}

// member returns what the API tells of the group.
func (w *groupWriter) member() fastapi.Member {
	if w == nil {
		return nil
	}
	return w.Writer
}

// serve starts to answer readers. Readers also forward the writes of their clients to the API.
func (w *groupWriter) serve(dir string, queue *task.Queue, keys *auth.Keys, server *fastapi.Server) {
	if w == nil || w.listener == nil {
		return
	}
	go server.ServeAlso(w.Serve(w.listener, groupStores{dir, queue, keys})) // until its Shutdown
}

// fenced is closed when another member has become the writer.
func (w *groupWriter) fenced() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fenced()
}

// Hang stops serving readers.
func (w *groupWriter) hang() {
	if w != nil && w.listener != nil {
		_ = w.listener.Close() // again, after the writer did
		w.Hang()
	}
}

func (w *groupWriter) Close() error {
	if w == nil {
		return nil
	}
	w.hang()
	return w.Writer.Close()
}

// groupStores are the stores that a reader gets copies of.
type groupStores struct {
	dir   string
	queue *task.Queue
	keys  *auth.Keys
}

// CopyQueue copies the queue for a member of the group. Payloads are named relative to the data directory.
func (s groupStores) CopyQueue(name string, with func(payloads []string) error) error {
	payloads, release, err := s.queue.CopyTo(name, nil, true)
	if err != nil {
		return err
	}
	defer release()
	for i, p := range payloads {
		inside, ok := strings.CutPrefix(p, path.Clean(s.dir)+"/")
		if !ok {
			return fmt.Errorf("payload %s is not below %s", p, s.dir)
		}
		payloads[i] = inside
	}
	return with(payloads)
}

func (s groupStores) CopyKeys(name string) error {
	return s.keys.Copy(func(_ int64, write func(io.Writer) error) error {
		f, err := vfs.OS.Create(name)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	})
}

// follow runs a reader until ctx is done: it copies the data of the writer, follows its log, and answers reads from its copy.
func (o *options) follow(ctx context.Context, b *base, listener net.Listener, address string, ready func(net.Addr)) (err error) {
	lock, err := o.lockMember()
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	log := b.log
	from, err := o.openUpstream(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	reader := from.reader
	server := fastapi.NewStandby(reader, from.forwarder, o.MasterKey, o.Costs.connections(), b.heard)
	f := &following{o: o, base: b, reader: reader, server: server, takeovers: make(chan *takeover), ended: make(chan struct{})}
	mapped.ReleaseProgram()
	if ready != nil {
		ready(listener.Addr())
	}
	log.Info("svc is a reader: it follows the writer and answers reads from its copy of the data", "address", address, "data", o.DBPath, "from", from.what(o))
	b.p.tell(log, "READY=1\nSTATUS=reading on "+address)
	return b.attend(ctx, server, f.run, func() {}, listener)
}

// groupCommand shows and operates the group of a server.
type groupCommand struct {
	Status   groupStatusCommand   `cmd:"" help:"Show the group of a server: its members, and how far behind they are."`
	Promote  groupPromoteCommand  `cmd:"" help:"Make a reader the writer of its group."`
	Transfer groupTransferCommand `cmd:"" help:"Have another voter lead the group."`
	Remove   groupRemoveCommand   `cmd:"" help:"Remove a voter from the group."`
	Rejoin   groupRejoinCommand   `cmd:"" help:"Have a stopped voter join its group as a new member, and copy the data of the others."`
	Recover  groupRecoverCommand  `cmd:"" help:"Make a stopped voter the only one of a new group, after a majority of the voters was lost for good."`
}

type groupStatusCommand struct {
	remoteOptions `embed:""`

	JSON bool `name:"json" help:"Print the server's JSON."`
}

// Run prints the members, a line each.
func (c *groupStatusCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := to.Call(ctx, http.MethodGet, "/group", nil, &answer); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.out, answer)
	}
	var s group.Status
	if err := json.Unmarshal(answer, &s); err != nil {
		return err
	}
	if s.Role == "" || s.Role == "alone" {
		_, err := fmt.Fprintln(p.out, "this server does not belong to a group")
		return err
	}
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	if s.Name == "" {
		s.Name = "none: it is published"
	}
	fmt.Fprintf(t, "group\t%s\nterm\t%d\n\nMEMBER\tROLE\tSTATE\tPOSITION\tBEHIND\tADDRESS\n", s.Name, s.Term)
	switch {
	case s.Voter != nil:
		for _, m := range s.Members {
			role := "joins"
			switch {
			case m.Votes:
				role = string(group.RoleVoter)
			case m.Role != "":
				role = string(m.Role)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", short(m.Member), role, m.State, m.Position, behind(m.Lag), m.Address)
		}
		if s.Voter.Leader == "" {
			fmt.Fprint(t, "\nproblem\tthe group has no leader\n")
		}
		if s.Voter.Problem != "" {
			fmt.Fprintf(t, "\nproblem\t%s\n", s.Voter.Problem)
		}
		return t.Flush()
	case s.Reader != nil:
		does := "forwards requests to"
		if s.Reader.AnswersReads {
			does = "answers reads, follows"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s %s\n", short(s.Member), s.Role, s.Reader.State, s.Position, behind(s.Reader.Lag), does, s.Reader.Writer)
	default:
		fmt.Fprintf(t, "%s\t%s\twrites\t%s\t\t\n", short(s.Member), s.Role, s.Position)
	}
	for _, m := range s.Members {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", short(m.Member), group.RoleReader, m.State, m.Position, behind(m.Lag), m.Address)
	}
	if s.Reader != nil && s.Reader.Problem != "" {
		fmt.Fprintf(t, "\nproblem\t%s\n", s.Reader.Problem)
	}
	for _, m := range s.MissingModels {
		fmt.Fprintf(t, "\nproblem\tthe model of embedder %s of index %s is missing: %s\n", m.Embedder, m.IndexUID, m.Directory)
	}
	return t.Flush()
}

// short returns the beginning of an id, which is enough for people to distinguish members.
func short(id string) string { return id[:min(len(id), 8)] }

func behind(lag *uint64) string {
	if lag == nil {
		return "?"
	}
	return fmt.Sprint(*lag)
}

type groupPromoteCommand struct {
	remoteOptions `embed:""`

	Force  bool     `name:"force" help:"Promote a running reader also if the writer cannot be reached: writes that the reader has not received are lost."`
	DBPath string   `name:"db-path" placeholder:"DIR" help:"Promote the data directory of a stopped reader instead of a running one."`
	Former []string `name:"former" placeholder:"HOST:PORT" help:"With --db-path: where the writer until now listens for readers. It is told, and stops (default: --group-join of a server with this environment and configuration file)."`
}

// Run promotes a reader.
func (c *groupPromoteCommand) Run(p program) (err error) {
	if c.DBPath == "" {
		return c.promoteRunning(p)
	}
	if ctx, err := p.parse([]string{serveName}); err == nil && len(c.Former) == 0 {
		c.Former = serverOptions(ctx).Group.Join
	}
	if _, err := os.Stat(path.Join(c.DBPath, group.IdentityFile)); err != nil {
		return fmt.Errorf("%s is not the data directory of a reader: %w", c.DBPath, err)
	}
	lock, err := lockDataDir(vfs.OS, c.DBPath)
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	id, err := group.Promote(vfs.OS, c.DBPath, c.Former)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s belongs to the writer of the group %q now, in term %d.\nStart it with --group-name %s and --group-addr, and point readers to that address.\n", c.DBPath, id.Name, id.Term, id.Name)
	if len(c.Former) == 0 {
		fmt.Fprintln(p.out, "Stop the former writer: svc could not notify it.")
	}
	return nil
}

// promoteRunning has a running reader become the writer.
func (c *groupPromoteCommand) promoteRunning(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	var s group.Status
	if err := to.Call(ctx, http.MethodPost, "/group/promote", map[string]bool{"force": c.Force}, &s); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "this server is the writer of the group %q now, in term %d\n", s.Name, s.Term)
	return err
}
