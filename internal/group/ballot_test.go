package group

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// proposals returns changes with files of their own, with a file instead of inline data, and with neither.
func proposals() map[string]*proposal {
	small, large := fileOf("tasks/payloads/a", []byte("small")), File{"tasks/payloads/b", 1 << 20, xxh3.Uint128{Hi: 3, Lo: 4}}
	data := File{Size: 1 << 19, Sum: xxh3.Uint128{Hi: 5, Lo: 6}}
	entry := func(data string, files ...File) *Entry {
		e := &Entry{At: 1_700_000_000_123_456_789, Change: commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte(data)}, Files: files}
		for _, f := range files {
			e.Change.Files = append(e.Change.Files, f.Name)
		}
		return e
	}
	nonce := [16]byte{1, 2, 3, 15: 16}
	return map[string]*proposal{
		"files": {level: 1, nonce: nonce, inline: map[int][]byte{1: []byte("small")}, entry: entry("changes", large, small)},
		"large": {level: 1, nonce: nonce, inline: map[int][]byte{}, data: &data, entry: entry("")},
		"plain": {level: 1, nonce: nonce, inline: map[int][]byte{}, entry: entry("changes")},
	}
}

// TestProposals compares encoded proposals with testdata/proposals, which must not change, and decodes them again.
func TestProposals(t *testing.T) {
	all := proposals()
	got := ""
	for _, name := range []string{"files", "large", "plain"} {
		got += name + "\n" + hex.Dump(all[name].encode())
	}
	name := filepath.Join("testdata", "proposals")
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the formats are\n%s\nwant\n%s", got, want)
	}
	for name, p := range all {
		b := p.encode()
		again, err := decodeProposal(b, proposalVersion)
		if err != nil || !bytes.Equal(again.encode(), b) || !reflect.DeepEqual(again.data, p.data) || !reflect.DeepEqual(again.inline, p.inline) || again.nonce != p.nonce {
			t.Errorf("%s: %+v, %v, want %+v", name, again, err, p)
		}
		for n := range len(b) - len(p.entry.Change.Data) { // the data end where the entry ends: only the log knows their length
			if _, err := decodeProposal(b[:n], proposalVersion); err == nil {
				t.Errorf("%s: %d of %d bytes are accepted as a whole proposal", name, n, len(b))
			}
		}
	}
	newer := all["plain"].encode()
	newer[0]++
	if _, err := decodeProposal(newer, proposalVersion); err == nil || !strings.Contains(err.Error(), "update this svc first") {
		t.Errorf("a later version: %v", err)
	}
	keys := all["files"].keys()
	if len(keys) != 1 || keys[fileKey(1<<20, xxh3.Uint128{Hi: 3, Lo: 4})] != 1<<20 {
		t.Errorf("a member needs %v", keys)
	}
	if keys := all["large"].keys(); keys[fileKey(1<<19, xxh3.Uint128{Hi: 5, Lo: 6})] != 1<<19 {
		t.Errorf("a member needs %v", keys)
	}
}

