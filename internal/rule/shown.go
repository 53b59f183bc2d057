package rule

import (
	"strconv"
	"time"

	"svc/internal/jsontext"
)

// AppendJSON appends the rule as the API and dumps show it.
func (r *Rule) AppendJSON(dst []byte) []byte {
	dst = jsontext.AppendQuoted(append(dst, `{"uid":`...), r.UID)
	if r.Description != nil {
		dst = jsontext.AppendQuoted(append(dst, `,"description":`...), *r.Description)
	}
	if r.Priority != nil {
		name := `,"precedence":`
		if r.Form == Lists {
			name = `,"priority":`
		}
		dst = strconv.AppendUint(append(dst, name...), *r.Priority, 10)
	}
	dst = strconv.AppendBool(append(dst, `,"active":`...), r.Active)
	dst = append(dst, `,"conditions":`...)
	if r.Form == Lists {
		dst = appendList(dst, r.Conditions, (*Condition).appendJSON)
	} else {
		dst = r.appendConditions(dst)
	}
	dst = append(dst, `,"actions":`...)
	if r.Form == Objects {
		dst = r.appendActions(dst)
	} else {
		dst = appendList(dst, r.Actions, (*Action).appendJSON)
	}
	if !r.UpdatedAt.IsZero() {
		dst = append(r.UpdatedAt.UTC().AppendFormat(append(dst, `,"lastUpdatedAt":"`...), time.RFC3339Nano), '"')
	}
	return append(dst, '}')
}

// appendList appends an array.
func appendList[T any](dst []byte, list []T, element func(*T, []byte) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(&list[i], dst)
	}
	return append(dst, ']')
}

// appendName appends the name of a member of the object that dst ends in, and a colon.
func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), name...), `":`...)
}

// appendConditions appends the object of conditions.
func (r *Rule) appendConditions(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range r.Conditions {
		switch c := &r.Conditions[i]; {
		case c.Query != nil:
			dst = append(appendName(dst, "query"), '{')
			if c.Query.IsEmpty != nil {
				dst = strconv.AppendBool(appendName(dst, "isEmpty"), *c.Query.IsEmpty)
			}
			if c.Query.Words != nil {
				dst = jsontext.AppendQuoted(appendName(dst, "words"), *c.Query.Words)
			}
			if c.Query.Contains != nil {
				dst = jsontext.AppendQuoted(appendName(dst, "contains"), *c.Query.Contains)
			}
			dst = append(dst, '}')
		case c.Time != nil:
			dst = append(appendName(dst, "time"), '{')
			dst = appendMoment(dst, "start", c.Time.Start)
			dst = append(appendMoment(dst, "end", c.Time.End), '}')
		default:
			dst = append(appendName(dst, "filter"), `{"values":`...)
			dst = append(append(dst, c.Filter.raw...), '}')
		}
	}
	return append(dst, '}')
}

// appendActions appends the object of actions.
func (r *Rule) appendActions(dst []byte) []byte {
	dst = append(dst, '{')
	for _, kind := range [...]string{"pin", "scale"} {
		first := true
		for i := range r.Actions {
			a := &r.Actions[i]
			if (a.Pin != nil) != (kind == "pin") {
				continue
			}
			if first {
				dst = append(appendName(dst, kind), '[')
			} else {
				dst = append(dst, ',')
			}
			first = false
			dst = a.appendMember(dst)
		}
		if !first {
			dst = append(dst, ']')
		}
	}
	return append(dst, '}')
}

// appendMember appends an action as the object of actions has it.
func (a *Action) appendMember(dst []byte) []byte {
	dst = append(dst, '{')
	s := &a.Selector
	if a.Pin != nil {
		if s.ID != nil {
			dst = jsontext.AppendQuoted(appendName(dst, "id"), *s.ID)
		}
		dst = strconv.AppendUint(appendName(dst, "position"), uint64(*a.Pin), 10)
	} else {
		dst = strconv.AppendFloat(appendName(dst, "weight"), *a.Scale, 'g', -1, 64)
		if s.IDs != nil {
			dst = appendList(appendName(dst, "ids"), s.IDs, func(id *string, dst []byte) []byte { return jsontext.AppendQuoted(dst, *id) })
		}
		if s.raw != nil {
			dst = append(appendName(dst, "filter"), s.raw...)
		}
	}
	if s.IndexUID != nil {
		dst = jsontext.AppendQuoted(appendName(dst, "indexUid"), *s.IndexUID)
	}
	return append(dst, '}')
}

func (c *Condition) appendJSON(dst []byte) []byte {
	switch {
	case c.Query != nil:
		dst = append(dst, `{"scope":"query"`...)
		if q := c.Query; q.IsEmpty != nil {
			dst = strconv.AppendBool(append(dst, `,"isEmpty":`...), *q.IsEmpty)
		} else {
			dst = jsontext.AppendQuoted(append(dst, `,"contains":`...), *q.Contains)
		}
	case c.Time != nil:
		dst = append(dst, `{"scope":"time"`...)
		dst = appendMoment(dst, "start", c.Time.Start)
		dst = appendMoment(dst, "end", c.Time.End)
	default:
		dst = append(dst, `{"scope":"filter","values":{`...)
		for i, v := range c.Filter.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(jsontext.AppendQuoted(dst, v.Attribute), ':'), v.raw...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendMoment appends a member, in the zone that the moment was given in.
func appendMoment(dst []byte, name string, at *time.Time) []byte {
	if at == nil {
		return dst
	}
	return append(at.AppendFormat(append(appendName(dst, name), '"'), time.RFC3339Nano), '"')
}

func (a *Action) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"selector":{`...)
	s := &a.Selector
	if s.IndexUID != nil {
		dst = jsontext.AppendQuoted(appendName(dst, "indexUid"), *s.IndexUID)
	}
	if s.ID != nil {
		dst = jsontext.AppendQuoted(appendName(dst, "id"), *s.ID)
	}
	if s.raw != nil {
		dst = append(appendName(dst, "filter"), s.raw...)
	}
	dst = append(dst, `},"action":{"type":`...)
	if a.Pin != nil {
		dst = strconv.AppendUint(append(dst, `"pin","position":`...), uint64(*a.Pin), 10)
	} else {
		dst = append(dst, `"scale","factor":`...)
		dst = strconv.AppendFloat(dst, *a.Scale, 'g', -1, 64)
	}
	return append(dst, `}}`...)
}
