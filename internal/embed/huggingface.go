package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"svc/internal/settings"
	"svc/internal/transformer"
	"svc/internal/vfs"
)

const (
	hubURL = "https://huggingface.co"
	// mainRevision is the hub's name of the default revision of a model.
	mainRevision = "main"

	maxModelFile = 16 << 30         // bytes of a file from the hub
	maxSilence   = 60 * time.Second // of the hub while a file comes
)

// Names as the hub gives them. None can leave the directory of models.
var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$`)
	revisionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
)

// models loads the local models and downloads missing ones from the hub. A model stays in memory as long as an embedder that used it
// exists.
//
// A model is in <directory>/<model>/<revision>, where downloads go, or in <directory>/<model>, where users may put it.
type models struct {
	dir    string
	hub    string
	client http.Client // follows redirects, as the hub sends to where its files are
	fs     vfs.FS
	mu     sync.Mutex
	loaded map[string]*slot // by directory of the revision
}

// slot is a place for a model. One goroutine at a time fills it.
type slot struct {
	filling chan struct{} // holds one value while a caller fills
	model   weak.Pointer[transformer.Model]
}

func newModels(o *Options) *models {
	transport := o.Policy.Transport()
	transport.ResponseHeaderTimeout = defaultTimeout
	return &models{dir: o.ModelsDir, hub: hubURL, client: http.Client{Transport: transport}, fs: vfs.OS, loaded: map[string]*slot{}}
}

// huggingFace is a model that runs here.
type huggingFace struct {
	models         *models
	name, revision string
	pooling        transformer.Pooling
	mu             *sync.Mutex
	held           **transformer.Model // once it was used
}

// openHuggingFace checks the names. The model is loaded by the first text.
func (p *Pool) openHuggingFace(cfg *settings.Embedder) (source, error) {
	s := huggingFace{models: p.models, name: cfg.Model, revision: cfg.Revision, pooling: transformer.Pooling(cfg.Pooling),
		mu: new(sync.Mutex), held: new(*transformer.Model)}
	if s.revision == "" {
		s.revision = mainRevision
	}
	switch {
	case !modelName.MatchString(s.name):
		return nil, userError("%q is not the name of a model, such as BAAI/bge-base-en-v1.5.", s.name)
	case !revisionName.MatchString(s.revision):
		return nil, userError("%q is not a revision of a model: use the hash of a commit, or the name of a branch or tag.", s.revision)
	case p.models.dir == "":
		return nil, userError("there is no directory for the models of huggingFace embedders.")
	}
	return s, nil
}

// huggingFaceDistribution returns the distribution of the default model. Those of other models are unknown.
func huggingFaceDistribution(cfg *settings.Embedder) (d [2]float32, ok bool) {
	return [2]float32{.85, .10}, cfg.Model == (&settings.Embedder{Source: settings.HuggingFace}).Complete().Model
}

func (s huggingFace) local() bool { return true }
func (s huggingFace) group() int  { return 1 }

// embed computes the vector of one text. A query uses all processors, because it is a single text.
func (s huggingFace) embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error) {
	m, err := s.model(ctx, stats)
	if err == nil {
		threads := 1
		if stats == nil { // a query, which comes alone; documents come many at a time
			threads = runtime.GOMAXPROCS(0)
		}
		var v []float32
		if v, err = m.Embed(ctx, inputs[0], s.pooling, threads); err == nil {
			if slices.ContainsFunc(v, func(x float32) bool { return x-x != 0 }) {
				return nil, &callError{final: true, party: userFault, reason: fmt.Sprintf(
					"the model %s returns infinite or NaN values: its weights are damaged.", s.name)}
			}
			return [][]float32{v}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, timeOver(ctx.Err())
	}
	return nil, err
}

// model returns the model, which stays in memory for as long as s does.
func (s huggingFace) model(ctx context.Context, stats *Stats) (*transformer.Model, error) {
	s.mu.Lock()
	m := *s.held
	s.mu.Unlock()
	if m != nil {
		return m, nil
	}
	waiting := stats.begin() // it may have to be downloaded
	defer waiting.end()
	m, err := s.models.get(ctx, s.name, s.revision)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	*s.held = m
	s.mu.Unlock()
	return m, nil
}

// get returns a model from memory, from its directory, or from the hub. Others may wait for the same one.
func (ms *models) get(ctx context.Context, name, revision string) (*transformer.Model, error) {
	own := ms.directory(name, revision)
	ms.mu.Lock()
	s, ok := ms.loaded[own]
	if !ok {
		s = &slot{filling: make(chan struct{}, 1)}
		ms.loaded[own] = s
	}
	ms.mu.Unlock()
	select {
	case s.filling <- struct{}{}:
		defer func() { <-s.filling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m := s.model.Value(); m != nil {
		return m, nil
	}
	m, err := ms.load(ctx, own, name, revision)
	if err != nil {
		return nil, err
	}
	s.model = weak.Make(m)
	return m, nil
}

// placeOf returns the directory of a model, and whether the model is there. own is the directory of its revision.
func placeOf(own string) (dir string, here bool) {
	for _, dir := range []string{own, filepath.Dir(own)} {
		if _, err := os.Stat(filepath.Join(dir, transformer.Files[0])); !errors.Is(err, fs.ErrNotExist) {
			return dir, true
		}
	}
	return own, false
}

// MissingModel returns the directory in which the files of a local model are missing, or "" if none are.
func (p *Pool) MissingModel(cfg *settings.Embedder) (dir string) {
	if cfg.Composite() {
		cfg = cfg.SearchEmbedder
	}
	if cfg.Source != settings.HuggingFace {
		return ""
	}
	s, err := p.openHuggingFace(cfg.Complete())
	if err != nil { // queries say so
		return ""
	}
	hf := s.(huggingFace)
	if dir, here := placeOf(hf.models.directory(hf.name, hf.revision)); !here {
		return dir
	}
	return ""
}

// directory returns that of a revision of a model.
func (ms *models) directory(name, revision string) string {
	return filepath.Join(ms.dir, filepath.FromSlash(name), revision)
}

// load loads a model, after downloading it if need be. A search does not wait for a download.
func (ms *models) load(ctx context.Context, own, name, revision string) (*transformer.Model, error) {
	dir, here := placeOf(own)
	if !here {
		if _, hurried := ctx.Deadline(); hurried {
			return nil, &callError{final: true, party: runtimeFault, reason: fmt.Sprintf("the model %s is not in %s yet, and searches do not wait for it.", name, own),
				brief: "the model of the embedder is not on this machine yet, and searches do not wait for it."}
		}
		if err := ms.download(ctx, own, name, revision); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &callError{final: true, party: runtimeFault, reason: fmt.Sprintf(
				"the model %s is not in %s, and cannot be downloaded: %v. Put its files there: %s.", name, own, err, strings.Join(transformer.Files, ", ")),
				brief: "the model of the embedder cannot be downloaded."}
		}
	}
	m, err := transformer.Load(dir)
	if err != nil {
		return nil, &callError{final: true, party: userFault, reason: fmt.Sprintf("the model %s cannot be loaded: %v.", name, err), brief: "the model of the embedder cannot be loaded."}
	}
	return m, nil
}

// download gets the files of a model into dir: all of them, or none.
func (ms *models) download(ctx context.Context, dir, name, revision string) (err error) {
	partial := dir + ".partial"
	if err := ms.fs.RemoveAll(partial); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ms.fs.RemoveAll(partial))
		}
	}()
	at := ms.hub + "/" + name + "/resolve/" + url.PathEscape(revision) + "/"
	for i, file := range slices.Concat(transformer.Files, transformer.OptionalFiles) {
		found, err := ms.fetch(ctx, at+file, filepath.Join(partial, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if !found && i < len(transformer.Files) {
			return fmt.Errorf("it has no file %s", file)
		}
	}
	if err := ms.fs.SyncDir(partial); err != nil {
		return err
	}
	_, err = vfs.Move(ms.fs, partial, dir)
	return err
}

// fetch downloads a file of the hub. found is false if it does not exist.
func (ms *models) fetch(ctx context.Context, address, name string) (found bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("the hub sent nothing for %v", maxSilence)) })
	defer silence.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	response, err := ms.client.Do(request)
	if err != nil {
		if u := new(url.Error); errors.As(err, &u) { // it shows addresses that are signed
			err = u.Err
		}
		return false, fmt.Errorf("cannot call %s: %w", ms.hub, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusUnauthorized: // the latter is said of models that there are not
		return false, nil
	default:
		return false, fmt.Errorf("%s answered with status %d", address, response.StatusCode)
	}
	if err := ms.fs.MkdirAll(filepath.Dir(name)); err != nil {
		return false, err
	}
	f, err := ms.fs.Create(name)
	if err != nil {
		return false, err
	}
	n, err := io.Copy(f, &lively{io.LimitReader(response.Body, maxModelFile+1), silence})
	switch {
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	case n > maxModelFile:
		err = fmt.Errorf("%s is longer than %d GiB", address, maxModelFile>>30)
	default:
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return true, err
	}
	return true, ms.fs.SyncDir(filepath.Dir(name))
}

// lively puts off a timer whenever there is something to read.
type lively struct {
	r     io.Reader
	timer *time.Timer
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.timer.Reset(maxSilence)
	}
	return n, err
}
