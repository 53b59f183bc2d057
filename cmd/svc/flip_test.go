package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	flips     = flag.String("flips", "10", "how many bytes to flip of each kind of files of a small data directory, with the server stopped and running; or all")
	flipsPart = flag.String("flips-part", "1/1", "which part of all bytes to flip: 3/10 is the third of ten")
)

const (
	// flipIndexes is the number of indexes with the same documents: one byte of each is flipped at once.
	flipIndexes = 32
	// flipStarts is the largest number of starts in one test.
	flipStarts = 20
)

// unstable matches the parts in which two answers from the same state differ.
var unstable = regexp.MustCompile(`"(processingTimeMs|requestUid)":("[^"]*"|\d+)`)

var flipQuestions = []struct{ method, path, body string }{
	{"POST", "/search", `{"q":"red cat"}`},
	{"POST", "/search", `{"q":"","filter":"price >= 2 AND tags = a","facets":["tags","price"],"sort":["price:desc"]}`},
	{"POST", "/search", `{"vector":[1,0],"hybrid":{"embedder":"m"},"retrieveVectors":true}`},
	{"POST", "/search", `{"q":"w","attributesToHighlight":["*"],"showMatchesPosition":true}`},
	{"POST", "/search", `{"q":"","filter":"_geoRadius(1, 2, 1000)","sort":["_geoPoint(1, 3):asc"]}`},
	{"POST", "/search", `{"q":"re","attributesToSearchOn":["title"]}`},
	{"POST", "/search", `{"q":"kitty word149"}`},
	{"GET", "/documents?limit=10", ""},
	{"GET", "/documents/3", ""},
}

// answersOf sends all questions to an index; "" stands for an error.
func (in *instance) answersOf(index int) []string {
	var all []string
	for _, q := range flipQuestions {
		status, body := in.ask(q.method, fmt.Sprintf("/indexes/s%d%s", index, q.path), q.body)
		if status != http.StatusOK {
			body = ""
		}
		all = append(all, unstable.ReplaceAllString(body, ""))
	}
	return all
}

// knownDamage returns the number of files that the server knows to be damaged.
func (in *instance) knownDamage(t *testing.T) int {
	t.Helper()
	var health struct {
		Details struct{ IndexesSetAside, DamagedSegments int }
	}
	_, body := in.ask("GET", "/health", "")
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return health.Details.IndexesSetAside + health.Details.DamagedSegments
}

// checkedBytes returns the length of a segment that its block checksums cover: everything before the section that has them.
func checkedBytes(segment []byte) int {
	footer := segment[len(segment)-64:]
	table, n := binary.LittleEndian.Uint64(footer), binary.LittleEndian.Uint32(footer[24:])
	last := segment[table+32*uint64(n-1):]
	return int(binary.LittleEndian.Uint64(last[8:]))
}

// flipPlace is one or several bytes of a data directory that are flipped at once.
type flipPlace struct {
	name  string // in the data directory, or in the directory of an index
	at, n int
}

// flipDir is a data directory whose indexes are damaged.
type flipDir struct {
	files map[string][]byte // by name, of all indexes
	want  [][]string        // answers, by index
}

func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = b
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// newFlipDir creates a directory with indexes of the same documents.
func newFlipDir(t *testing.T, indexes int) *flipDir {
	t.Helper()
	base := filepath.Join(t.TempDir(), "db")
	in := start(t, base)
	d := new(flipDir)
	synonyms := `{"kitty":["cat"]`
	for i := range 250 { // so many that the settings need a file
		synonyms += fmt.Sprintf(`,"word%d":["words"]`, i)
	}
	for i := range indexes {
		uid := fmt.Sprint("/indexes/s", i)
		in.run("PATCH", uid+"/settings", `{"filterableAttributes":["price","_geo"],"sortableAttributes":["price","_geo"],"embedders":{"m":{"source":"userProvided","dimensions":2}}}`)
		in.run("POST", uid+"/documents", `[{"id":1,"title":"red cat","price":1,"tags":["a"],"_vectors":{"m":[1,0]}},{"id":2,"title":"a red house with a cat","price":2,"tags":["a","b"],"_vectors":{"m":[0,1]}},
			{"id":3,"title":"white words","price":3,"tags":["a"],"_geo":{"lat":1,"lng":2},"_vectors":{"m":[1,1]}}]`)
		in.run("PATCH", uid+"/settings", `{"filterableAttributes":["price","tags","_geo"],"synonyms":`+synonyms+`}}`) // the column of tags is in a file beside the segment
		d.want = append(d.want, in.answersOf(i))
		if slices.Contains(d.want[i], "") {
			t.Fatalf("%q", d.want[i])
		}
	}
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	d.files = readDir(t, base)
	for _, suffix := range []string{columnsSuffix, settingsSuffix} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(d.files)), func(name string) bool { return filepath.Ext(name) == suffix }) {
			t.Fatalf("there is no file %s: %q", suffix, slices.Sorted(maps.Keys(d.files)))
		}
	}
	return d
}

