package fastapi

import (
	"errors"
	"math/rand/v2"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

const noFeatures = `{"metrics":false,"logsRoute":false,"editDocumentsByFunction":false,"containsFilter":false,"dynamicSearchRules":false,` +
	`"network":false,"getTaskDocumentsRoute":false,"taskQueueCompactionRoute":false,"compositeEmbedders":false,"chatCompletions":false,` +
	`"multimodal":false,"foreignKeys":false}`

func TestFeatures(t *testing.T) {
	c := newClient(t, Options{})
	if r := c.get("/experimental-features?x=1"); r.status != 200 || r.body != noFeatures {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, tt := range []struct {
		body string
		on   []string
	}{
		{`{"network": true, "metrics": null}`, []string{"network"}},
		{`{}`, []string{"network"}},
		{`{"foreignKeys": true, "network": false}`, []string{"foreignKeys"}},
	} {
		r := c.json("PATCH", "/experimental-features", tt.body)
		var want featureSet
		for _, name := range tt.on {
			want[featureIndex(name)] = true
		}
		if r.status != 200 || r.body != string(want.appendJSON(nil)) {
			t.Errorf("%s: %d %s", tt.body, r.status, r.body)
		}
	}
}

// TestFeaturesAreKept crashes after each change: what was acknowledged is there. Launch options are not stored.
func TestFeaturesAreKept(t *testing.T) {
	fsys := vfs.NewMem()
	if err := errors.Join(fsys.MkdirAll("/data"), fsys.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	open := func(fsys vfs.FS, launch ...string) *Features {
		t.Helper()
		f, err := OpenFeatures(fsys, "/data/features.json", launch...)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open(fsys)
	for i := range 20 {
		given := map[int]bool{rnd.IntN(len(featureNames)): i%2 == 0, rnd.IntN(len(featureNames)): true}
		if err := f.change(given); err != nil {
			t.Fatal(err)
		}
		if got := open(fsys.CrashClone(rnd)); *got.now.Load() != *f.now.Load() {
			t.Fatalf("after %v: %v, want %v", given, *got.now.Load(), *f.now.Load())
		}
	}

	fsys = vfs.NewMem()
	if err := fsys.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	f = open(fsys, "metrics", "containsFilter")
	if !f.on("metrics") || !f.on("containsFilter") || f.on("network") {
		t.Error("launch options do not count")
	}
	if err := f.change(map[int]bool{featureIndex("metrics"): false, featureIndex("network"): true}); err != nil {
		t.Fatal(err)
	}
	if f.on("metrics") || !f.on("containsFilter") || !f.on("network") {
		t.Error("a request does not win over a launch option")
	}
	if f = open(fsys); f.on("metrics") || f.on("containsFilter") || !f.on("network") {
		t.Error("a launch option was stored")
	}
}

func TestFeaturesDamaged(t *testing.T) {
	fsys := vfs.NewMem()
	if err := vfs.WriteFile(fsys, "/features.json", []byte(`{"metrics": tr`)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFeatures(fsys, "/features.json"); !apierr.IsCorruption(err) {
		t.Errorf("got %v", err)
	}
}
