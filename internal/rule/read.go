package rule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/filter"
)

const (
	codeConditions apierr.Code = "invalid_dynamic_search_rule_conditions"
	codeActions    apierr.Code = "invalid_dynamic_search_rule_actions"
)

// maxValues bounds the attributes of a filter condition.
const maxValues = filter.MaxPairs

// Read reads a rule as AppendJSON writes it, and as dumps have it, in any form.
func Read(b []byte) (*Rule, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, err
	}
	first := func(name string) byte {
		if raw := bytes.TrimSpace(members[name]); len(raw) > 0 {
			return raw[0]
		}
		return 0
	}
	if _, newer := members["precedence"]; newer || first("conditions") == '{' || first("actions") == '{' {
		return readNewer(members)
	}
	var stored struct {
		UID         string          `json:"uid"`
		Description *string         `json:"description"`
		Priority    *uint64         `json:"priority"`
		Active      *bool           `json:"active"`
		Conditions  json.RawMessage `json:"conditions"`
		Actions     json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, err
	}
	if !ValidUID(stored.UID) {
		return nil, fmt.Errorf("%q cannot be the uid of a search rule", stored.UID)
	}
	r := &Rule{UID: stored.UID, Description: stored.Description, Priority: stored.Priority, Active: stored.Active == nil || *stored.Active}
	var err error
	if stored.Conditions != nil {
		if r.Conditions, err = ReadConditions(stored.Conditions); err != nil {
			return nil, err
		}
	}
	if r.Actions, err = ReadActions(stored.Actions); err != nil {
		return nil, err
	}
	return r, nil
}

// readNewer reads a stored rule of the forms Mixed and Objects.
func readNewer(members map[string]json.RawMessage) (*Rule, error) {
	var stored struct {
		UID       string     `json:"uid"`
		UpdatedAt *time.Time `json:"lastUpdatedAt"`
	}
	for name, into := range map[string]any{"uid": &stored.UID, "lastUpdatedAt": &stored.UpdatedAt} {
		if raw := members[name]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, err
			}
		}
		delete(members, name)
	}
	if !ValidUID(stored.UID) {
		return nil, fmt.Errorf("%q cannot be the uid of a search rule", stored.UID)
	}
	body, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	c, err := ReadChange(body)
	if err != nil {
		return nil, err
	}
	r := &Rule{UID: stored.UID, Active: true, Form: c.Form}
	if stored.UpdatedAt != nil {
		r.UpdatedAt = stored.UpdatedAt.UTC()
	}
	c.apply(r)
	return r, nil
}

