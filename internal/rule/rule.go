// Package rule owns the search rules: which documents merchandisers pin to a place in the results or weigh
// differently, for which searches and when; the file that keeps the rules; and the index that tells which of
// many rules a search meets.
package rule

import (
	"encoding/json"
	"strconv"
	"time"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/jsontext"
)

// Rule is a search rule. It does not change once it is stored.
type Rule struct {
	UID         string
	Description *string // nil: none
	Priority    *uint64 // the lower one wins; nil: after all others
	Active      bool
	Conditions  []Condition // all of them must hold
	Actions     []Action    // at least one
}

// Condition is one of the three kinds: it says when a rule applies.
type Condition struct {
	Query  *QueryCondition
	Time   *TimeCondition
	Filter *FilterCondition
}

// QueryCondition tests the text that is searched for, by one of its two fields.
type QueryCondition struct {
	IsEmpty  *bool   // it is empty or blank, or is not
	Contains *string // it contains this text
}

// TimeCondition holds from a moment to another; nil leaves an end open.
type TimeCondition struct{ Start, End *time.Time }

// FilterCondition holds when one way to satisfy the filter of the search fixes each attribute to its value.
type FilterCondition struct{ Values []FilterValue }

// FilterValue is an attribute with its value: a JSON string, number or boolean.
type FilterValue struct {
	filter.Pair
	raw json.RawMessage
}

// Action is what a rule does with the documents that its selector chooses.
type Action struct {
	Selector Selector
	Pin      *uint32  // place that the document gets, from 0; nil: it is not pinned
	Scale    *float64 // what the score is multiplied by; nil: it is not
}

// Selector chooses documents.
type Selector struct {
	IndexUID *string // nil: of every index
	ID       *string // external id; nil: any
	Filter   *filter.Expr
	raw      json.RawMessage // of Filter, as it was sent
}

// AppendJSON appends the rule as the API and dumps show it.
func (r *Rule) AppendJSON(dst []byte) []byte {
	dst = jsontext.AppendQuoted(append(dst, `{"uid":`...), r.UID)
	if r.Description != nil {
		dst = jsontext.AppendQuoted(append(dst, `,"description":`...), *r.Description)
	}
	if r.Priority != nil {
		dst = strconv.AppendUint(append(dst, `,"priority":`...), *r.Priority, 10)
	}
	dst = strconv.AppendBool(append(dst, `,"active":`...), r.Active)
	dst = append(dst, `,"conditions":[`...)
	for i := range r.Conditions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Conditions[i].appendJSON(dst)
	}
	dst = append(dst, `],"actions":[`...)
	for i := range r.Actions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Actions[i].appendJSON(dst)
	}
	return append(dst, `]}`...)
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
		dst = appendMoment(dst, `,"start":"`, c.Time.Start)
		dst = appendMoment(dst, `,"end":"`, c.Time.End)
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

// appendMoment appends a member whose name ends with the opening quote of the value, in the zone it was given in.
func appendMoment(dst []byte, name string, at *time.Time) []byte {
	if at == nil {
		return dst
	}
	return append(at.AppendFormat(append(dst, name...), time.RFC3339Nano), '"')
}

func (a *Action) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"selector":{`...)
	s := &a.Selector
	member := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(dst, name...)
	}
	if s.IndexUID != nil {
		member(`"indexUid":`)
		dst = jsontext.AppendQuoted(dst, *s.IndexUID)
	}
	if s.ID != nil {
		member(`"id":`)
		dst = jsontext.AppendQuoted(dst, *s.ID)
	}
	if s.raw != nil {
		member(`"filter":`)
		dst = append(dst, s.raw...)
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

// maxUID is how long a uid may be, in bytes: as long as that of an index.
const maxUID = 400

// ValidUID reports whether uid can name a rule.
func ValidUID(uid string) bool {
	for i := range len(uid) {
		c := uid[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return uid != "" && len(uid) <= maxUID
}

// NotFound is the error of a rule that there is not.
func NotFound(uid string) error {
	if !ValidUID(uid) {
		if len(uid) > maxUID {
			uid = "…"
		}
		return apierr.New("dynamic_search_rule_not_found", "There is no search rule `%s`, and there cannot be one: the uid of a rule has letters from a to z in either case, digits, - and _, at most %d of them.", uid, maxUID)
	}
	return apierr.New("dynamic_search_rule_not_found", "There is no search rule `%s`. `POST /dynamic-search-rules` lists them.", uid)
}
