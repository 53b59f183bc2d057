package dump

import (
	"context"

	"svc/internal/vfs"
)

type Bucket struct{}

type SnapshotImportOptions struct {
	FS      vfs.FS
	Dir     string
	File    string
	Version []byte
}

func ImportSnapshot(ctx context.Context, o SnapshotImportOptions) error { return nil }