// ReadConditions reads the conditions of a request. null stands for none (invalid_dynamic_search_rule_conditions, bad_request).
func ReadConditions(raw json.RawMessage) ([]Condition, error) {
	elements, err := array(raw, "conditions", codeConditions)
	if err != nil || elements == nil {
		return nil, err
	}
	conditions := make([]Condition, len(elements))
	for i, e := range elements {
		o, err := readObject(e, fmt.Sprintf("conditions[%d]", i), codeConditions)
		if err != nil {
			return nil, err
		}
		if conditions[i], err = readCondition(o); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

// readCondition reads a condition in the first form, whose scope gives its kind.
func readCondition(o *object) (c Condition, err error) {
	scope, err := o.text("scope")
	if err != nil {
		return c, err
	}
	if scope == nil {
		return c, o.missing("scope", "use `query`, `time` or `filter`")
	}
	switch *scope {
	case "query":
		q := &QueryCondition{}
		c.Query = q
		if q.IsEmpty, err = o.flag("isEmpty"); err != nil {
			return c, err
		}
		if q.Contains, err = o.text("contains"); err != nil {
			return c, err
		}
		if (q.IsEmpty == nil) == (q.Contains == nil) {
			return c, apierr.New("bad_request", "`%s` must have either `isEmpty` or `contains`.", o.path)
		}
	case "time":
		t := &TimeCondition{}
		c.Time = t
		if t.Start, err = o.moment("start"); err != nil {
			return c, err
		}
		if t.End, err = o.moment("end"); err != nil {
			return c, err
		}
		if t.Start != nil && t.End != nil && t.End.Before(*t.Start) {
			return c, apierr.New("bad_request", "`%s` ends before it starts.", o.path)
		}
	case "filter":
		c.Filter = &FilterCondition{}
		c.Filter.Values, err = readValues(o)
	default:
		return c, apierr.New(codeConditions, "`%s.scope` must be `query`, `time` or `filter`, but it is %q.", o.path, short(*scope))
	}
	return c, err
}

// readValues reads the values of a filter condition, in the order of attributes.
func readValues(o *object) ([]FilterValue, error) {
	raw := o.members["values"]
	if raw == nil {
		return nil, o.missing("values", "send an object of attributes and their values")
	}
	values, err := readObject(raw, o.path+".values", o.code)
	if err != nil {
		return nil, err
	}
	if n := len(values.members); n == 0 || n > maxValues {
		return nil, apierr.New(o.code, "`%s` must have from 1 to %d attributes, but it has %d.", values.path, maxValues, n)
	}
	var list []FilterValue
	for name, v := range values.members {
		plain := strings.TrimSpace(string(v))
		switch v[0] {
		case '"':
			if err := json.Unmarshal(v, &plain); err != nil {
				return nil, err
			}
		case '{', '[', 'n':
			return nil, values.expected(name, "a string, a number or a boolean")
		}
		list = append(list, FilterValue{filter.Pair{Attribute: name, Value: plain}, v})
	}
	slices.SortFunc(list, func(a, b FilterValue) int { return strings.Compare(a.Attribute, b.Attribute) })
	return list, nil
}

// ReadActions reads actions as clients send them (invalid_dynamic_search_rule_actions).
func ReadActions(raw json.RawMessage) ([]Action, error) {
	var elements []json.RawMessage
	if raw != nil {
		var err error
		if elements, err = array(raw, "actions", codeActions); err != nil {
			return nil, err
		}
	}
	if len(elements) == 0 {
		return nil, noActions()
	}
	return readActions(elements)
}

// readActionList reads an array of actions, which may be empty.
func readActionList(raw json.RawMessage) ([]Action, error) {
	elements, err := array(raw, "actions", codeActions)
	if err != nil {
		return nil, err
	}
	if len(elements) > maxPins {
		return nil, apierr.New(codeActions, "`actions` must have at most %d elements, but it has %d.", maxPins, len(elements))
	}
	return readActions(elements)
}

func readActions(elements []json.RawMessage) ([]Action, error) {
	actions := make([]Action, len(elements))
	for i, e := range elements {
		o, err := readObject(e, fmt.Sprintf("actions[%d]", i), codeActions)
		if err != nil {
			return nil, err
		}
		if err := actions[i].read(o); err != nil {
			return nil, err
		}
	}
	return actions, nil
}

func noActions() error {
	return apierr.New(codeActions, "A rule needs `actions`: an array of at least one action, such as {\"selector\": {\"indexUid\": \"movies\", \"id\": \"1\"}, \"action\": {\"type\": \"pin\", \"position\": 0}}.")
}

// read reads an action in the first form, which has a selector and an effect.
func (a *Action) read(o *object) error {
	if err := o.known("selector", "action"); err != nil {
		return err
	}
	selector, err := o.object("selector")
	if err != nil {
		return err
	}
	does, err := o.object("action")
	if err != nil {
		return err
	}
	kind, err := does.text("type")
	if err != nil {
		return err
	}
	if kind == nil {
		return does.missing("type", "use `pin` or `scale`")
	}
	switch *kind {
	case "pin":
		if err := does.known("type", "position"); err != nil {
			return err
		}
		if a.Pin, err = does.position("position"); err != nil {
			return err
		}
		err = a.Selector.read(selector, "indexUid", "id")
	case "scale":
		if err := does.known("type", "factor"); err != nil {
			return err
		}
		if a.Scale, err = does.factor("factor"); err != nil {
			return err
		}
		err = a.Selector.read(selector, "indexUid", "id", "filter")
	default:
		err = apierr.New(o.code, "`%s.type` must be `pin` or `scale`, but it is %q.", does.path, short(*kind))
	}
	return err
}

func (s *Selector) read(o *object, known ...string) (err error) {
	if err := o.known(known...); err != nil {
		return err
	}
	if err := s.readIndex(o); err != nil {
		return err
	}
	if s.ID, err = o.text("id"); err != nil {
		return err
	}
	return s.readFilter(o)
}

// object is a JSON object as it is read.
type object struct {
	path    string // in the rule
	code    apierr.Code
	members map[string]json.RawMessage
}

// array returns the elements of an array, nil for null.
func array(raw json.RawMessage, path string, code apierr.Code) ([]json.RawMessage, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, apierr.New(code, "`%s` must be an array, but it is %s.", path, shown(raw))
	}
	return elements, nil
}

// readObject reads an object, and compacts its members, because messages and answers show them.
func readObject(raw json.RawMessage, path string, code apierr.Code) (*object, error) {
	o := &object{path: path, code: code}
	if err := json.Unmarshal(raw, &o.members); err != nil || o.members == nil {
		if path == "" {
			return nil, apierr.New(code, "The body must be a JSON object, but it is %s.", shown(raw))
		}
		return nil, apierr.New(code, "`%s` must be an object, but it is %s.", path, shown(raw))
	}
	for name, v := range o.members { // as messages and answers show them
		var b bytes.Buffer
		if err := json.Compact(&b, v); err != nil {
			return nil, apierr.New(code, "`%s.%s` cannot be read: %v.", path, name, err)
		}
		o.members[name] = b.Bytes()
	}
	return o, nil
}

func (o *object) expected(name, what string) error {
	return apierr.New(o.code, "`%s` must be %s, but it is %s.", o.at(name), what, shown(o.members[name]))
}

// at is the path of a member.
func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) missing(name, what string) error {
	return apierr.New(o.code, "`%s` is missing: %s.", o.at(name), what)
}

