package network

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/outbound"
	"svc/internal/settings"
)

// Text is a member of a patch that is a string or null.
type Text struct {
	Given bool
	Value *string // nil: null
}

// Patch is a change of a network.
type Patch struct {
	Self, Leader Text

	Remotes      map[string]*RemotePatch // nil for a remote: it goes
	ClearRemotes bool                    // ahead of Remotes
	Shards       map[string]*ShardPatch  // nil for a shard: it goes
	ClearShards  bool                    // ahead of Shards

	// Sees reports whether the sender of the patch may see a stored key of a remote; nil: all of them. A sender that may not see a
	// key cannot have it sent to another origin.
	Sees func(key string) bool
}

// RemotePatch is a change of a remote.
type RemotePatch struct{ URL, SearchAPIKey, WriteAPIKey Text }

// ShardPatch is a change of a shard: Remotes replaces its owners, then Add adds owners and Remove removes some. nil: not given.
type ShardPatch struct{ Remotes, Add, Remove []string }

// apply returns the network that results from a patch of n, with the version of n. Its errors are *apierr.Error: missing_network_url,
// invalid_network_url, and with a leader not_a_leader, invalid_network_remotes, invalid_network_shards.
func (n *Network) apply(p *Patch) (*Network, error) {
	to := n.clone()
	if p.Self.Given {
		to.Self = p.Self.Value
	}
	if p.Leader.Given {
		to.Leader = p.Leader.Value
	}
	if to.Led() && !to.Leads() {
		return nil, apierr.New("not_a_leader", "`%s` is the leader of the network, not this instance. Send this request to the leader.", *to.Leader)
	}
	if err := to.applyRemotes(p); err != nil {
		return nil, err
	}
	emptied := to.applyShards(p)
	for name, s := range to.Shards {
		kept := slices.DeleteFunc(slices.Clone(s.Remotes), func(remote string) bool {
			_, gone := p.Remotes[remote]
			return gone && p.Remotes[remote] == nil || p.ClearRemotes && to.Remotes[remote] == nil && n.Remotes[remote] != nil
		})
		if len(kept) == 0 && len(s.Remotes) > 0 {
			emptied = append(emptied, name)
			delete(to.Shards, name)
		} else {
			to.Shards[name] = &Shard{kept}
		}
	}
	if !to.Led() {
		return to, nil
	}
	if to.Remotes[*to.Leader] == nil {
		return nil, apierr.New("invalid_network_remotes", "The leader `%s` must be one of the remotes. Give it a `url` there.", *to.Leader)
	}
	slices.Sort(emptied)
	if len(emptied) > 0 {
		return nil, apierr.New("invalid_network_shards", "The shard `%s` would have no remote left. Give it another remote, or set the shard to null to distribute its documents to the others.", emptied[0])
	}
	if len(to.Shards) == 0 {
		return nil, apierr.New("invalid_network_shards", "A network with a leader needs at least one shard with a remote.")
	}
	for _, name := range to.ShardNames() {
		for _, remote := range to.Shards[name].Remotes {
			if to.Remotes[remote] == nil {
				return nil, apierr.New("invalid_network_shards", "The shard `%s` names `%s`, which is not one of the remotes.", name, remote)
			}
		}
	}
	return to, nil
}

