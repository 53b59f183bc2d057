package fastapi

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/dump"
	"svc/internal/sealedjson"
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
		{`{"mcpRoute": true, "foreignKeys": false}`, []string{"mcp", "mcpRoute"}},
		{`{"mcp": false, "mcpRoute": null}`, nil},
		{`{"mcp": true, "legacySearch": true, "disableDocumentsFetchQueue": true}`, []string{"mcp", "mcpRoute", "legacySearch", "disableDocumentsFetchQueue"}},
		{`{"mcp": true, "mcpRoute": true, "legacySearch": false}`, []string{"mcp", "mcpRoute", "disableDocumentsFetchQueue"}},
		{`{"mcpRoute": false, "disableDocumentsFetchQueue": false}`, nil},
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

func TestTwoNamesOfAFeature(t *testing.T) {
	c := newClient(t, Options{})
	for _, body := range []string{`{"mcp": true, "mcpRoute": false}`, `{"mcpRoute": true, "mcp": false}`} {
		if r := c.json("PATCH", "/experimental-features", body); r.code() != "bad_request" {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := c.get("/experimental-features"); r.body != noFeatures {
		t.Errorf("partially applied: %s", r.body)
	}
	c.json("PATCH", "/experimental-features", `{"mcpRoute": true}`)
	if r := c.json("POST", "/mcp", `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`); r.code() == "feature_not_enabled" {
		t.Errorf("mcpRoute does not open the route: %d %s", r.status, r.body)
	}
}

// TestOneNameIsStored opens files with one of the two names: that of earlier versions of svc, and that of dumps of v1.54.
func TestOneNameIsStored(t *testing.T) {
	for _, name := range []string{"mcp", "mcpRoute"} {
		fsys := vfs.NewMem()
		if err := sealedjson.Write(fsys, "features.json", dump.FeaturesVersion, []byte(`{"`+name+`": true}`)); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFeatures(fsys, "features.json")
		if err != nil {
			t.Fatal(err)
		}
		if !f.on("mcp") || !f.on("mcpRoute") {
			t.Errorf("with %s stored, mcp is %t and mcpRoute %t", name, f.on("mcp"), f.on("mcpRoute"))
		}
		if err := f.change(map[int]bool{mcpNames[0]: false, mcpNames[1]: false}); err != nil || f.on("mcp") || f.on("mcpRoute") {
			t.Errorf("with %s stored, after a change mcp is %t and mcpRoute %t: %v", name, f.on("mcp"), f.on("mcpRoute"), err)
		}
	}
}

// TestPageListsEveryFeature compares the switches of the page with the table.
func TestPageListsEveryFeature(t *testing.T) {
	source, err := os.ReadFile("dashboard/features.js")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "const switches = {\n")
	list, _, _ = strings.Cut(list, "\n};")
	var names []string
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		names = append(names, name)
	}
	want := slices.DeleteFunc(slices.Clone(featureNames[:]), func(name string) bool { return name == "mcpRoute" }) // shown as mcp
	if !slices.Equal(names, want) {
		t.Errorf("the page lists %q, want %q", names, want)
	}
}

// TestFeaturesAreDurable crashes after each change: acknowledged changes must be there. Launch options are not stored.
func TestFeaturesAreDurable(t *testing.T) {
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
		t.Error("launch options have no effect")
	}
	if err := f.change(map[int]bool{featureIndex("metrics"): false, featureIndex("network"): true}); err != nil {
		t.Fatal(err)
	}
	if f.on("metrics") || !f.on("containsFilter") || !f.on("network") {
		t.Error("a request does not override a launch option")
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

// TestReloadFeatures reads what another process has written, and then a damaged file.
func TestReloadFeatures(t *testing.T) {
	fsys := vfs.NewMem()
	open := func(launch ...string) *Features {
		t.Helper()
		f, err := OpenFeatures(fsys, "features.json", launch...)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open("metrics")
	if err := open().change(map[int]bool{featureIndex("network"): true}); err != nil {
		t.Fatal(err)
	}
	if f.on("network") {
		t.Error("the feature is already on")
	}
	if err := f.Reload(); err != nil || !f.on("network") || !f.on("metrics") || f.on("multimodal") {
		t.Errorf("the features are %s: %v", f.JSON(), err)
	}
	if err := vfs.WriteFile(fsys, "features.json", nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(); !apierr.IsCorruption(err) || !f.on("network") {
		t.Errorf("a damaged file leaves %s: %v", f.JSON(), err)
	}
}
