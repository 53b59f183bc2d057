package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
)

// Limits of a rule in the forms Mixed and Objects. Real rules are far below them.
const (
	maxDescription = 64 << 10 // bytes
	maxText        = 4 << 10  // bytes of words, of an attribute and of a value
	maxFacets      = 100      // values of a filter condition
	maxNesting     = 32       // arrays and objects around a value of a filter condition; each level is parsed again
	maxPins        = 1_000    // of a rule
	maxScales      = 100      // of a rule
	maxIDs         = 1_000    // of an action
	maxID          = 511      // bytes: no document has a longer id
)

// FormOf returns the form that a rule is sent in: `precedence`, conditions in an object and actions in an object belong to the newer
// forms, `priority` and an array of conditions to Lists. decided is false if the members fit both. Empty objects, which v1.42 refuses, and
// arrays of actions, which Mixed has as well, do not decide.
func FormOf(body json.RawMessage) (f Form, decided bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return Lists, false
	}
	is := func(name string, first byte) bool {
		raw := bytes.TrimSpace(members[name])
		return len(raw) > 0 && raw[0] == first
	}
	filled := func(name string) bool {
		var inside map[string]json.RawMessage
		return is(name, '{') && json.Unmarshal(members[name], &inside) == nil && len(inside) > 0
	}
	_, precedence := members["precedence"]
	_, priority := members["priority"]
	switch {
	case filled("actions"):
		return Objects, true
	case precedence, filled("conditions"):
		return Mixed, true
	case priority, is("conditions", '['):
		return Lists, true
	}
	return Lists, false
}

// ReadChange reads a change in the forms Mixed and Objects. If actions is an array, the form is Mixed. If it is an object, the form
// is Objects.
func ReadChange(body json.RawMessage) (c Change, err error) {
	o, err := readObject(body, "", "bad_request")
	if err != nil {
		return c, err
	}
	if err := o.known("description", "precedence", "active", "conditions", "actions"); err != nil {
		return c, err
	}
	c.Form = Mixed
	with := func(code apierr.Code) *object { return &object{code: code, members: o.members} }
	if _, given := o.members["description"]; given {
		d, err := with("invalid_dynamic_search_rule_description").text("description")
		if err == nil && d != nil && len(*d) > maxDescription {
			err = apierr.New("invalid_dynamic_search_rule_description", "`description` must have at most %d bytes, but it has %d.", maxDescription, len(*d))
		}
		if err != nil {
			return c, err
		}
		c.Description = &d
	}
	if _, given := o.members["precedence"]; given {
		n, err := with("invalid_dynamic_search_rule_priority").whole("precedence")
		if err != nil {
			return c, err
		}
		c.Priority = &n
	}
	if _, given := o.members["active"]; given {
		active, err := with("invalid_dynamic_search_rule_active").flag("active")
		if err != nil {
			return c, err
		}
		on := active == nil || *active
		c.Active = &on
	}
	if raw, given := o.members["conditions"]; given {
		conditions, err := readConditionObject(raw)
		if err != nil {
			return c, err
		}
		c.Conditions = &conditions
	}
	if raw, given := o.members["actions"]; given {
		c.GivesActions = true
		switch raw[0] {
		case '{':
			c.Form, c.shaped = Objects, true
			c.Actions, err = readActionObject(raw)
		case 'n':
		default:
			c.shaped = true
			c.Actions, err = readActionList(raw)
		}
	}
	return c, err
}

// readConditionObject reads an object of conditions. null stands for none.
func readConditionObject(raw json.RawMessage) (all []Condition, err error) {
	if raw[0] == 'n' {
		return nil, nil
	}
	o, err := readObject(raw, "conditions", codeConditions)
	if err != nil {
		return nil, err
	}
	if err := o.unknown("query", "time", "filter"); err != nil {
		return nil, err
	}
	for _, kind := range [...]struct {
		name string
		read func(*object) (Condition, bool, error)
	}{{"query", readQueryObject}, {"time", readTimeObject}, {"filter", readFilterObject}} {
		if o.absent(kind.name) {
			continue
		}
		inside, err := readObject(o.members[kind.name], "conditions."+kind.name, codeConditions)
		if err != nil {
			return nil, err
		}
		c, says, err := kind.read(inside)
		if err != nil {
			return nil, err
		}
		if says {
			all = append(all, c)
		}
	}
	return all, nil
}

