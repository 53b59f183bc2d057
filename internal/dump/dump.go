package dump

import (
	"log/slog"
	"path"
	"time"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// Place names what a data directory holds.
type Place struct {
	Dir      string // the data directory itself
	Indexes  string // directory of the catalog
	Tasks    string // directory of the queue
	Keys     string // file
	Webhooks string // file
	Cursors  string // file of the webhooks' cursors; not in dumps
	Features string // file
	Network  string // file
	Chats    string // file
	Rules    string // file
	// Analytics is a directory of counts of searches; no dump or snapshot has it.
	Analytics string
	// Kept is a directory with those entries of an imported dump that belong to no package yet, under their names in the dump. The
	// next dump contains them again. Packages above this one take theirs from there.
	Kept string
	// Work is a directory for temporary files. Nothing in it outlives a task.
	Work string
}

// KeptChats is where earlier versions kept the chat workspaces of an imported dump.
func (p Place) KeptChats() string { return path.Join(p.Kept, chatDir) }

// FeaturesVersion is the format version of Place.Features, a sealed JSON object with a flag for each feature.
const FeaturesVersion = 1

// NetworkVersion is the format version of Place.Network, a sealed JSON object. Its member network is the network in a dump.
const NetworkVersion = 1

// KeptRules returns the directory of the kept search rules, one file each.
func (p *Place) KeptRules() string { return path.Join(p.Kept, rulesDir) }

// PlaceIn returns the usual names in a data directory.
func PlaceIn(dir string) Place {
	return Place{
		Dir:     dir,
		Indexes: path.Join(dir, "indexes"), Tasks: path.Join(dir, "tasks"), Keys: path.Join(dir, "auth.db"),
		Webhooks: path.Join(dir, "webhooks.json"), Cursors: path.Join(dir, "webhook-cursors.json"), Features: path.Join(dir, "features.json"), Network: path.Join(dir, "network.json"),
		Chats: path.Join(dir, "chats.json"), Rules: path.Join(dir, "rules.json"), Analytics: path.Join(dir, "analytics"),
		Kept: path.Join(dir, "kept"), Work: path.Join(dir, "work"),
	}
}

// Options of a Maker.
type Options struct {
	FS      vfs.FS
	Place   Place
	Version string // of the API, stored in dumps
	Program string // svc's own version, stored in dumps
	Logger  *slog.Logger
	Now     func() time.Time

	Catalog  *index.Catalog
	Keys     *auth.Keys
	Webhooks *webhook.Store
	Features func() []byte // JSON, a flag for each
	Network  func() []byte // JSON of network.json
	Chats    *chat.Store
	Rules    func() [][]byte // JSON, one each

	DumpDir string

	SnapshotFile      string  // SnapshotFile is replaced by each snapshot
	SnapshotVersion   []byte  // content of the file VERSION of a data directory
	CompactInSnapshot bool    // leave free pages of the queue out
	Bucket            *Bucket // where snapshots go instead of SnapshotFile; nil: nowhere

	Allowed      outbound.Policy // of exports and buckets
	PayloadLimit int64           // bytes of a request that another instance is assumed to take
}

// Maker makes dumps, snapshots and exports. Its methods are called by the queue's scheduler alone.
type Maker struct{ o Options }

// New makes a Maker. It starts nothing.
func New(o Options) *Maker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Maker{o}
}

// Executors returns what runs the tasks of the three kinds.
func (m *Maker) Executors() map[task.Kind]task.Executor {
	return map[task.Kind]task.Executor{
		task.DumpCreation:     m.dump,
		task.SnapshotCreation: m.snapshot,
		task.Export:           m.export,
	}
}
