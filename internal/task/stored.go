package task

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/bytedance/sonic"

	"svc/internal/settings"
)

// The forms of contents in the queue file, where they are not the exported struct.
type (
	storedSettings struct {
		Update    json.RawMessage `json:"update"`
		Reset     bool            `json:"reset,omitempty"`
		MayCreate bool            `json:"mayCreate,omitempty"`
	}
	storedTasks struct {
		Query   string `json:"query"`
		Tasks   []byte `json:"tasks"` // a roaring bitmap
		Deleted int    `json:"deleted,omitempty"`
	}
	storedDeletion struct {
		IDs    *DeleteDocuments `json:"ids,omitempty"`
		Filter *DeleteByFilter  `json:"filter,omitempty"`
		// Expired is stored with an empty IDs, so that an older version of svc, which does not know Expired, deletes nothing.
		Expired *DeleteExpired `json:"expired,omitempty"`
	}
)

// encodeContent gives the stored form of a content; decodeContent reads it.
func encodeContent(c Content) ([]byte, error) {
	if s, ok := c.(storer); ok {
		form, err := s.stored()
		if err != nil {
			return nil, err
		}
		return encode(form), nil
	}
	return encode(c), nil
}

// storeTasks returns the stored form of a content that names tasks: their uids are a bitmap.
func storeTasks(query string, uids []uint32, deleted int) (any, error) {
	b, err := roaring.BitmapOf(uids...).ToBytes()
	if err != nil {
		return nil, fmt.Errorf("cannot encode a set of tasks: %w", err)
	}
	return storedTasks{query, b, deleted}, nil
}

func (c UpdateSettings) stored() (any, error) {
	return storedSettings{c.Update.Full(), c.Reset, c.MayCreate}, nil
}
func (c CancelTasks) stored() (any, error)     { return storeTasks(c.Query, c.Tasks, 0) }
func (c DeleteTasks) stored() (any, error)     { return storeTasks(c.Query, c.Tasks, c.Deleted) }
func (c DeleteDocuments) stored() (any, error) { return storedDeletion{IDs: &c}, nil }
func (c DeleteByFilter) stored() (any, error)  { return storedDeletion{Filter: &c}, nil }
func (c DeleteExpired) stored() (any, error) {
	return storedDeletion{IDs: &DeleteDocuments{}, Expired: &c}, nil
}

// withDeleted returns the stored form of a deletion of tasks after it deleted so many tasks.
func withDeleted(content []byte, deleted int) ([]byte, error) {
	var s storedTasks
	if err := sonic.Unmarshal(content, &s); err != nil {
		return nil, err
	}
	s.Deleted = deleted
	return encode(s), nil
}

func decodeContent(k Kind, b []byte) (Content, error) {
	if k >= kindCount {
		return nil, fmt.Errorf("unknown kind of task %d", k)
	}
	return kinds[k].decode(b)
}

// decodeEdition decodes a task of this kind: an edit function, or a list of operations.
func decodeEdition(b []byte) (Content, error) {
	var s struct{ Operations bool }
	if err := sonic.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	if s.Operations {
		return decodeInto[AddDocuments](b)
	}
	return decodeInto[EditDocuments](b)
}

// decodeDeletion decodes one of the four kinds of deletions of documents. One without a selection deletes
// all.
func decodeDeletion(b []byte) (Content, error) {
	var s storedDeletion
	if err := sonic.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	switch {
	case s.Expired != nil:
		return *s.Expired, nil
	case s.IDs != nil:
		return *s.IDs, nil
	case s.Filter != nil:
		return *s.Filter, nil
	}
	return ClearDocuments{}, nil
}

func decodeSettings(b []byte) (Content, error) {
	var s storedSettings
	if err := sonic.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	u, err := settings.UnmarshalUpdate(s.Update)
	if err != nil {
		return nil, err
	}
	return UpdateSettings{u, s.Reset, s.MayCreate}, nil
}

func decodeCancelation(b []byte) (Content, error) {
	s, uids, err := decodeTasks(b)
	if err != nil {
		return nil, err
	}
	return CancelTasks{s.Query, uids}, nil
}

func decodeTaskDeletion(b []byte) (Content, error) {
	s, uids, err := decodeTasks(b)
	if err != nil {
		return nil, err
	}
	return DeleteTasks{s.Query, uids, s.Deleted}, nil
}

func decodeTasks(b []byte) (s storedTasks, uids []uint32, err error) {
	if err := sonic.Unmarshal(b, &s); err != nil {
		return s, nil, err
	}
	set := roaring.New()
	if err := set.UnmarshalBinary(s.Tasks); err != nil {
		return s, nil, err
	}
	return s, set.ToArray(), nil
}

// decodeNothing is for contents without fields: it ignores what is stored.
func decodeNothing[C Content]([]byte) (Content, error) {
	var c C
	return c, nil
}

// decodeInto decodes JSON into a content. It copies b first, because sonic may keep references and b may be mapped memory.
func decodeInto[C Content](b []byte) (Content, error) {
	var c C
	if err := sonic.Unmarshal(bytes.Clone(b), &c); err != nil {
		return nil, err
	}
	return c, nil
}
