package rule

import (
	"slices"
	"time"

	"svc/internal/apierr"
)

// Change is a client's change of a rule, and its form. A field that points to nil loses its value. Fields that are nil keep their
// value.
type Change struct {
	Form         Form
	Description  *(*string)
	Priority     *(*uint64)
	Active       *bool
	Conditions   *[]Condition
	Actions      []Action
	GivesActions bool // Actions is sent; it may be empty

	shaped bool // the actions are an array or an object, so the rule takes Form from now on
}

// changed returns the rule with the change applied, or a new rule if old is nil. The error is bad_request if a part of old stays that
// the form of the change cannot express.
func (c *Change) changed(uid string, old *Rule) (*Rule, error) {
	r := &Rule{UID: uid, Active: true, Form: c.Form}
	if old == nil {
		c.apply(r)
		return r, nil
	}
	*r = *old
	switch {
	case c.Form == Lists:
		if c.Conditions == nil && !listsHave(old.Conditions) {
			return nil, apierr.New("bad_request", "The rule `%s` has conditions that an array cannot express. Send `conditions` too.", uid)
		}
		if !c.GivesActions && !arrayHas(old.Actions) {
			return nil, apierr.New("bad_request", "The rule `%s` has actions that an array cannot express. Send `actions` too.", uid)
		}
		r.Form, r.UpdatedAt = Lists, time.Time{}
	case old.Form == Lists:
		if c.Conditions == nil && !objectHas(old.Conditions) {
			return nil, apierr.New("bad_request", "The rule `%s` has conditions that an object cannot express. Send `conditions` too.", uid)
		}
		r.Form = c.Form
	case c.shaped:
		r.Form = c.Form
	}
	c.apply(r)
	if old.Form == Lists && r.Form != Lists { // which has no limits, and the new form has some
		if _, err := Read(r.AppendJSON(nil)); err != nil {
			return nil, apierr.New("bad_request", "The rule `%s` is too large for its new form: %v Send that part too.", uid, err)
		}
	}
	return r, nil
}

// apply applies the given parts to a rule.
func (c *Change) apply(r *Rule) {
	if c.Description != nil {
		r.Description = *c.Description
	}
	if c.Priority != nil {
		r.Priority = *c.Priority
	}
	if c.Active != nil {
		r.Active = *c.Active
	}
	if c.Conditions != nil {
		r.Conditions = *c.Conditions
	}
	if c.GivesActions {
		r.Actions = c.Actions
	}
}

// listsHave reports whether the form Lists can express conditions.
func listsHave(all []Condition) bool {
	return !slices.ContainsFunc(all, func(c Condition) bool {
		q := c.Query
		return q != nil && (q.Words != nil || (q.IsEmpty == nil) == (q.Contains == nil)) || c.Filter != nil && c.Filter.raw != nil
	})
}

// objectHas reports whether an object can express conditions: it has at most one of each kind, and filters have another meaning
// there.
func objectHas(all []Condition) bool {
	queries, times := 0, 0
	for i := range all {
		switch c := &all[i]; {
		case c.Query != nil:
			queries++
		case c.Time != nil:
			times++
		case c.Filter.raw == nil:
			return false
		}
	}
	return queries <= 1 && times <= 1
}

// arrayHas reports whether an array can express actions.
func arrayHas(all []Action) bool {
	return !slices.ContainsFunc(all, func(a Action) bool { return a.Selector.IDs != nil })
}
