package fastapi

import (
	"crypto/subtle"
	"slices"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/network"
)

// networkInput is the body of a change of the network.
type networkInput struct {
	network.Patch
	previous bool // previousRemotes, which only peers send
}

var networkParams = []param[networkInput]{
	{name: "self", code: "invalid_network_self", kind: raw, shape: textOrNullShape, set: func(in *networkInput, a *arg) error { return a.optional(&in.Self) }},
	{name: "leader", code: "invalid_network_leader", kind: raw, shape: textOrNullShape, set: func(in *networkInput, a *arg) error { return a.optional(&in.Leader) }},
	{name: "remotes", code: "invalid_network_remotes", kind: raw, shape: orNull(mapOf(orNull(objectOf(remoteParams)))), set: setRemotes},
	{name: "shards", code: "invalid_network_shards", kind: raw, shape: orNull(mapOf(orNull(objectOf(shardParams)))), set: setShards},
	{name: "previousRemotes", code: "invalid_network_remotes", kind: raw, shape: refusedShape, set: func(in *networkInput, _ *arg) error { in.previous = true; return nil }},
	{name: "previousShards", code: "invalid_network_shards", kind: raw, set: func(*networkInput, *arg) error { return nil }},
}

// optional takes a string or null.
func (a *arg) optional(to *network.Text) error {
	*to = network.Text{Given: true}
	if a.json.null() {
		return nil
	}
	text, ok := a.json.text()
	if !ok {
		return a.expected("a string or null")
	}
	to.Value = &text
	return nil
}

// memberName returns a member's name as it is meant.
func memberName(quoted []byte) string {
	name, _ := value(slices.Concat([]byte{'"'}, quoted, []byte{'"'})).text()
	return name
}

// setRemotes reads a patch of remotes: an object changes one, null removes it, null for all removes all.
func setRemotes(in *networkInput, a *arg) error {
	in.Remotes, in.ClearRemotes = nil, a.json.null()
	if in.ClearRemotes {
		return nil
	}
	if !a.json.object() {
		return a.expected("an object of remotes, or null")
	}
	in.Remotes = map[string]*network.RemotePatch{}
	for quoted, v := range a.json.members() {
		name := memberName(quoted)
		if v.null() {
			in.Remotes[name] = nil
			continue
		}
		r := &network.RemotePatch{}
		if err := decode(r, v, remoteParams, object{path: a.path() + "." + name + ".", code: a.code, notCode: a.code}); err != nil {
			return err
		}
		in.Remotes[name] = r
	}
	return nil
}

var remoteParams = []param[network.RemotePatch]{
	{name: "url", code: "invalid_network_url", kind: raw, shape: textOrNullShape, set: func(r *network.RemotePatch, a *arg) error { return a.optional(&r.URL) }},
	{name: "searchApiKey", code: "invalid_network_search_api_key", kind: raw, shape: textOrNullShape, set: func(r *network.RemotePatch, a *arg) error { return a.optional(&r.SearchAPIKey) }},
	{name: "writeApiKey", code: "invalid_network_write_api_key", kind: raw, shape: textOrNullShape, set: func(r *network.RemotePatch, a *arg) error { return a.optional(&r.WriteAPIKey) }},
}

// setShards reads a patch of shards, as setRemotes does for remotes.
func setShards(in *networkInput, a *arg) error {
	in.Shards, in.ClearShards = nil, a.json.null()
	if in.ClearShards {
		return nil
	}
	if !a.json.object() {
		return a.expected("an object of shards, or null")
	}
	in.Shards = map[string]*network.ShardPatch{}
	for quoted, v := range a.json.members() {
		name := memberName(quoted)
		if v.null() {
			in.Shards[name] = nil
			continue
		}
		s := &network.ShardPatch{}
		if err := decode(s, v, shardParams, object{path: a.path() + "." + name + ".", code: a.code, notCode: a.code}); err != nil {
			return err
		}
		in.Shards[name] = s
	}
	return nil
}

// The lists of a shard are of remotes, and so are the errors.
var shardParams = []param[network.ShardPatch]{
	{name: "remotes", code: "invalid_network_remotes", kind: list, null: true, set: func(s *network.ShardPatch, a *arg) error { s.Remotes = a.list; return nil }},
	{name: "addRemotes", code: "invalid_network_remotes", kind: list, null: true, set: func(s *network.ShardPatch, a *arg) error { s.Add = a.list; return nil }},
	{name: "removeRemotes", code: "invalid_network_remotes", kind: list, null: true, set: func(s *network.ShardPatch, a *arg) error { s.Remove = a.list; return nil }},
}

// needNetwork refuses the routes of the network while its feature is off.
func (s *Server) needNetwork() error { return s.features.need("network", "the routes of the network") }

func (s *Server) getNetwork(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	return answerCharged(ctx, s.network.JSON(seesKeys(ctx)))
}

// seesKeys returns a function that says which keys of remotes the caller may see: only the caller's own. It is nil for callers with
// all rights, which see all keys. Other rights do not help, because this instance does not know what a key opens on another one.
func seesKeys(ctx *fasthttp.RequestCtx) func(key string) bool {
	if caller(ctx) == nil {
		return nil
	}
	own := credential(ctx)
	return func(key string) bool { return subtle.ConstantTimeCompare([]byte(key), []byte(own)) == 1 }
}

// updateNetwork changes the network. A request from another instance announces a change by the leader.
func (s *Server) updateNetwork(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	origin, err := s.origin(ctx)
	if err != nil {
		return err
	}
	if origin != nil {
		return s.announceNetwork(ctx, origin)
	}
	var in networkInput
	if err := readObject(s, ctx, &in, networkParams); err != nil {
		return err
	}
	if in.previous {
		return apierr.New("unexpected_network_previous_remotes", "`previousRemotes` is reserved for requests between instances. Leave it out.")
	}
	in.Sees = seesKeys(ctx)
	t, err := s.network.Patch(s.searching, &in.Patch)
	if err != nil {
		return err
	}
	if t == nil {
		return s.getNetwork(ctx)
	}
	s.network.Await(t.UID, s.network.Network().Others())
	answerRaw(ctx, t.Summary())
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	return nil
}

// outboxView shows the writes of this instance that a remote has not received.
type outboxView struct {
	PendingTasks     int     `json:"pendingTasks"`
	PendingBytes     int64   `json:"pendingBytes"`
	OldestEnqueuedAt *string `json:"oldestEnqueuedAt"`
}

// getOutbox tells how far the other instances are behind.
func (s *Server) getOutbox(ctx *fasthttp.RequestCtx) error {
	if err := s.needNetwork(); err != nil {
		return err
	}
	remotes := map[string]outboxView{}
	for _, name := range s.network.Network().Others() {
		remotes[name] = outboxView{}
	}
	for name, lag := range s.queue.Lags() {
		oldest := rfc3339(lag.Oldest)
		remotes[name] = outboxView{lag.Requests, lag.Bytes, &oldest}
	}
	return answer(ctx, struct {
		Remotes map[string]outboxView `json:"remotes"`
	}{remotes})
}