// TestInvalidProposals refuses files with other content, files named twice or not named by the entry, and data in two places.
func TestInvalidProposals(t *testing.T) {
	for name, change := range map[string]func(files, large *proposal) *proposal{
		"other content":       func(p, _ *proposal) *proposal { p.inline[1] = []byte("smell"); return p },
		"other size":          func(p, _ *proposal) *proposal { p.inline[1] = []byte("smaller"); return p },
		"an unknown file":     func(p, _ *proposal) *proposal { p.entry.Files = p.entry.Files[:1]; return p },
		"data in two places":  func(_, p *proposal) *proposal { p.entry.Change.Data = []byte("changes"); return p },
		"a file outside":      func(_, p *proposal) *proposal { p.entry.Change.Name = "../x"; return p },
		"a negative size":     func(_, p *proposal) *proposal { p.data.Size = -1; return p },
		"an unnamed position": func(p, _ *proposal) *proposal { p.entry.Change.Name = "."; return p },
	} {
		all := proposals()
		b := change(all["files"], all["large"]).encode()
		if name == "an unknown file" { // encode leaves it out
			all = proposals()
			b = all["files"].encode()
			b[18] = 7 // its number
		}
		if _, err := decodeProposal(b, proposalVersion); !errors.Is(err, errEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecodeProposal decodes bytes as a proposal and as the name of a file in the spool. Encoding the result must give the same bytes.
func FuzzDecodeProposal(f *testing.F) {
	for _, p := range proposals() {
		f.Add(p.encode(), fileKey(10, p.entry.fileSum()))
	}
	f.Fuzz(func(t *testing.T, in []byte, key string) {
		if p, err := decodeProposal(in, proposalVersion); err == nil && !bytes.Equal(p.encode(), in) {
			t.Errorf("the proposal %x is read as %x", in, p.encode())
		}
		if size, sum, ok := parseKey(key); ok && (fileKey(size, sum) != key || size < 0) {
			t.Errorf("the key %q is read as %q", key, fileKey(size, sum))
		}
	})
}

func (e *Entry) fileSum() xxh3.Uint128 {
	if len(e.Files) == 0 {
		return xxh3.Uint128{}
	}
	return e.Files[0].Sum
}

// TestSpool checks that a file appears only when all of its bytes have arrived, and stays as long as an entry or another
// member may need it.
func TestSpool(t *testing.T) {
	fsys := vfs.NewMem()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(vfs.MakeDir(fsys, "data/group/spool"))
	for _, name := range []string{"left.tmp", "unknown", strings.Repeat("0", 32) + "-01", strings.Repeat("0", 32) + "-2"} {
		must(vfs.WriteFile(fsys, path.Join("data/group/spool", name), []byte("x")))
	}
	s, err := openSpool(fsys, "data/group/spool")
	must(err)
	if names, err := fsys.List("data/group/spool"); err != nil || len(names) > 0 {
		t.Errorf("there are %v, %v", names, err)
	}
	whole := []byte("the bytes of a file")
	f := fileOf("", whole)
	key := fileKey(f.Size, f.Sum)
	for what, x := range map[string]struct {
		key  string
		body io.Reader
	}{
		"short":             {key, bytes.NewReader(whole[1:])},
		"long":              {key, io.MultiReader(bytes.NewReader(whole), strings.NewReader("more"))},
		"other bytes":       {key, bytes.NewReader(bytes.ToUpper(whole))},
		"torn":              {key, io.MultiReader(bytes.NewReader(whole[:5]), &torn{})},
		"no key":            {"a", bytes.NewReader(whole)},
		"a path":            {"../" + key, bytes.NewReader(whole)},
		"another form":      {strings.ToUpper(key), bytes.NewReader(whole)},
		"a negative length": {key[:33] + "-1", bytes.NewReader(whole)},
	} {
		if s.receive(x.key, 5, x.body) == nil || s.has(key, 0) {
			t.Errorf("%s: the spool accepts it", what)
		}
	}
	must(s.receive(key, 5, bytes.NewReader(whole)))
	must(s.put(fileKey(1, hash128([]byte("a"))), []byte("a"), 6))
	must(vfs.WriteFile(fsys, "data/linked", []byte("bc")))
	must(s.link("data/linked", fileKey(2, hash128([]byte("bc"))), 2, 7))
	must(s.syncNames(s.named.Load()))
	open := func(s *spool) (found []string) {
		for _, content := range []string{string(whole), "a", "bc"} {
			in, err := s.open(fileKey(int64(len(content)), hash128([]byte(content))))
			if err != nil {
				continue
			}
			b, err := io.ReadAll(in)
			must(errors.Join(err, in.Close()))
			if string(b) != content {
				t.Errorf("%q is %q", content, b)
			}
			found = append(found, content)
		}
		return found
	}
	if got := open(s); len(got) != 3 {
		t.Errorf("there are %q", got)
	}
	crashed, err := openSpool(fsys.CrashClone(rand.New(rand.NewPCG(1, 2))), "data/group/spool")
	must(err)
	crashed.keep(7)
	for key, f := range crashed.files {
		f.at = f.at.Add(-spoolTime - time.Second)
		crashed.files[key] = f
	}
	must(crashed.sweep(6)) // entries up to the last one may name them
	if got := open(crashed); len(got) != 3 {
		t.Errorf("after a crash there are %q", got)
	}
	must(s.sweep(7)) // all files are too young to be removed
	for key, f := range s.files {
		f.at = f.at.Add(-spoolTime - time.Second)
		s.files[key] = f
	}
	for applied, want := range map[uint64]int{4: 3} {
		must(s.sweep(applied))
		if got := open(s); len(got) != want {
			t.Errorf("after the sweep at %d there are %q", applied, got)
		}
	}
	must(s.sweep(6))
	if got := fmt.Sprint(open(s)); got != "[bc]" {
		t.Errorf("after the sweep at 6 there are %s", got)
	}
	if !s.has(fileKey(2, hash128([]byte("bc"))), 9) {
		t.Error("a file of an entry to come is missing")
	}
	must(s.sweep(8))
	if got := open(s); len(got) != 1 {
		t.Errorf("a file that a later entry names is removed: there are %q", got)
	}
	const huge = "huge"
	s.files[huge] = spooled{8, spoolBytes + 1, time.Now(), 0} // an index that was guessed: the entry comes with a later one
	must(s.sweep(9))
	if !s.has(huge, 10) {
		t.Error("a new file is removed from a full spool")
	}
	s.files[huge] = spooled{10, spoolBytes + 1, time.Now().Add(-aheadTime - time.Second), 0}
	must(s.sweep(10))
	if s.has(huge, 10) {
		t.Error("an old file stays in a full spool")
	}
}

type torn struct{}

func (*torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestDamagedIdentity changes each byte of GROUP: the result must not be read as the identity of another member.
func TestDamagedIdentity(t *testing.T) {
	fsys := vfs.NewMem()
	id := &Identity{Group: newID(), Name: "shop", Member: newID(), Role: RoleVoter, Term: 3}
	if err := fsys.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	if err := id.write(fsys, "data"); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(fsys, "data/GROUP")
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		flipped := bytes.Clone(b)
		flipped[i] ^= 1 << (i % 8)
		if err := vfs.WriteFile(fsys, "data/GROUP", flipped); err != nil {
			t.Fatal(err)
		}
		if got, err := identityOf(fsys, "data"); err == nil && (got == nil || !reflect.DeepEqual(got, id)) {
			t.Errorf("with byte %d changed, the identity is %+v", i, got)
		}
	}
}
