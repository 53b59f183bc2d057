package webhook

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func open(t *testing.T, fsys vfs.FS, launched *Webhook) *Store {
	t.Helper()
	s, err := Open(fsys, "webhooks.json", launched)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(s string) *string { return &s }

// code returns the code of an error for users, or "".
func code(err error) apierr.Code {
	if err == nil {
		return ""
	}
	return apierr.From(err).Code
}

func TestCreate(t *testing.T) {
	many := map[string]*string{}
	for i := range maxHeaders {
		many[fmt.Sprint("X-", i)] = text("v")
	}
	tooMany := map[string]*string{"One-More": text("v")}
	for name, v := range many {
		tooMany[name] = v
	}
	header := func(name, v string) Change {
		return Change{URL: text("https://hooks.test/"), Headers: map[string]*string{name: &v}}
	}
	s := open(t, vfs.NewMem(), nil)
	for i, tt := range []struct {
		c    Change
		want apierr.Code
	}{
		{Change{}, "invalid_webhook_url"},
		{Change{URL: text("")}, "invalid_webhook_url"},
		{Change{URL: text("no scheme")}, "invalid_webhook_url"},
		{Change{URL: text("/relative")}, "invalid_webhook_url"},
		{Change{URL: text("http://")}, "invalid_webhook_url"},
		{Change{URL: text("https://:80/")}, "invalid_webhook_url"},
		{Change{URL: text("http://example_1.com")}, ""},
		{Change{URL: text("other:thing")}, ""},
		{header("bad name", "x"), "invalid_webhook_headers"},
		{header("", "x"), "invalid_webhook_headers"},
		{header("ä", "x"), "invalid_webhook_headers"},
		{header("X", "line\nbreak"), "invalid_webhook_headers"},
		{header("X", "\x7f"), "invalid_webhook_headers"},
		{header("X", "tab\tand ü"), ""},
		{Change{URL: text("https://hooks.test/"), Headers: many}, ""},
		{Change{URL: text("https://hooks.test/"), Headers: tooMany}, "invalid_webhook_headers"},
	} {
		before := len(s.List())
		_, err := s.Create(tt.c)
		if code(err) != tt.want || (len(s.List()) > before) != (err == nil) {
			t.Errorf("%d: %v, want %q", i, err, tt.want)
		}
	}
}

func TestTwentyAndOneOfTheCommandLine(t *testing.T) {
	launched, err := Launched("http://launch.test/", "Bearer launch-secret-0123456789")
	if err != nil {
		t.Fatal(err)
	}
	fsys := vfs.NewMem()
	s := open(t, fsys, launched)
	for range maxWebhooks {
		if _, err := s.Create(Change{URL: text("https://hooks.test/")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(Change{URL: text("https://hooks.test/")}); code(err) != "invalid_webhooks" {
		t.Errorf("one too many: %v", err)
	}
	all := s.List()
	if len(all) != maxWebhooks+1 || all[0] != launched || launched.Editable() {
		t.Fatalf("%d, the first %+v", len(all), all[0])
	}
	for i := range all[1:] {
		if all[i].UUID.String() >= all[i+1].UUID.String() {
			t.Errorf("%s before %s", all[i].UUID, all[i+1].UUID)
		}
	}
	if _, err := s.Update(uuid.Nil, Change{}); code(err) != "immutable_webhook" {
		t.Errorf("update: %v", err)
	}
	if err := s.Delete(uuid.Nil); code(err) != "immutable_webhook" {
		t.Errorf("delete: %v", err)
	}
	// It is not stored.
	again := open(t, fsys, nil)
	if _, err := again.Get(uuid.Nil); len(again.List()) != maxWebhooks || code(err) != "webhook_not_found" {
		t.Errorf("after a start without it: %d, %v", len(again.List()), err)
	}
	if err := again.Delete(all[1].UUID); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Create(Change{URL: text("https://hooks.test/")}); err != nil {
		t.Errorf("in the place of a deleted one: %v", err)
	}
}

func TestUpdate(t *testing.T) {
	fsys := vfs.NewMem()
	s := open(t, fsys, nil)
	w, err := s.Create(Change{URL: text("https://hooks.test/a"), Headers: map[string]*string{"X-One": text("1"), "x-one": text("one"), "X-Null": nil}})
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		c    Change
		want string // url and headers, or the code
	}{
		{Change{}, "https://hooks.test/a map[X-Null: X-One:1 x-one:one]"},
		{Change{URL: text("https://hooks.test/b")}, "https://hooks.test/b map[X-Null: X-One:1 x-one:one]"},
		{Change{Headers: map[string]*string{"X-One": nil, "X-Null": text("n"), "None": nil}}, "https://hooks.test/b map[X-Null:n x-one:one]"},
		{Change{URL: text("")}, "invalid_webhook_url"},
		{Change{URL: text("https://hooks.test/c"), Headers: map[string]*string{"no good": text("")}}, "invalid_webhook_headers"},
		{Change{}, "https://hooks.test/b map[X-Null:n x-one:one]"},
		{Change{ClearHeaders: true}, "https://hooks.test/b map[]"},
	} {
		got := ""
		if w, err := s.Update(w.UUID, tt.c); err != nil {
			got = string(code(err))
		} else {
			got = fmt.Sprint(w.URL, " ", w.Headers)
		}
		if got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
		stored, err := open(t, fsys, nil).Get(w.UUID)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(stored.URL, " ", stored.Headers); strings.HasPrefix(tt.want, "https") && got != tt.want {
			t.Errorf("%d: %s is stored, want %s", i, got, tt.want)
		}
	}
}

// TestFullDisk fails every operation of a change in turn: the change must have no effect.
func TestFullDisk(t *testing.T) {
	full := errors.New("no space left")
	for n := range int64(3) { // the write, its sync and the rename
		mem := vfs.NewMem()
		w, err := open(t, mem, nil).Create(Change{URL: text("https://hooks.test/a")})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, vfs.Hook(mem, vfs.FailFrom(n, 1, func(o vfs.Op) bool {
			return o.Kind == vfs.OpWrite || o.Kind == vfs.OpSync || o.Kind == vfs.OpRename
		}, full)), nil)
		if _, err := s.Update(w.UUID, Change{URL: text("https://hooks.test/b")}); !errors.Is(err, full) {
			t.Errorf("%d: %v", n, err)
		}
		for _, s := range []*Store{s, open(t, mem, nil)} {
			if got, err := s.Get(w.UUID); err != nil || got.URL != "https://hooks.test/a" {
				t.Errorf("%d: %+v, %v", n, got, err)
			}
		}
	}
}

func TestDamagedFile(t *testing.T) {
	for _, b := range []string{"", "{}", "[null]", `[{"url":"https://hooks.test/"}]`, `[{"uuid":"x"}]`} {
		fsys := vfs.NewMem()
		if err := vfs.WriteFile(fsys, "webhooks.json", []byte(b)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(fsys, "webhooks.json", nil); !errors.As(err, new(*apierr.Corruption)) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func TestShown(t *testing.T) {
	for v, want := range map[string]string{
		"":                            "XXX...",
		"abc":                         "XXX...",
		"secret-12345":                "seXXXX...",
		"Bearer ":                     "Bearer XXX...",
		"Bearer abcdefghijkl":         "Bearer abXXXX...",
		"Basic dXNlcjpwYXNzd29yZA==":  "BasXXXXX...",
		"bearer abcdefghijklmnopqrst": "beaXXXXX...",
	} {
		w := Webhook{Headers: map[string]string{"authoRization": v, "X-Api-Key": "shown"}}
		if _, got := w.Shown(); got["authoRization"] != want || got["X-Api-Key"] != "shown" || w.Headers["authoRization"] != v {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// TestHeadersStayWithTheirHost checks that the headers of a webhook are not sent to another host than the one they were set for.
func TestHeadersStayWithTheirHost(t *testing.T) {
	s := open(t, vfs.NewMem(), nil)
	w, err := s.Create(Change{URL: text("https://a.test/x"), Headers: map[string]*string{"Authorization": text("Bearer stored"), "X-Token": text("stored")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		c    Change
		want apierr.Code
	}{
		{Change{URL: text("https://A.test:443/y")}, ""},
		{Change{URL: text("https://b.test/")}, "invalid_webhook_headers"},
		{Change{URL: text("http://a.test/")}, "invalid_webhook_headers"},
		{Change{URL: text("https://a.test@b.test/")}, "invalid_webhook_headers"},
		{Change{URL: text("https://b.test/"), Headers: map[string]*string{"X-Token": text("new")}}, "invalid_webhook_headers"},
		{Change{URL: text("https://b.test/"), Headers: map[string]*string{"X-Token": text("new"), "authorization": nil}}, "invalid_webhook_headers"},
		{Change{URL: text("https://b.test/"), Headers: map[string]*string{"X-Token": text("new"), "Authorization": nil}}, ""},
		{Change{URL: text("https://c.test/"), ClearHeaders: true}, ""},
		{Change{URL: text("https://d.test/")}, ""},
	} {
		got, err := s.Update(w.UUID, tt.c)
		if code(err) != tt.want {
			t.Errorf("%s: %v", *tt.c.URL, err)
		}
		if err == nil && !strings.HasPrefix(*tt.c.URL, "https://A") && (got.Headers["Authorization"] != "" || got.Headers["X-Token"] == "stored") {
			t.Errorf("%s gets %v", *tt.c.URL, got.Headers)
		}
	}
}

// TestReload reads what another store has written, and then a damaged file.
func TestReload(t *testing.T) {
	fsys := vfs.NewMem()
	launched := &Webhook{URL: "https://hooks.test/launched"}
	s := open(t, fsys, launched)
	w, err := open(t, fsys, nil).Create(Change{URL: text("https://hooks.test/a")})
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if all := s.List(); len(all) != 2 || all[0] != launched || all[1].UUID != w.UUID {
			t.Errorf("the webhooks are %v", all)
		}
	}
	for range 2 {
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		check()
	}
	if err := vfs.WriteFile(fsys, "webhooks.json", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); !apierr.IsCorruption(err) {
		t.Errorf("a damaged file: %v", err)
	}
	check()
}