// applyRemotes changes remotes. A key that was shown masked and is sent back masked stays. A caller that may not see a stored key
// must send it again to change the host. Otherwise the patch is refused.
func (n *Network) applyRemotes(p *Patch) error {
	if p.ClearRemotes {
		n.Remotes = map[string]*Remote{}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Remotes)) {
		change := p.Remotes[name]
		if change == nil {
			delete(n.Remotes, name)
			continue
		}
		var r Remote
		if was := n.Remotes[name]; was != nil {
			r = *was
			if change.URL.Given && change.URL.Value == nil {
				return apierr.New("invalid_network_url", "`remotes.%s.url` cannot be null. To remove the remote, set `remotes.%[1]s` to null.", name)
			}
		} else if change.URL.Value == nil {
			return apierr.New("missing_network_url", "`remotes.%s.url` is missing. It is the address of the remote.", name)
		}
		if change.URL.Given {
			if err := checkURL(*change.URL.Value); err != nil {
				return apierr.New("invalid_network_url", "`remotes.%s.url` must be the address of an instance, such as `http://10.0.0.2:7700`, but %v.", name, err)
			}
			r.URL = settings.RestoreURL(*change.URL.Value, r.URL)
		}
		var kept []string
		for _, k := range [...]struct {
			name  string
			to    **string
			given Text
		}{{"searchApiKey", &r.SearchAPIKey, change.SearchAPIKey}, {"writeApiKey", &r.WriteAPIKey, change.WriteAPIKey}} {
			if stored := *k.to; k.given.Given && !sentBack(k.given.Value, stored) {
				*k.to = k.given.Value
			} else if stored != nil && p.Sees != nil && !p.Sees(*stored) {
				kept = append(kept, k.name)
			}
		}
		if was := n.Remotes[name]; len(kept) > 0 && settings.Origin(r.URL) != settings.Origin(was.URL) {
			return apierr.New("invalid_network_url", "`remotes.%s.url` would send the stored keys of the remote to another host. Send %s again with the url, or as null.",
				name, "`"+strings.Join(kept, "` and `")+"`")
		}
		n.Remotes[name] = &r
	}
	return nil
}

// sentBack reports whether a key is the masked form of a stored one, which therefore stays.
func sentBack(key, stored *string) bool {
	return key != nil && stored != nil && *key != *stored && *key == settings.Redact(*stored)
}

// checkURL refuses addresses that the path of a request cannot be appended to.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("it is none")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its scheme is neither `http` nor `https`")
	case strings.ContainsAny(text, "?#"): // even an empty query would swallow the path of a request
		return fmt.Errorf("it has a query or a fragment")
	case strings.Contains(u.Path, `\`) || slices.ContainsFunc(strings.Split(u.Path, "/"), isDots):
		return fmt.Errorf("its path has a segment `.` or `..`, or a backslash")
	}
	return nil
}

// isDots reports whether a segment of a path, without escapes, leads to the directory itself or to the one above.
func isDots(segment string) bool { return segment == "." || segment == ".." }

// applyShards changes the shards, and returns those that have lost their last remote.
func (n *Network) applyShards(p *Patch) (emptied []string) {
	if p.ClearShards {
		n.Shards = map[string]*Shard{}
	}
	for name, change := range p.Shards {
		was, known := n.Shards[name]
		if change == nil {
			delete(n.Shards, name)
			continue
		}
		var remotes []string
		if known {
			remotes = slices.Clone(was.Remotes)
		}
		if change.Remotes != nil {
			remotes = slices.Clone(change.Remotes)
		}
		remotes = append(remotes, change.Add...)
		remotes = slices.DeleteFunc(remotes, func(r string) bool { return slices.Contains(change.Remove, r) })
		slices.Sort(remotes)
		remotes = slices.Compact(remotes)
		if len(remotes) == 0 {
			delete(n.Shards, name)
			if known || change.Remotes != nil || change.Remove != nil {
				emptied = append(emptied, name)
			}
			continue
		}
		n.Shards[name] = &Shard{remotes}
	}
	return emptied
}

// secrets returns the credentials of the remote.
func (r *Remote) secrets() []string {
	all := []string{textOf(r.SearchAPIKey), textOf(r.WriteAPIKey)}
	if u, err := url.Parse(r.URL); err == nil {
		all = append(all, outbound.SecretsOf(u)...)
	}
	return all
}

// trimmed is the address of a remote without slashes at its end. Addresses that were stored before checkURL refused them may have a
// query or a fragment, which would swallow the path of a request.
func (r *Remote) trimmed() string {
	address := r.URL
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return strings.TrimRight(address, "/")
}
