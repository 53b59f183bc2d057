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

// catalogFile names the indexes of a data directory.
const catalogFile = "indexes/CATALOG"

// choose has a restore make the directory of one index alone, which the last CATALOG tells: an index may be renamed. It leaves of the
// image what the index needs. All changes of CATALOG are made, as they remove what an index left that had the directory before and was
// never named.
func (r *restore) choose(ctx context.Context, p *plan, st *group.Image) error {
	var catalog []byte
	var bases []group.File // that the last CATALOG may have
	for i := range st.Contents {
		if st.Contents[i].Name == catalogFile {
			catalog = st.Contents[i].Data
		}
	}
	for i := range st.Files {
		if f := &st.Files[i].File; path.Dir(f.Name) == path.Dir(catalogFile) && index.IsBase(path.Base(f.Name)) {
			bases = append(bases, *f)
		}
	}
	found := false
	for i := range slices.Backward(p.logs) { // those before the last change of CATALOG are not fetched twice
		err := r.a.entriesOf(ctx, p, &p.logs[i], func(e *group.Entry) error {
			if e.Change.Kind == commit.Catalog {
				catalog, bases, found = slices.Clone(e.Change.Data), e.Files, true
			}
			return nil
		})
		if err != nil {
			return err
		}
		if found {
			break
		}
	}
	directory, excerpt, err := index.Excerpt(catalog, r.Index, func(name string) (content []byte, err error) {
		i := slices.IndexFunc(bases, func(f group.File) bool { return path.Base(f.Name) == name })
		if i < 0 {
			return nil, fmt.Errorf("the archive does not have %s", name)
		}
		err = r.again(ctx, func() error {
			in, err := r.a.file(ctx, bases[i])
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