// ofIndex returns the name of a file of an index.
func ofIndex(index int, name string) string { return fmt.Sprintf("indexes/%06d/%s", index, name) }

// writeFiles writes files, by their names in a directory.
func writeFiles(t *testing.T, db string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(db, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(db, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// flipBits flips a bit in each of some bytes of a file.
func flipBits(t *testing.T, name string, at int, are []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flipped := slices.Clone(are)
	for i := range flipped {
		flipped[i] ^= 1 << rand.IntN(8)
	}
	if _, err := f.WriteAt(flipped, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// chooseFlips returns the places that -flips and -flips-part select.
func chooseFlips(t *testing.T, from []flipPlace) (mine []flipPlace) {
	t.Helper()
	var part, parts int
	if _, err := fmt.Sscanf(*flipsPart, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
		t.Fatalf("there is no part %q", *flipsPart)
	}
	if *flips == "all" {
		for i := part - 1; i < len(from); i += parts {
			mine = append(mine, from[i])
		}
		return mine
	}
	n, err := strconv.Atoi(*flips)
	if err != nil {
		t.Fatal(err)
	}
	for range min(n, len(from)) {
		mine = append(mine, from[rand.IntN(len(from))])
	}
	return mine
}

// flipCounts counts outcomes.
type flipCounts struct{ starts, bytes, failed, right atomic.Int64 }

func (c *flipCounts) String() string {
	return fmt.Sprintf("%d bytes flipped in %d starts; %d answers were errors, %d were right", c.bytes.Load(), c.starts.Load(), c.failed.Load(), c.right.Load())
}

// try starts the server with a flipped byte in each of some indexes, or flips those bytes while it runs. Answers with status 200
// must be right.
func (d *flipDir) try(t *testing.T, c *flipCounts, places []flipPlace, running bool) {
	t.Helper()
	db := filepath.Join(t.TempDir(), "db")
	defer os.RemoveAll(db)
	writeFiles(t, db, d.files)
	flip := func() (found int) {
		for i, p := range places {
			name := ofIndex(i, p.name)
			b := d.files[name]
			at := min(p.at, len(b)-1) // times change the length of manifests by a few bytes, and the file belongs to another index
			flipBits(t, filepath.Join(db, name), at, b[at:at+1])
			// The bytes after the checksums of a segment are read only when it is opened. Columns beside it are rebuilt.
			if isSegment(name) && at < checkedBytes(b) && filepath.Ext(name) != columnsSuffix {
				found++
			}
		}
		return found
	}
	c.starts.Add(1)
	c.bytes.Add(int64(len(places)))
	var args []string
	if running {
		args = []string{"--inspection-interval", "20ms"}
	} else {
		flip()
	}
	in, err := tryStart(t, db, args...)
	if err != nil {
		t.Errorf("damage of indexes keeps the server from starting: %v, %v", places, err)
		return
	}
	defer in.stop()
	if running {
		want := flip()
		for deadline := time.Now().Add(2 * time.Minute); in.knownDamage(t) < want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("inspections report %d files, bytes were flipped in %d: %v", in.knownDamage(t), want, places)
				break
			}
		}
	}
	for index, flipped := range places {
		for i, got := range in.answersOf(index) {
			switch want := d.want[index][i]; got {
			case "":
				c.failed.Add(1)
			case want:
				c.right.Add(1)
			default:
				q := flipQuestions[i]
				t.Errorf("running %v: byte %d of %s: %s %s %s:\n got %s\nwant %s", running, flipped.at, flipped.name, q.method, q.path, q.body, got, want)
			}
		}
	}
}

// TestFlippedBytesAreNeverServed flips each byte of the files of an index while the server is stopped, and those of segments while it
// runs, before any request. The server must start. It may answer with errors, but answers with status 200 must be right. Bytes of many
// indexes are flipped at once, because damage of one does not affect the others. make flips flips every byte, the usual test some of them.
func TestFlippedBytesAreNeverServed(t *testing.T) {
	d := newFlipDir(t, flipIndexes)
	var places, segments []flipPlace
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		inside, ok := strings.CutPrefix(name, ofIndex(0, ""))
		if !ok {
			continue
		}
		for at := range d.files[name] {
			places = append(places, flipPlace{inside, at, 1})
		}
		if isSegment(name) {
			segments = append(segments, places[len(places)-len(d.files[name]):]...)
		}
	}
	c := new(flipCounts)
	t.Run("bytes", func(t *testing.T) {
		for _, kind := range []struct {
			name    string
			places  []flipPlace
			running bool
		}{
			{"segments, server running", chooseFlips(t, segments), true},
			{"server stopped", chooseFlips(t, places), false},
		} {
			for starts := range slices.Chunk(slices.Collect(slices.Chunk(kind.places, flipIndexes)), flipStarts) {
				t.Run(kind.name, func(t *testing.T) {
					t.Parallel()
					for _, places := range starts {
						d.try(t, c, places, kind.running)
					}
					t.Log("so far:", c)
				})
			}
		}
	})
	t.Log(c)
}
