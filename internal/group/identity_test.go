package group

import (
	"bytes"
	"path"
	"reflect"
	"testing"

	"svc/internal/vfs"
)

// TestFlippedBytesOfAnIdentity flips each bit of GROUP and truncates the file at each length: it must never be read as another identity.
func TestFlippedBytesOfAnIdentity(t *testing.T) {
	t.Parallel()
	disk, dir := vfs.NewMem(), "data"
	if err := disk.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	id := &Identity{Name: "shop", Group: newID(), Member: newID(), Role: RoleVoter, Term: 3, Lapsed: true}
	if err := id.write(disk, dir); err != nil {
		t.Fatal(err)
	}
	name := path.Join(dir, IdentityFile)
	whole, err := vfs.ReadFile(disk, name)
	if err != nil {
		t.Fatal(err)
	}
	refused, same := 0, 0
	is := func(b []byte) {
		t.Helper()
		if err := vfs.WriteFile(disk, name, b); err != nil {
			t.Fatal(err)
		}
		switch got, err := identityOf(disk, dir); {
		case err != nil:
			refused++
		case !reflect.DeepEqual(got, id):
			t.Errorf("%q is the identity %+v", b, got)
		default:
			same++ // keys in capitals, or a missing line end
		}
	}
	for i := range whole {
		is(whole[:i])
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			is(b)
		}
	}
	if same > refused/10 {
		t.Errorf("%d files are refused, and %d are read", refused, same)
	}
}
