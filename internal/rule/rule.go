package rule

import (
	"encoding/json"
	"time"

	"svc/internal/apierr"
	"svc/internal/filter"
)

// Form is the JSON form that a rule was sent in, and is shown in. The API changed it twice.
type Form uint8

const (
	Lists   Form = iota // of v1.42: `priority`, arrays of conditions and of actions
	Mixed               // of v1.50 to v1.53: `precedence`, an object of conditions, an array of actions
	Objects             // of v1.54: `precedence`, objects of conditions and of actions
)

// Rule is a search rule. It does not change once it is stored.
type Rule struct {
	UID         string
	Description *string // nil: none
	Priority    *uint64 // the lower one wins; nil: after all others
	Active      bool
	Conditions  []Condition // all of them must hold
	Actions     []Action
	Form        Form
	UpdatedAt   time.Time // when the last change was accepted; zero in the form Lists, which does not have it
}

// Condition says when a rule applies. It has one of the three kinds. An object of conditions has each kind at most once.
type Condition struct {
	Query  *QueryCondition
	Time   *TimeCondition
	Filter *FilterCondition
}

// QueryCondition tests the text that is searched for. In the form Lists it has one of IsEmpty and Contains.
type QueryCondition struct {
	IsEmpty  *bool   // it is empty or blank, or is not
	Contains *string // it contains this text
	Words    *string // all words of this text are among its words
}

// TimeCondition holds from a moment to another; nil leaves an end open.
type TimeCondition struct{ Start, End *time.Time }

// FilterCondition holds if some way to satisfy the filter of the search tests each value's attribute, with a test of its own per value,
// and the values pass. In the form Lists only tests for equality count.
type FilterCondition struct {
	Values []FilterValue
	raw    json.RawMessage // the object of values as it was sent; nil in the form Lists
}

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
	IndexUID *string  // nil: of every index
	ID       *string  // external id; nil: any
	IDs      []string // external ids; the document has one of them; nil: any
	Filter   *filter.Expr
	raw      json.RawMessage // of Filter, as it was sent
}

// maxUID is the maximum length of a uid in bytes, the same as for an index.
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
		return apierr.New("dynamic_search_rule_not_found", "There is no search rule `%s`, and this is not a valid uid: use letters from a to z in either case, digits, - and _, at most %d characters.", uid, maxUID)
	}
	return apierr.New("dynamic_search_rule_not_found", "There is no search rule `%s`. `POST /dynamic-search-rules` lists them.", uid)
}
