package auth

import (
	"slices"

	"svc/internal/apierr"
	"svc/internal/boltfile"
)

// Salvage returns the readable keys of a file that may be damaged, newest first, and what is lost. The file must not be open
// elsewhere. The error is fs.ErrNotExist if there is no file.
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
