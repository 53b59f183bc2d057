package network

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/outbound"
	"svc/internal/vfs"
)

// TestAnotherOwnerIsAsked makes owners of shards fail in several ways: other owners of the same shards are asked, each once, before an
// error is returned.
func TestAnotherOwnerIsAsked(t *testing.T) {
	const (
		fine   = "fine"
		broken = "broken" // status 500
		silent = "silent" // never answers
		gone   = "gone"   // refuses connections
	)
	for _, tt := range []struct {
		what    string
		state   map[string]string   // by remote; "" works
		asked   map[string][]string // shards by remote
		answers map[string][]string // shards by remote that answers
		failed  []string
	}{
		{"all well", nil, map[string][]string{"b": {"x"}, "c": {"z"}}, map[string][]string{"b": {"x"}, "c": {"z"}}, nil},
		{"one broken", map[string]string{"b": broken}, map[string][]string{"b": {"x"}}, map[string][]string{"c": {"x"}}, nil},
		{"one gone", map[string]string{"b": gone}, map[string][]string{"b": {"x"}}, map[string][]string{"c": {"x"}}, nil},
		{"one silent", map[string]string{"b": silent}, map[string][]string{"b": {"x"}}, map[string][]string{"c": {"x"}}, nil},
		{"two away", map[string]string{"b": gone, "c": broken}, map[string][]string{"b": {"x"}}, map[string][]string{"d": {"x"}}, nil},
		{"two silent", map[string]string{"b": silent, "c": silent}, map[string][]string{"b": {"x"}}, map[string][]string{"d": {"x"}}, nil},
		{"all away", map[string]string{"b": gone, "c": broken, "d": broken}, map[string][]string{"b": {"x"}}, nil, []string{"b", "c", "d"}},
		{"alone with a shard", map[string]string{"b": broken}, map[string][]string{"b": {"only"}}, nil, []string{"b"}},
		{"alone with one of two", map[string]string{"b": broken}, map[string][]string{"b": {"x", "only"}}, map[string][]string{"c": {"x"}}, []string{"b"}},
		{"two shards, two others", map[string]string{"b": broken}, map[string][]string{"b": {"x", "y"}}, map[string][]string{"c": {"x"}, "d": {"y"}}, nil},
		{"beside one that answers", map[string]string{"b": broken}, map[string][]string{"b": {"x"}, "c": {"z"}}, map[string][]string{"c": {"x", "z"}}, nil},
		{"no shard", map[string]string{"b": broken}, map[string][]string{"b": {""}}, nil, []string{"b"}},
		{"both without another", map[string]string{"b": broken, "c": gone}, map[string][]string{"b": {"only"}, "c": {"z"}}, map[string][]string{"d": {"z"}}, []string{"b"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			answered := map[string][]string{}
			p := &Patch{Self: given("me"), Remotes: map[string]*RemotePatch{"me": at("http://me.test")}, Shards: map[string]*ShardPatch{
				"x": owners("me", "b", "c", "d"), "y": owners("b", "d"), "z": owners("c", "d"), "only": owners("b"),
			}}
			for _, name := range []string{"b", "c", "d"} {
				remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					switch tt.state[name] {
					case broken:
						w.WriteHeader(http.StatusInternalServerError)
						return
					case silent:
						<-r.Context().Done()
						return
					}
					mu.Lock()
					defer mu.Unlock()
					for _, shard := range []string{"x", "y", "z", "only"} {
						if strings.Contains(string(body), fmt.Sprintf(`"shard":%q`, shard)) {
							answered[name] = append(answered[name], shard)
						}
					}
					_, _ = io.WriteString(w, emptyAnswer)
				}))
				t.Cleanup(remote.Close)
				p.Remotes[name] = at(remote.URL)
				if tt.state[name] == gone {
					p.Remotes[name] = at(nowhere)
				}
			}
			n, err := Open(Options{FS: vfs.NewMem(), File: "network.json", Allowed: outbound.Any(), SearchTimeout: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.Close() })
			if err := patch(n, p); err != nil {
				t.Fatal(err)
			}
			var asked []RemoteSearch
			for _, name := range sortedNames(tt.asked) {
				one := RemoteSearch{Remote: name, Federation: []byte(`{}`)}
				for _, shard := range tt.asked[name] {
					one.Queries = append(one.Queries, RemoteQuery{Body: fmt.Appendf(nil, `{"shard":%q}`, shard), Shard: shard})
				}
				asked = append(asked, one)
			}
			var failed []string
			for _, a := range n.Search(context.Background(), asked, nil) {
				if a.Err != nil {
					failed = append(failed, a.Remote)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, shards := range answered {
				slices.Sort(shards)
			}
			if fmt.Sprint(answered) != fmt.Sprint(tt.answers) || !slices.Equal(failed, tt.failed) {
				t.Errorf("%v answered and %v failed, want %v and %v", answered, failed, tt.answers, tt.failed)
			}
		})
	}
}
