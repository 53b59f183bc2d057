package restform

import (
	"encoding/json"

	"svc/internal/jsontext"
)

// Request makes the bodies of calls.
type Request struct {
	batch          bool
	before, after  []byte // around the placeholder, or around the repeated items
	opened, closed []byte // around the placeholder inside of an item
}

// ParseRequest reads a request template for a placeholder, Text or Fragment. The error is a phrase that follows the name of the setting.
func ParseRequest(raw json.RawMessage, placeholder string) (*Request, error) {
	t, err := read(raw)
	if err != nil {
		return nil, err
	}
	at, err := t.locate(placeholder)
	if err != nil {
		return nil, err
	}
	r := &Request{batch: at.repeated >= 0}
	if !r.batch {
		r.before, r.after = t.around(at.steps)
		return r, nil
	}
	r.before, r.after = t.around(at.steps[:at.repeated])
	r.before, r.after = append(r.before, '['), append([]byte{']'}, r.after...)
	item := t.follow(at.steps[:at.repeated+1])
	r.opened, r.closed = item.around(at.steps[at.repeated+1:])
	return r, nil
}

// Batch reports whether a call can carry several inputs.
func (r *Request) Batch() bool { return r.batch }

// Body makes the body of a call with inputs, which are JSON values. There must be exactly one unless the template is a batch.
func (r *Request) Body(inputs ...[]byte) []byte {
	body := append([]byte(nil), r.before...)
	for i, input := range inputs {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, r.opened...)
		body = append(body, input...)
		body = append(body, r.closed...)
	}
	return append(body, r.after...)
}

// around returns the JSON before and after the value that steps lead to.
func (t tree) around(steps []int) (before, after []byte) {
	if len(steps) == 0 {
		return nil, nil
	}
	open, end := byte('{'), byte('}')
	if t.array {
		open, end = '[', ']'
	}
	out := &before
	*out = append(*out, open)
	for i, item := range t.items {
		if i > 0 {
			*out = append(*out, ',')
		}
		if t.object {
			*out = append(jsontext.AppendQuoted(*out, t.members[i]), ':')
		}
		if i != steps[0] {
			*out = item.append(*out)
			continue
		}
		opened, closed := item.around(steps[1:])
		before = append(before, opened...)
		after = append(after, closed...)
		out = &after
	}
	*out = append(*out, end)
	return before, after
}

func (t tree) append(dst []byte) []byte {
	switch {
	case t.array:
		dst = append(dst, '[')
		for i, item := range t.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	case t.object:
		dst = append(dst, '{')
		for i, item := range t.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsontext.AppendQuoted(dst, t.members[i]), ':')
			dst = item.append(dst)
		}
		return append(dst, '}')
	}
	return append(dst, t.raw...)
}
