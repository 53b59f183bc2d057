package publish

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"svc/internal/commit"
	"svc/internal/group"
	"svc/internal/index"
	"svc/internal/vfs"
)

// choose limits a restore to the directory of one index, found in the last CATALOG because an index may be renamed. It keeps only the
// parts of the image that the index needs. All changes of CATALOG are applied, because they also remove remains of an index that had
// the directory before and was never named.
func (r *restore) choose(ctx context.Context, p *plan, st *group.Image) error {
	c := contentOf(st)
	found := false
	for i := range slices.Backward(p.logs) { // those before the last change of CATALOG are not fetched twice
		var b *group.Batch
		err := r.again(ctx, func() (err error) {
			b, err = r.a.batch(ctx, &p.logs[i])
			return err
		})
		if err != nil {
			return err
		}
		err = p.each(&p.logs[i], b, func(e *group.Entry) error {
			if e.Change.Kind != commit.Catalog {
				return nil
			}
			found = true
			return c.change(e)
		})
		if err != nil {
			return err
		}
		if found {
			break
		}
	}
	catalog, base := c.catalog()
	directory, excerpt, err := index.Excerpt(catalog, r.Index, func(name string) (content []byte, err error) {
		if base == nil || path.Base(base.Name) != name {
			return nil, fmt.Errorf("the archive does not have %s", name)
		}
		err = r.again(ctx, func() error {
			in, err := r.a.file(ctx, *base)
			if err != nil {
				return err
			}
			defer in.Close()
			content, err = io.ReadAll(in)
			return err
		})
		return content, err
	})
	if err != nil {
		return err
	}
	r.only, r.excerpt = path.Join(path.Dir(catalogFile), directory), excerpt
	st.Files = slices.DeleteFunc(st.Files, func(f group.ImageFile) bool { return !r.wanted(f.Name) })
	st.Contents = slices.DeleteFunc(st.Contents, func(c group.Content) bool { return !r.wanted(c.Name) })
	return nil
}

// wanted reports whether a file is one that is restored.
func (r *restore) wanted(name string) bool {
	dir := path.Dir(name)
	return r.only == "" || dir == r.only || dir == path.Dir(catalogFile)
}

// leaveOne has CATALOG name the index alone.
func (r *restore) leaveOne() error {
	if _, err := vfs.Replace(r.FS, r.path(catalogFile), r.excerpt); err != nil {
		return err
	}
	dir := path.Dir(r.path(catalogFile))
	names, err := r.FS.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if index.IsBase(name) {
			if err := r.FS.Remove(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
