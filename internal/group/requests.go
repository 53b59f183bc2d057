package group

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
)

// requests are the requests of other members in progress. They use the files and the stores of the member, which closes both only
// after finish.
type requests struct {
	log *slog.Logger

	running sync.WaitGroup
	mu      sync.Mutex
	refuses bool // no request begins any more
}

// begin has finish wait until a request ends. It reports false if requests are refused.
func (r *requests) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.refuses {
		r.running.Add(1)
	}
	return !r.refuses
}

// refuse has requests refused from now on.
func (r *requests) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = true
}

// finish waits until the requests have ended that began before refuse.
func (r *requests) finish() { r.running.Wait() }

// answer answers a request of a member with what h writes, or with its error.
func (r *requests) answer(rw http.ResponseWriter, req *http.Request, h func(*guest) error) {
	g, _ := req.Context().Value(guestKey{}).(*guest)
	if g == nil {
		http.Error(rw, "no member", http.StatusForbidden)
		return
	}
	if !r.begin() {
		http.Error(rw, "this member stops", http.StatusServiceUnavailable)
		return
	}
	defer r.running.Done()
	err := h(g)
	var status *statusError
	switch {
	case err == nil:
	case errors.As(err, &status):
		http.Error(rw, err.Error(), status.status)
	case errors.Is(err, fs.ErrNotExist):
		http.Error(rw, err.Error(), http.StatusNotFound)
	default:
		r.log.Warn("a request of the group failed", "request", req.URL.Path, "from", g.RemoteAddr().String(), "error", err)
		http.Error(rw, err.Error(), http.StatusInternalServerError)
	}
}