// unknown refuses members with other names. The error has the code of an unknown member, and not that of o.
func (o *object) unknown(known ...string) error {
	return (&object{path: o.path, code: "bad_request", members: o.members}).known(known...)
}

// known refuses members of other names.
func (o *object) known(names ...string) error {
	for name := range o.members {
		if slices.Contains(names, name) {
			continue
		}
		if meant := apierr.Closest(name, names); meant != "" {
			return apierr.New(o.code, "`%s` is unknown. Did you mean `%s`?", o.at(short(name)), o.at(meant))
		}
		return apierr.New(o.code, "`%s` is unknown. Use one of `%s`.", o.at(short(name)), strings.Join(names, "`, `"))
	}
	return nil
}

// absent reports whether a member is missing or null.
func (o *object) absent(name string) bool {
	raw := o.members[name]
	return raw == nil || raw[0] == 'n'
}

func (o *object) text(name string) (*string, error) {
	if o.absent(name) {
		return nil, nil
	}
	var s string
	if err := json.Unmarshal(o.members[name], &s); err != nil {
		return nil, o.expected(name, "a string")
	}
	return &s, nil
}

// shortText is text limited to maxText bytes.
func (o *object) shortText(name string) (*string, error) {
	s, err := o.text(name)
	if err == nil && s != nil && len(*s) > maxText {
		err = apierr.New(o.code, "`%s` must have at most %d bytes, but it has %d.", o.at(name), maxText, len(*s))
	}
	return s, err
}

// whole reads a whole number from 0.
func (o *object) whole(name string) (*uint64, error) {
	if o.absent(name) {
		return nil, nil
	}
	n, err := strconv.ParseUint(string(o.members[name]), 10, 64)
	if err != nil {
		return nil, o.expected(name, "a whole number from 0, or null")
	}
	return &n, nil
}

func (o *object) flag(name string) (*bool, error) {
	if o.absent(name) {
		return nil, nil
	}
	var b bool
	if err := json.Unmarshal(o.members[name], &b); err != nil {
		return nil, o.expected(name, "`true` or `false`")
	}
	return &b, nil
}

func (o *object) moment(name string) (*time.Time, error) {
	s, err := o.text(name)
	if s == nil || err != nil {
		if err != nil {
			err = o.expected(name, "a date-time")
		}
		return nil, err
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(strings.ToUpper(*s))); err != nil || at.Year() > 9999 {
		return nil, o.expected(name, "a date-time of RFC 3339, such as `2030-12-24T18:00:00Z`")
	}
	return &at, nil
}

func (o *object) object(name string) (*object, error) {
	if o.members[name] == nil {
		return nil, o.missing(name, "an action needs a `selector` and an `action`")
	}
	return readObject(o.members[name], o.path+"."+name, o.code)
}

func (o *object) position(name string) (*uint32, error) {
	if o.members[name] == nil {
		return nil, o.missing(name, "give the position of the document, from 0")
	}
	n, err := strconv.ParseUint(string(o.members[name]), 10, 32)
	if err != nil {
		return nil, o.expected(name, "a whole number from 0 to 4294967295")
	}
	position := uint32(n)
	return &position, nil
}

func (o *object) factor(name string) (*float64, error) {
	raw := o.members[name]
	if raw == nil {
		return nil, o.missing(name, "give the factor for scores")
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || x < 0 || math.IsInf(x, 0) {
		return nil, o.expected(name, "a number from 0")
	}
	x = math.Abs(x) // no −0
	return &x, nil
}

// short cuts what a client sent to a length that fits a message.
func short(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	end := limit
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func shown(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return short(string(raw))
}