// readQueryObject, readTimeObject and readFilterObject return says = false for an object without a condition.
func readQueryObject(o *object) (c Condition, says bool, err error) {
	if err := o.unknown("isEmpty", "words", "contains"); err != nil {
		return c, false, err
	}
	q := &QueryCondition{}
	if q.IsEmpty, err = o.flag("isEmpty"); err != nil {
		return c, false, err
	}
	if q.Words, err = o.shortText("words"); err != nil {
		return c, false, err
	}
	if q.Contains, err = o.shortText("contains"); err != nil {
		return c, false, err
	}
	if q.IsEmpty != nil && *q.IsEmpty && (q.Words != nil || q.Contains != nil) {
		return c, false, apierr.New("bad_request", "`.conditions.query`: an empty query has no words. Remove `isEmpty`, or `words` and `contains`.")
	}
	return Condition{Query: q}, *q != QueryCondition{}, nil
}

func readTimeObject(o *object) (c Condition, says bool, err error) {
	if err := o.unknown("start", "end"); err != nil {
		return c, false, err
	}
	t := &TimeCondition{}
	if t.Start, err = o.moment("start"); err != nil {
		return c, false, err
	}
	if t.End, err = o.moment("end"); err != nil {
		return c, false, err
	}
	if t.Start != nil && t.End != nil && t.End.Before(*t.Start) {
		return c, false, apierr.New("bad_request", "`.conditions.time`: it ends before it starts.")
	}
	return Condition{Time: t}, *t != TimeCondition{}, nil
}

// readFilterObject reads the values of a filter condition in its later form, nested objects included.
func readFilterObject(o *object) (c Condition, says bool, err error) {
	if err := o.unknown("values"); err != nil {
		return c, false, err
	}
	raw := o.members["values"]
	if raw == nil {
		return c, false, o.missing("values", "send an object of attributes and their values")
	}
	values, err := readObject(raw, o.path+".values", o.code)
	if err != nil {
		return c, false, err
	}
	f := &FilterCondition{raw: raw}
	for name, v := range values.members {
		if err := f.add(values, name, name, v, maxNesting); err != nil {
			return c, false, err
		}
	}
	slices.SortFunc(f.Values, func(a, b FilterValue) int { return strings.Compare(a.Key(), b.Key()) })
	f.Values = slices.CompactFunc(f.Values, func(a, b FilterValue) bool { return a.Key() == b.Key() })
	return Condition{Filter: f}, len(f.Values) > 0, nil
}

// add adds the values of a member: each scalar in arrays and objects is one. member is the member of o that contains v. nesting is
// how many arrays and objects may surround a scalar.
func (f *FilterCondition) add(o *object, member, attribute string, v json.RawMessage, nesting int) error {
	if attribute == "" || len(attribute) > maxText {
		return apierr.New(o.code, "`%s` has an attribute of %d bytes: from 1 to %d are allowed.", o.path, len(attribute), maxText)
	}
	if nesting == 0 && (v[0] == '[' || v[0] == '{') {
		return apierr.New(o.code, "`%s.%s` is nested too deeply: at most %d levels are allowed.", o.path, short(member), maxNesting)
	}
	switch v[0] {
	case 'n':
		return o.expected(member, "a string, a number, a boolean, or an array or object of these")
	case '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(v, &elements); err != nil {
			return err
		}
		for _, e := range elements {
			if err := f.add(o, member, attribute, e, nesting-1); err != nil {
				return err
			}
		}
		return nil
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(v, &members); err != nil {
			return err
		}
		for name, m := range members {
			if err := f.add(o, member, attribute+"."+name, m, nesting-1); err != nil {
				return err
			}
		}
		return nil
	}
	plain := string(v)
	if v[0] == '"' {
		if err := json.Unmarshal(v, &plain); err != nil {
			return err
		}
	}
	if len(plain) > maxText {
		return apierr.New(o.code, "`%s.%s` must have at most %d bytes, but it has %d.", o.path, short(member), maxText, len(plain))
	}
	if len(f.Values) >= maxFacets {
		return apierr.New(o.code, "`%s` must have at most %d values.", o.path, maxFacets)
	}
	f.Values = append(f.Values, FilterValue{filter.Pair{Attribute: attribute, Value: plain}, v})
	return nil
}

