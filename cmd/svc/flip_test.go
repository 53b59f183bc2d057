package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io/fs"
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

var flips = flag.String("flips", "10", "bytes to flip of a small data directory, with the server stopped and running; or all")

// unstable is what differs between two answers of the same state.
var unstable = regexp.MustCompile(`"(processingTimeMs|requestUid)":("[^"]*"|\d+)`)

var flipQuestions = []struct{ method, path, body string }{
	{"POST", "/indexes/s/search", `{"q":"red cat"}`},
	{"POST", "/indexes/s/search", `{"q":"","filter":"price >= 2 AND tags = a","facets":["tags","price"],"sort":["price:desc"]}`},
	{"POST", "/indexes/s/search", `{"vector":[1,0],"hybrid":{"embedder":"m"},"retrieveVectors":true}`},
	{"POST", "/indexes/s/search", `{"q":"w","attributesToHighlight":["*"],"showMatchesPosition":true}`},
	{"POST", "/indexes/s/search", `{"q":"","filter":"_geoRadius(1, 2, 1000)","sort":["_geoPoint(1, 3):asc"]}`},
	{"POST", "/indexes/s/search", `{"q":"re","attributesToSearchOn":["title"]}`},
	{"GET", "/indexes/s/documents?limit=10", ""},
	{"GET", "/indexes/s/documents/3", ""},
}

// answersOf asks everything; "" stands for an error.
func (in *instance) answersOf() []string {
	var all []string
	for _, q := range flipQuestions {
		status, body := in.ask(q.method, q.path, q.body)
		if status != http.StatusOK {
			body = ""
		}
		all = append(all, unstable.ReplaceAllString(body, ""))
	}
	return all
}

// knowsDamage reports whether the server has met damage.
func (in *instance) knowsDamage() bool {
	_, body := in.ask("GET", "/health", "")
	return strings.Contains(body, "details")
}

// checkedBytes returns how much of a segment its checksums of blocks cover: all up to the section that has them.
func checkedBytes(segment []byte) int {
	footer := segment[len(segment)-64:]
	table, n := binary.LittleEndian.Uint64(footer), binary.LittleEndian.Uint32(footer[24:])
	last := segment[table+32*uint64(n-1):]
	return int(binary.LittleEndian.Uint64(last[8:]))
}

// TestFlippedBytesAreNeverServed flips one byte of a data directory at a time, any of all its files while the server is
// stopped, and those of segments while it runs, before anything was asked. The server may refuse to start, or answer with errors; what it
// answers with 200 must be right. make flips takes every byte.
func TestFlippedBytesAreNeverServed(t *testing.T) {
	base := filepath.Join(t.TempDir(), "db")
	in := start(t, base)
	in.run("PATCH", "/indexes/s/settings", `{"filterableAttributes":["price","tags","_geo"],"sortableAttributes":["price","_geo"],"embedders":{"m":{"source":"userProvided","dimensions":2}}}`)
	in.run("POST", "/indexes/s/documents", `[{"id":1,"title":"red cat","price":1,"tags":["a"],"_vectors":{"m":[1,0]}},{"id":2,"title":"a red house with a cat","price":2,"tags":["a","b"],"_vectors":{"m":[0,1]}},
		{"id":3,"title":"white words","price":3,"tags":["a"],"_geo":{"lat":1,"lng":2},"_vectors":{"m":[1,1]}}]`)
	want := in.answersOf()
	if slices.Contains(want, "") {
		t.Fatalf("%q", want)
	}
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	type place struct {
		name string
		at   int
	}
	var all, segments []place
	err := filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(base, name)
		files[rel] = b
		for at := range b {
			all = append(all, place{rel, at})
			if filepath.Ext(name) == segmentSuffix {
				segments = append(segments, place{rel, at})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var refused, failed, right atomic.Int64
	try := func(t *testing.T, p place, running bool) {
		t.Helper()
		db := filepath.Join(t.TempDir(), "db")
		for name, b := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(db, name)), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(db, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		flip := func() {
			f, err := os.OpenFile(filepath.Join(db, p.name), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte{files[p.name][p.at] ^ 1<<rand.IntN(8)}, int64(p.at)); err != nil {
				t.Fatal(err)
			}
		}
		var args []string
		if running {
			args = []string{"--inspection-interval", "20ms"}
		} else {
			flip()
		}
		in, err := tryStart(t, db, args...)
		if err != nil {
			refused.Add(1)
			return
		}
		defer os.RemoveAll(db)
		defer in.stop()
		if running {
			flip()
			// What opening the segment has checked is found by an inspection; what is behind its checksums is read at no other time.
			for deadline := time.Now().Add(time.Minute); !in.knowsDamage() && p.at < checkedBytes(files[p.name]); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("byte %d of %s was flipped, and no inspection tells", p.at, p.name)
					break
				}
			}
		}
		for i, got := range in.answersOf() {
			switch got {
			case "":
				failed.Add(1)
			case want[i]:
				right.Add(1)
			default:
				t.Errorf("running %v: byte %d of %s: %s %s %s:\n got %s\nwant %s", running, p.at, p.name, flipQuestions[i].method, flipQuestions[i].path, flipQuestions[i].body, got, want[i])
			}
		}
	}
	n, err := strconv.Atoi(*flips)
	if err != nil && *flips != "all" {
		t.Fatal(err)
	}
	if *flips != "all" && n > len(segments) {
		t.Fatalf("the segments have %d bytes", len(segments))
	}
	count := 0
	t.Run("bytes", func(t *testing.T) {
		for _, running := range []bool{true, false} {
			places := slices.Clone(all)
			if running {
				places = slices.Clone(segments)
			}
			rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
			if *flips != "all" {
				// Most of the directory are the queue's and the keys' free pages: half of the bytes are of segments.
				for i := range n - n/2 {
					places[i] = segments[rand.IntN(len(segments))]
				}
				places = places[:n]
			}
			count += len(places)
			for part := range slices.Chunk(places, 100) {
				t.Run(fmt.Sprintf("running=%v", running), func(t *testing.T) {
					t.Parallel()
					for _, p := range part {
						try(t, p, running && strings.HasSuffix(p.name, segmentSuffix))
					}
					t.Logf("so far: %d starts refused, %d answers were errors, %d were right", refused.Load(), failed.Load(), right.Load())
				})
			}
		}
	})
	t.Logf("%d bytes flipped: %d starts refused, %d answers were errors, %d were right", count, refused.Load(), failed.Load(), right.Load())
}
