package auth

import (
	"slices"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// Salvage returns the keys that can be read in a file that may be damaged and that nobody has open, the newest first, and what is
// missing. The error is fs.ErrNotExist where there is no file.
func Salvage(file string) (keys []*Key, lost []*apierr.Corruption, err error) {
	r, err := boltfile.Salvage(file)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	err = r.Each(string(keyBucket), func(uid, v []byte) error {
		key, err := decodeKey(uid, v)
		if err != nil {
			return &boltfile.BadValue{Err: err}
		}
		keys = append(keys, key)
		return nil
	})
	slices.SortFunc(keys, newestFirst)
	return keys, r.Lost, err
}
