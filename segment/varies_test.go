package segment

import (
	"context"
	"testing"

	"svc/internal/vfs"
)

func TestColumnVaries(t *testing.T) {
	fs := vfs.NewMem()
	build := func(name string, first DocID, spellings ...string) *Reader {
		b := NewBuilder(BuilderOptions{})
		for i, s := range spellings {
			b.StartDoc(first+DocID(i), []byte{byte('a' + int(first) + i)}, []byte("{}"))
			b.String(1, []byte("lyon"), []byte(s))
			b.String(1, []byte("paris"), []byte("Paris"))
			b.EndDoc()
		}
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	same, mixed, plain := build("same", 0, "Lyon", "Lyon"), build("mixed", 10, "Lyon", "LYON", "Lyon"), build("plain", 5, "lyon", "lyon")
	late := build("late", 20, "lyon", "Lyon")
	check := func(name string, r *Reader, varies bool, shown string) {
		t.Helper()
		c := r.Column(1)
		if got := string(c.Original(0)); got != shown || c.Varies(0) != varies {
			t.Errorf("%s: shows %q, varies %v; want %q, %v", name, got, c.Varies(0), shown, varies)
		}
		if c.Varies(1) || string(c.Original(1)) != "Paris" {
			t.Errorf("%s: the other string shows %q, varies %v", name, c.Original(1), c.Varies(1))
		}
	}
	check("same", same, false, "Lyon")
	check("mixed", mixed, true, "Lyon")
	check("plain", plain, false, "lyon")
	check("late", late, true, "lyon")
	merge := func(name string, in ...*Reader) *Reader {
		var live []Live
		for _, r := range in {
			live = append(live, Live{Reader: r})
		}
		if _, err := Merge(context.Background(), fs, name, live, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		r, err := Open(fs, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	check("two that differ", merge("a", same, plain), true, "Lyon")
	check("two alike", merge("b", same, build("again", 30, "Lyon")), false, "Lyon")
	check("one that varies", merge("c", plain, mixed), true, "lyon")
}
