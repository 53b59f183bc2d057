package fastapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// featureNames are the experimental features, in the order in which they are shown. Those from laterFeatures on belong to later
// versions of the API, or to svc alone: responses show them only while they are on. disableDocumentsFetchQueue and legacySearch have
// no effect: svc has one search path, and fetches of documents always wait for their turn. mcpRoute is the later name of mcp.
var featureNames = [...]string{
	"metrics", "logsRoute", "editDocumentsByFunction", "containsFilter", "dynamicSearchRules", "network",
	"getTaskDocumentsRoute", "taskQueueCompactionRoute", "compositeEmbedders", "chatCompletions", "multimodal", "foreignKeys",
	"tasksStreamingRoute", "renderRoute", "mcp", "mcpRoute", "disableDocumentsFetchQueue", "legacySearch",
}

const laterFeatures = 12

// featureSet holds a flag for each of featureNames.
type featureSet [len(featureNames)]bool

// Features are the enabled experimental features. They are stored in a small sealed JSON file, which a change replaces.
type Features struct {
	fs   vfs.FS
	file string

	mu  sync.Mutex // held while they are changed
	now atomic.Pointer[featureSet]

	// launched are the features that a launch option enables until a change says otherwise. They are not stored.
	launched featureSet
	stored   featureSet
}

// OpenFeatures reads the features of a data directory. Those in launch are on until the next start, regardless of what is stored,
// unless a request switches them off.
func OpenFeatures(fsys vfs.FS, file string, launch ...string) (*Features, error) {
	f := &Features{fs: fsys, file: file}
	for _, name := range launch {
		f.launched[featureIndex(name)] = true
	}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Reload reads the file again after another program may have replaced it. After an error the old features stay.
func (f *Features) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, err := f.read()
	if err != nil {
		return fmt.Errorf("cannot read the experimental features: %w", err)
	}
	f.stored = stored
	f.publish()
	return nil
}

// read reads the file, which may be missing.
func (f *Features) read() (set featureSet, err error) {
	b, err := sealedjson.Read(f.fs, f.file, dump.FeaturesVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err != nil {
		return set, err
	}
	stored := map[string]bool{}
	if err := json.Unmarshal(b, &stored); err != nil {
		return set, &apierr.Corruption{File: f.file, Offset: -1, Reason: err.Error()}
	}
	for i, name := range featureNames {
		set[i] = stored[name]
	}
	mcp := set[mcpNames[0]] || set[mcpNames[1]] // earlier versions of svc and dumps have one name
	set[mcpNames[0]], set[mcpNames[1]] = mcp, mcp
	return set, nil
}

// publish makes the current flags visible to requests.
func (f *Features) publish() {
	set := f.stored
	for i, on := range f.launched {
		set[i] = set[i] || on
	}
	f.now.Store(&set)
}

func featureIndex(name string) int {
	for i := range featureNames {
		if featureNames[i] == name {
			return i
		}
	}
	panic("there is no experimental feature called " + name)
}

// on reports whether a feature is switched on.
func (f *Features) on(name string) bool { return f.now.Load()[featureIndex(name)] }

// need returns an error unless the feature is on. what names its use.
func (f *Features) need(name, what string) error {
	if f.on(name) {
		return nil
	}
	return apierr.New("feature_not_enabled", "The experimental feature `%s` must be enabled for %s. Enable it with PATCH /experimental-features {\"%[1]s\": true}.", name, what)
}

// change sets the flags that are given, durably.
func (f *Features) change(given map[int]bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, launched := f.stored, f.launched
	for i, on := range given {
		stored[i], launched[i] = on, false
	}
	mcp, named := given[mcpNames[0]]
	route, renamed := given[mcpNames[1]]
	if named || renamed {
		for _, i := range mcpNames {
			stored[i], launched[i] = mcp || route, false
		}
	}
	if stored != f.stored {
		if err := sealedjson.Write(f.fs, f.file, dump.FeaturesVersion, stored.appendJSON(nil)); err != nil {
			return fmt.Errorf("cannot store the experimental features: %w", err)
		}
	}
	f.stored, f.launched = stored, launched
	f.publish()
	return nil
}

func (set *featureSet) appendJSON(b []byte) []byte { return set.appendShown(b, false) }

// appendShown appends the features of v1.42, or with newest those of v1.54, and those of the others that are on.
func (set *featureSet) appendShown(b []byte, newest bool) []byte {
	for i, name := range featureNames {
		if i >= laterFeatures && !set[i] && (!newest || name == "mcp") { // which is svc's own name
			continue
		}
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		b = append(b, before)
		b = fmt.Appendf(b, "%q:%t", name, set[i])
	}
	return append(b, '}')
}

var featureParams = func() []param[map[int]bool] {
	params := make([]param[map[int]bool], len(featureNames))
	for i, name := range featureNames {
		params[i] = param[map[int]bool]{name: name, code: "bad_request", kind: flag, null: true, set: func(given *map[int]bool, a *arg) error {
			(*given)[i] = a.flag
			return nil
		}}
	}
	return params
}()

func (s *Server) getFeatures(ctx *fasthttp.RequestCtx) error {
	answerRaw(ctx, s.features.now.Load().appendShown(nil, s.newest))
	return nil
}

// mcpNames are the two names of one feature. A change of either changes both.
var mcpNames = [2]int{featureIndex("mcp"), featureIndex("mcpRoute")}

// describeFeatures returns the given features as name=true.
func describeFeatures(given map[int]bool) string {
	var texts []string
	for _, i := range slices.Sorted(maps.Keys(given)) {
		texts = append(texts, fmt.Sprintf("%s=%t", featureNames[i], given[i]))
	}
	return strings.Join(texts, ", ")
}

// updateFeatures changes the features that the body names, all of them in one write.
func (s *Server) updateFeatures(ctx *fasthttp.RequestCtx) error {
	given := map[int]bool{}
	if err := readObject(s, ctx, &given, featureParams); err != nil {
		return err
	}
	mcp, named := given[mcpNames[0]]
	route, renamed := given[mcpNames[1]]
	if named && renamed && mcp != route {
		return apierr.New("bad_request", "`mcp` and `mcpRoute` are two names of one feature, but one is true and the other false. Send one of them.")
	}
	concerns(ctx, describeFeatures(given))
	if err := s.features.change(given); err != nil {
		return err
	}
	return s.getFeatures(ctx)
}

// JSON returns all features with their current state, as GET /experimental-features shows them.
func (f *Features) JSON() []byte { return f.now.Load().appendJSON(nil) }
