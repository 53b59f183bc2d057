package standby

import (
	"io"
	"io/fs"
	"strings"
	"testing"

	"svc/internal/commit"
)

// TestChangesThatAreRefused applies changes that are none of this svc, or reach outside of the directory.
func TestChangesThatAreRefused(t *testing.T) {
	m := newMember(t)
	none := func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }
	for _, tt := range []struct {
		change commit.Change
		want   string
	}{
		{commit.Change{Kind: 7, Name: "x"}, "a later version of svc wrote it"},
		{commit.Change{Name: "x"}, "a later version of svc wrote it"},
		{commit.Change{Kind: commit.Sealed, Name: "../x"}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: "/x"}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: "."}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: ""}, "outside the data directory"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x00"), Files: []string{"a/../../x"}}, "outside the data directory"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x00"), Files: []string{"tasks/payloads/x"}}, "cannot copy tasks/payloads/x"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x01\x01a\x09")}, "damaged"},
		{commit.Change{Kind: commit.Manifest, Name: "indexes/000000/MANIFEST", Data: []byte("x")}, "damaged"},
		{commit.Change{Kind: commit.Catalog, Name: "indexes/CATALOG", Data: []byte("x")}, "damaged"},
	} {
		err := m.Apply(tt.change, none)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %q: %v, want %q", tt.change.Kind, tt.change.Name, err, tt.want)
		}
	}
	if files := tree(t, m.disk, m.dir); len(files) > 0 {
		t.Errorf("refused changes leave %v", files)
	}
}
