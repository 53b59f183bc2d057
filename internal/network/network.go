package network

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"svc/internal/settings"
)

// Network is a state of the network as one instance knows it. It is immutable once stored.
type Network struct {
	Self    *string            `json:"self"`   // name of this instance among the remotes; nil: not given
	Leader  *string            `json:"leader"` // name of the instance that takes all writes; nil: every one takes its own
	Version uuid.UUID          `json:"version"`
	Remotes map[string]*Remote `json:"remotes"` // this instance is among them
	Shards  map[string]*Shard  `json:"shards"`
}

// Remote is an instance of a network.
type Remote struct {
	URL          string  `json:"url"`
	SearchAPIKey *string `json:"searchApiKey"` // nil: none
	WriteAPIKey  *string `json:"writeApiKey"`
}

// Shard is a part of the documents.
type Shard struct {
	Remotes []string `json:"remotes"` // who owns it: names in byte order
}

func empty() *Network {
	return &Network{Remotes: map[string]*Remote{}, Shards: map[string]*Shard{}}
}

// clone returns a copy whose maps are its own.
func (n *Network) clone() *Network {
	c := *n
	c.Remotes, c.Shards = maps.Clone(n.Remotes), maps.Clone(n.Shards)
	return &c
}

// SelfName returns the name of this instance, "" when it has none.
func (n *Network) SelfName() string { return textOf(n.Self) }

// Led reports whether there is a leader. If so, documents are sharded, and only the leader accepts writes.
func (n *Network) Led() bool { return n.Leader != nil }

// Leads reports whether this instance is the leader.
func (n *Network) Leads() bool { return n.Leader != nil && n.Self != nil && *n.Leader == *n.Self }

// Others returns the names of the remotes apart from this instance, in byte order.
func (n *Network) Others() []string {
	names := slices.Sorted(maps.Keys(n.Remotes))
	return slices.DeleteFunc(names, func(name string) bool { return n.Self != nil && name == *n.Self })
}

// ShardNames returns the names of the shards in byte order.
func (n *Network) ShardNames() []string { return slices.Sorted(maps.Keys(n.Shards)) }

// owned returns the shards of a remote, in byte order.
func (n *Network) owned(remote string) []string {
	var names []string
	for _, name := range n.ShardNames() {
		if slices.Contains(n.Shards[name].Remotes, remote) {
			names = append(names, name)
		}
	}
	return names
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// shownRemote is a remote as the API shows it.
type shownRemote struct {
	Remote
	Status string `json:"status"`
}

// shown is the object of the API. It masks possible secrets in URLs, and the keys for which sees returns false (nil: it masks no
// key).
func (n *Network) shown(status func(remote string) string, sees func(key string) bool) []byte {
	remotes := make(map[string]shownRemote, len(n.Remotes))
	for name, r := range n.Remotes {
		shown := *r
		shown.URL = settings.RedactURL(r.URL)
		for _, key := range [...]**string{&shown.SearchAPIKey, &shown.WriteAPIKey} {
			if *key != nil && sees != nil && !sees(**key) {
				masked := settings.Redact(**key)
				*key = &masked
			}
		}
		remotes[name] = shownRemote{shown, status(name)}
	}
	return encode(struct {
		Self    *string                `json:"self"`
		Remotes map[string]shownRemote `json:"remotes"`
		Shards  map[string]*Shard      `json:"shards"`
		Leader  *string                `json:"leader"`
		Version uuid.UUID              `json:"version"`
	}{n.Self, remotes, n.Shards, n.Leader, n.Version})
}

// encode is for values that always are JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("network: " + err.Error())
	}
	return b
}
