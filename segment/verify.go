package segment

import (
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
	"svc/internal/mapped"
)

// Verify reads the whole file and checks it: every checksum, every number
// against what it counts, both ways of everything that is kept both ways. After
// it, no call on the Reader meets damage. The error is an *apierr.Corruption.
func (r *Reader) Verify() error {
	if err := r.verifyContainer(); err != nil {
		return err
	}
	for i := range sectionKinds {
		if k := &sectionKinds[i]; k.verify != nil {
			if err := k.verify(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckSums checks the checksum of every section: whether the file has the bytes that were written. Whoever makes other files
// of its content asks first, so that damage does not get a checksum of its own. The error is an *apierr.Corruption, or the context's.
func (r *Reader) CheckSums(ctx context.Context) error {
	for _, s := range r.sections {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.checkSum(s); err != nil {
			return err
		}
	}
	return nil
}

// inspectBytes is how much Inspect reads at once.
const inspectBytes = 1 << 20

// Inspect is CheckSums beside other work: wait is called ahead of each piece that is read, and the pieces
// are not kept in memory. Its error ends the inspection.
func (r *Reader) Inspect(wait func(bytes int) error) error {
	digest := xxhash.New()
	for _, s := range r.sections {
		digest.Reset()
		for at := int64(0); at < s.length; at += inspectBytes {
			n := min(inspectBytes, s.length-at)
			if err := wait(int(n)); err != nil {
				return err
			}
			_, _ = digest.Write(r.data[s.offset+at : s.offset+at+n])
			r.file.Advise(s.offset+at, n, mapped.DontNeed)
		}
		if got := digest.Sum64(); got != s.checksum {
			return r.wrongSum(s, got)
		}
	}
	return nil
}

// verifyContainer checks the checksums, and that nothing stands between sections.
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
