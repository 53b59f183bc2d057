package s3test

import (
	"crypto/rand"
	"os"
	"strings"
)

// Store says where a store is, as bucket.Options do.
type Store struct{ URL, Endpoint, Region, AccessKey, SecretKey string }

// Real returns a new place in the store of the environment, below a prefix: S3_ENDPOINT, S3_BUCKET, S3_REGION, S3_ACCESS_KEY and
// S3_SECRET_KEY. It returns nil if there is none.
func Real(prefix string) *Store {
	endpoint := os.Getenv("S3_ENDPOINT")
	if endpoint == "" {
		return nil
	}
	return &Store{
		URL: "s3://" + os.Getenv("S3_BUCKET") + prefix + "/" + strings.ToLower(rand.Text()), Endpoint: endpoint,
		Region: os.Getenv("S3_REGION"), AccessKey: os.Getenv("S3_ACCESS_KEY"), SecretKey: os.Getenv("S3_SECRET_KEY"),
	}
}