// readActionObject reads an object of actions: pins first.
func readActionObject(raw json.RawMessage) (all []Action, err error) {
	o, err := readObject(raw, "actions", codeActions)
	if err != nil {
		return nil, err
	}
	if err := o.unknown("pin", "scale"); err != nil {
		return nil, err
	}
	for _, kind := range [...]struct {
		name string
		most int
		read func(*Action, *object) error
	}{{"pin", maxPins, (*Action).readPin}, {"scale", maxScales, (*Action).readScale}} {
		if o.absent(kind.name) {
			continue
		}
		elements, err := array(o.members[kind.name], "actions."+kind.name, codeActions)
		if err != nil {
			return nil, err
		}
		if len(elements) > kind.most {
			return nil, apierr.New(codeActions, "`actions.%s` must have at most %d elements, but it has %d.", kind.name, kind.most, len(elements))
		}
		for i, e := range elements {
			inside, err := readObject(e, fmt.Sprintf("actions.%s[%d]", kind.name, i), codeActions)
			if err != nil {
				return nil, err
			}
			var a Action
			if err := kind.read(&a, inside); err != nil {
				return nil, err
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// readPin reads a pin in the later form: the document, its position, and perhaps the index.
func (a *Action) readPin(o *object) (err error) {
	if err := o.unknown("id", "position", "indexUid"); err != nil {
		return err
	}
	if a.Selector.ID, err = o.text("id"); err != nil {
		return err
	}
	if a.Selector.ID == nil {
		return o.missing("id", "name the document to pin")
	}
	if len(*a.Selector.ID) > maxID {
		return o.expected("id", fmt.Sprintf("a document id of at most %d bytes", maxID))
	}
	if a.Pin, err = o.position("position"); err != nil {
		return err
	}
	return a.Selector.readIndex(o)
}

// readScale reads a scale in the later form: the weight, and the documents by ids or by a filter.
func (a *Action) readScale(o *object) (err error) {
	if err := o.unknown("weight", "ids", "filter", "indexUid"); err != nil {
		return err
	}
	if a.Scale, err = o.factor("weight"); err != nil {
		return err
	}
	if !o.absent("ids") {
		var ids []*string
		if err := json.Unmarshal(o.members["ids"], &ids); err != nil || slices.Contains(ids, nil) {
			return o.expected("ids", "an array of strings")
		}
		if len(ids) > maxIDs || slices.ContainsFunc(ids, func(id *string) bool { return len(*id) > maxID }) {
			return o.expected("ids", fmt.Sprintf("an array of at most %d document ids, each of at most %d bytes", maxIDs, maxID))
		}
		a.Selector.IDs = make([]string, len(ids))
		for i, id := range ids {
			a.Selector.IDs[i] = *id
		}
	}
	if err := a.Selector.readFilter(o); err != nil {
		return err
	}
	return a.Selector.readIndex(o)
}

// readIndex reads the member indexUid.
func (s *Selector) readIndex(o *object) (err error) {
	if s.IndexUID, err = o.text("indexUid"); err != nil {
		return err
	}
	if s.IndexUID != nil && !index.ValidUID(*s.IndexUID) {
		return o.expected("indexUid", "an index uid: letters from a to z in either case, digits, - and _, at most 400 characters")
	}
	return nil
}

// readFilter reads the member filter.
func (s *Selector) readFilter(o *object) (err error) {
	raw := o.members["filter"]
	if raw == nil || raw[0] == 'n' {
		return nil
	}
	if s.Filter, err = filter.FromJSON(raw, o.code); err != nil {
		return err
	}
	// A filter must not read another index: the client that searches may have no right to it.
	if err := s.Filter.Check(filter.Features{Contains: true, Vectors: true}); err != nil {
		return o.expected("filter", "a filter without `_foreign` and `_shard`")
	}
	s.raw = raw
	return nil
}
