package dump
type Bucket struct{}
