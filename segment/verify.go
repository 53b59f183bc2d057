package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// VerifyFile opens a segment, or a file of columns beside one, and verifies it. Reader.OpenColumns checks which segment such columns
// belong to.
func VerifyFile(fs vfs.FS, name string) error {
	r, err := openFile(fs, name, false)
	if err != nil {
		return err
	}
	return errors.Join(r.Verify(), r.Close())
}

// Verify reads the whole file, without its column files, and checks every checksum, every count, and the consistency of
// everything stored twice. After it, no call on the Reader meets damage. The error is an *apierr.Corruption.
func (r *Reader) Verify() error {
	return mapped.Guard(func() error {
		if err := r.verifyContainer(); err != nil {
			return err
		}
		for i := range sectionKinds {
			if k := &sectionKinds[i]; k.verify != nil && r.mayHave(k) {
				if err := k.verify(r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// CheckSums verifies the checksum of every section of the file and its column files. Call it before copying content, so
// that damage never gets a fresh checksum. The error is an *apierr.Corruption, or the context's.
func (r *Reader) CheckSums(ctx context.Context) error { return r.checkSums(ctx.Err) }

// checkSums is CheckSums that calls wait before each piece of at most inspectBytes. It returns an error of wait.
func (r *Reader) checkSums(wait func() error) error {
	return mapped.Guard(func() error {
		large := r.file.Len() >= int64(residentBytes)
		crowded := large && mapped.Crowded()
		for _, s := range r.sections {
			copied := smallAmong(s.tag.String()) // copies walk it, and searches need it
			damage, err := r.blocks.checkPieces(s, inspectBytes, func(at, n int64) (after func(), err error) {
				if err := wait(); err != nil {
					return nil, err
				}
				switch {
				case crowded && copied:
					return r.pass(at, n), nil
				case crowded:
					return r.visit(at, n), nil
				case large:
					return func() { r.file.Advise(at, n, mapped.DontNeed) }, nil
				}
				return func() {}, nil
			})
			if err != nil {
				return err
			}
			if damage != nil {
				r.blocks.tellDamage(damage)
				return damage
			}
		}
		if large {
			r.file.Advise(0, r.file.Len(), mapped.DontNeed)
		}
		for _, b := range r.columnFiles() {
			if err := b.checkSums(wait); err != nil {
				return err
			}
		}
		return nil
	})
}

// giveBack releases the pages of the file and its column files from the process's memory. Later reads map them again.
func (r *Reader) giveBack() {
	r.file.Advise(0, r.file.Len(), mapped.DontNeed)
	for _, b := range r.columnFiles() {
		b.giveBack()
	}
}

// inspectBytes is how much Inspect reads at once.
const inspectBytes = 1 << 20

// Inspect reads the file and its files of columns in the background, including verified parts. It returns the first damage, and
// reports all of it. It calls wait before each piece; an error of wait ends the inspection. It releases the pieces from memory.
func (r *Reader) Inspect(wait func(bytes int) error) error {
	var first *apierr.Corruption
	inspect := func() error {
		found, err := r.inspect(wait)
		if found != nil && first == nil {
			first = found
		}
		return err
	}
	if err := mapped.Guard(inspect); err != nil {
		return err
	}
	var damage error
	if first != nil {
		damage = first
	}
	for _, b := range r.columnFiles() {
		if err := b.Inspect(wait); err != nil && damage == nil {
			damage = err
		}
	}
	return damage
}

// inspect reads the whole file again, including verified parts, and reports all damage. It calls wait before each piece; an error of
// wait ends the inspection. The result is the first damage. It releases the pages at once.
//
// After the first damage it no longer marks blocks as verified: the disk is not trusted, and callers verify on use.
func (r *Reader) inspect(wait func(bytes int) error) (first *apierr.Corruption, err error) {
	found := func(damage *apierr.Corruption) {
		if damage == nil {
			return
		}
		// What every call walks on is checked when the file is opened, and not again when it is used.
		damage.Fatal = smallAmong(damage.Section)
		if first == nil {
			first = damage
			r.forget() // earlier results are no longer trusted
		}
		r.blocks.tellDamage(damage)
	}
	b := &r.blocks
	if b.sums == nil {
		for _, s := range r.sections {
			if err := wait(int(s.length)); err != nil {
				return first, err
			}
			found(b.checkSection(s))
			r.file.Advise(s.offset, s.length, mapped.DontNeed)
		}
		return first, nil
	}
	for at := 0; at < b.covered; at += inspectBytes {
		n := min(inspectBytes, b.covered-at)
		if err := wait(n); err != nil {
			return first, err
		}
		leave := r.visit(int64(at), int64(n))
		for i := at >> blockBits; i<<blockBits < at+n; i++ {
			if damage := b.compare(i, anyByte); damage != nil {
				found(damage)
			} else if first == nil {
				b.markRight(i)
			}
		}
		leave()
	}
	return first, nil
}

// smallAmong reports whether one of the sections with these names, separated by commas, is small.
func smallAmong(names string) bool {
	return slices.ContainsFunc(sectionKinds, func(k sectionKind) bool { return k.small && strings.Contains(names, k.tag.String()) })
}

// verifyContainer checks the checksums, and that there are no gaps between sections.
func (r *Reader) verifyContainer() error {
	end := int64(len(fileMagic))
	seen := map[uint64]bool{}
	gap := func(to int64) error {
		for i, b := range r.data[end:to] {
			if b != 0 {
				return &apierr.Corruption{File: r.name, Section: "padding", Offset: end + int64(i), Reason: fmt.Sprintf("0 expected, %d found", b)}
			}
		}
		return nil
	}
	for _, s := range r.sections {
		if err := gap(s.offset); err != nil {
			return err
		}
		end = s.offset + s.length
		if err := r.checkSum(s); err != nil {
			return err
		}
		key := uint64(s.tag)<<32 | uint64(s.aux)
		if seen[key] {
			return r.damaged(s.tag, "it is there twice")
		}
		seen[key] = true
	}
	return gap(r.footer.tableOffset)
}
