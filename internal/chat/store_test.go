package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func text(s string) *string { return &s }

// code returns the code of an error for users.
func code(err error) apierr.Code {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func open(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open(fsys, "chats.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) set(t *testing.T, name string, change func(*Settings)) *Settings {
	t.Helper()
	w, err := s.Update(name, func(w *Settings) error { change(w); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestStore(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, mem)
	s.set(t, "b", func(w *Settings) { w.APIKey = text("sk-secret-of-the-provider"); w.Prompts.System = text("Be brief.") })
	s.set(t, "a/ä", func(*Settings) {})
	for _, s := range []*Store{s, open(t, mem), open(t, mem.CrashClone(nil))} {
		if names := s.Names(); !slices.Equal(names, []string{"a/ä", "b"}) {
			t.Errorf("%q", names)
		}
		w, err := s.Get("b")
		if err != nil || *w.APIKey != "sk-secret-of-the-provider" || *w.Prompts.System != "Be brief." || w.Prompts.SearchQParam != nil {
			t.Errorf("%+v %v", w, err)
		}
		shown, err := json.Marshal(w.Shown())
		if err != nil || strings.Contains(string(shown), "secret") || !strings.Contains(string(shown), `"apiKey":"sk-XXXXX..."`) || strings.Contains(string(shown), `"searchQParam":null`) {
			t.Errorf("%s %v", shown, err)
		}
	}
	// A refused update changes nothing.
	if _, err := s.Update("b", func(w *Settings) error { w.Source = VLLM; w.OrgID = text("o"); return nil }); code(err) != "bad_request" {
		t.Error(err)
	}
	if w, _ := s.Get("b"); w.OrgID != nil || w.Source != OpenAI {
		t.Errorf("%+v", w)
	}
	if w, err := s.Reset("b"); err != nil || w.APIKey != nil {
		t.Errorf("%+v %v", w, err)
	}
	if err := s.Delete("b"); err != nil {
		t.Error(err)
	}
	_, err := s.Get("b")
	_, err2 := s.Reset("b")
	for _, err := range []error{err, err2, s.Delete("b")} {
		if code(err) != "chat_not_found" {
			t.Error(err)
		}
	}
	if names := open(t, mem).Names(); !slices.Equal(names, []string{"a/ä"}) {
		t.Errorf("%q", names)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for why, change := range map[string]func(*Settings){
		"source":          func(w *Settings) { w.Source = "gemini" },
		"baseUrl":         func(w *Settings) { w.Source = VLLM },
		"deploymentId":    func(w *Settings) { w.Source, w.BaseURL, w.APIVersion = Azure, text("http://x"), text("v") },
		"apiVersion":      func(w *Settings) { w.Source, w.BaseURL, w.DeploymentID = Azure, text("http://x"), text("d") },
		"line break":      func(w *Settings) { w.APIKey = text("sk-1\n") },
		"longer":          func(w *Settings) { w.BaseURL = text(strings.Repeat("x", maxTextBytes+1)) },
		"in `prompts` is": func(w *Settings) { w.Prompts.System = text(strings.Repeat("x", maxPromptBytes+1)) },
	} {
		_, err := open(t, vfs.NewMem()).Update("w", func(w *Settings) error { change(w); return nil })
		if code(err) != "bad_request" || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", maxNameBytes+1), "\xff"} {
		if _, err := open(t, vfs.NewMem()).Update(name, func(*Settings) error { return nil }); code(err) != "bad_request" {
			t.Errorf("%.10q: %v", name, err)
		}
	}
}

// TestKeyStaysWithItsProvider changes addresses as an attacker would who wants to read the key.
func TestKeyStaysWithItsProvider(t *testing.T) {
	s := open(t, vfs.NewMem())
	s.set(t, "w", func(w *Settings) { w.APIKey = text("sk-secret") })
	for name, tt := range map[string]struct {
		change func(*Settings)
		refuse bool
	}{
		"the path":         {func(w *Settings) { w.BaseURL = text("https://api.openai.com/v2") }, false},
		"the same source":  {func(w *Settings) { w.Source = VLLM; w.BaseURL = text("https://api.openai.com/v1/") }, false},
		"another host":     {func(w *Settings) { w.BaseURL = text("https://other.test/v1") }, true},
		"another port":     {func(w *Settings) { w.BaseURL = text("https://api.openai.com:444/v1") }, true},
		"in the clear":     {func(w *Settings) { w.BaseURL = text("http://api.openai.com/v1") }, true},
		"another provider": {func(w *Settings) { w.Source = Mistral }, true},
		"with the key":     {func(w *Settings) { w.Source = Mistral; w.APIKey = text("sk-secret") }, false},
		"without any":      {func(w *Settings) { w.Source = Mistral; w.APIKey = nil }, false},
		"no URL":           {func(w *Settings) { w.BaseURL = text("%") }, true},
	} {
		again := open(t, vfs.NewMem())
		if err := again.Restore(s.All()); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Update("w", func(w *Settings) error { tt.change(w); return nil }); (code(err) == "bad_request") != tt.refuse {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	for _, content := range []string{``, `{}`, `{"version":1,"xxhash64":"0","content":{}}`} {
		mem := vfs.NewMem()
		if err := vfs.WriteFile(mem, "chats.json", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(mem, "chats.json"); !apierr.IsCorruption(err) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, file := range map[string]string{
		"a": "a.json", "help desk": "help desk.json", "ä%": "ä%.json", "100%": "100%.json", "a.b": "a.b.json",
		"a/b": "a%2Fb.json", `a\b`: "a%5Cb.json", "..": "%2E..json", ".hidden": "%2Ehidden.json", "a%2Fb": "a%252Fb.json", "\x00": "%00.json",
	} {
		if got := FileOf(name); got != file {
			t.Errorf("%q: %q, want %q", name, got, file)
		}
		if got, ok := WorkspaceOf(file); !ok || got != name {
			t.Errorf("%q: %q %v", file, got, ok)
		}
	}
	for _, file := range []string{"", ".json", "a", "a.txt"} {
		if name, ok := WorkspaceOf(file); ok {
			t.Errorf("%q: %q", file, name)
		}
	}
}

func FuzzFileNames(f *testing.F) {
	f.Add("a%2F/..%")
	f.Fuzz(func(t *testing.T, name string) {
		file := FileOf(name)
		if strings.ContainsAny(file, "/\\\x00") || file == ".json" && name != "" {
			t.Fatalf("%q: %q", name, file)
		}
		if got, ok := WorkspaceOf(file); name != "" && (!ok || got != name) {
			t.Fatalf("%q: %q: %q %v", name, file, got, ok)
		}
	})
}

// TestAdopt interrupts Adopt at every operation: nothing may be lost, and the next start must complete it.
func TestAdopt(t *testing.T) {
	const dir = "kept/chats"
	prepare := func() *vfs.MemFS {
		mem := vfs.NewMem()
		for _, d := range []string{"kept", dir} {
			if err := vfs.MakeDir(mem, d); err != nil {
				t.Fatal(err)
			}
		}
		for name, content := range map[string]string{
			"old.json":  `{"source":"mistral","apiKey":"k","prompts":{"system":"S","searchQParam":` + string(marshal(*DefaultPrompts().SearchQParam)) + `}}`,
			"both.json": `{"orgId":"kept"}`, "bad.json": `{"source":"gemini"}`, "notes.txt": "x",
		} {
			if _, err := vfs.Replace(mem, path.Join(dir, name), []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		open(t, mem).set(t, "both", func(w *Settings) { w.OrgID = text("own") })
		return mem
	}
	check := func(mem vfs.FS, cut int) {
		t.Helper()
		s := open(t, mem)
		if err := s.Adopt(dir, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		old, err := s.Get("old")
		if err != nil || old.Source != Mistral || *old.APIKey != "k" || *old.Prompts.System != "S" || old.Prompts.SearchQParam != nil {
			t.Fatalf("cut at %d: %+v %v", cut, old, err)
		}
		if both, err := s.Get("both"); err != nil || *both.OrgID != "own" {
			t.Fatalf("cut at %d: %+v %v", cut, both, err)
		}
		names, err := mem.List(dir)
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"bad.json", "notes.txt"}) {
			t.Fatalf("cut at %d: files left: %q: %v", cut, names, err)
		}
	}
	for cut := 0; ; cut++ {
		mem := prepare()
		n := 0
		hooked := vfs.Hook(mem, func(vfs.Op) error {
			if n++; n > cut {
				return errors.New("power cut")
			}
			return nil
		})
		s, err := Open(hooked, "chats.json")
		if err == nil {
			err = s.Adopt(dir, slog.New(slog.DiscardHandler))
		}
		check(mem.CrashClone(nil), cut)
		if err == nil {
			break
		}
	}
	s := open(t, vfs.NewMem())
	if err := s.Adopt("nowhere", slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if _, err := s.fs.Stat("chats.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written needlessly: %v", err)
	}
}

// TestReload reads what another store has written, and then a damaged file.
func TestReload(t *testing.T) {
	fsys := vfs.NewMem()
	s := open(t, fsys)
	open(t, fsys).set(t, "w", func(w *Settings) {})
	if err := s.Reload(); err != nil || !slices.Equal(s.Names(), []string{"w"}) {
		t.Errorf("the workspaces are %v: %v", s.Names(), err)
	}
	if err := vfs.WriteFile(fsys, "chats.json", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); !apierr.IsCorruption(err) || !slices.Equal(s.Names(), []string{"w"}) {
		t.Errorf("a damaged file leaves %v: %v", s.Names(), err)
	}
}
