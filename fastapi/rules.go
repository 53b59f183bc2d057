package fastapi

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"svc/internal/rule"
	"svc/internal/settings"
)

// ruleQuery is the body of the listing of search rules.
type ruleQuery struct {
	paging
	patterns []string // nil: not given
	active   *bool
}

var ruleQueryParams = []param[ruleQuery]{
	{name: "offset", code: "invalid_dynamic_search_rule_offset", kind: count, set: func(q *ruleQuery, a *arg) error { q.offset = a.count; return nil }},
	{name: "limit", code: "invalid_dynamic_search_rule_limit", kind: count, set: func(q *ruleQuery, a *arg) error { q.limit = a.count; return nil }},
	{name: "filter", code: "invalid_dynamic_search_rule_filter", kind: raw, null: true, shape: objectOf(ruleFilterParams), set: func(q *ruleQuery, a *arg) error {
		return decode(q, a.json, ruleFilterParams, object{path: "filter.", code: a.code, notCode: a.code})
	}},
}

var ruleFilterParams = []param[ruleQuery]{
	{name: "attributePatterns", code: "invalid_dynamic_search_rule_filter_attribute_patterns", kind: list, null: true, set: func(q *ruleQuery, a *arg) error {
		q.patterns = a.list
		return nil
	}},
	{name: "active", code: "invalid_dynamic_search_rule_filter_active", kind: flag, null: true, set: func(q *ruleQuery, a *arg) error {
		active := a.flag
		q.active = &active
		return nil
	}},
}

// wants reports whether the query's filter lets a rule pass.
func (q *ruleQuery) wants(r *rule.Rule) bool {
	return (q.active == nil || *q.active == r.Active) &&
		(q.patterns == nil || slices.ContainsFunc(q.patterns, func(p string) bool { return settings.Covers(p, r.UID) }))
}

// ruleParams are what a rule consists of, apart from its uid. null resets what can be absent.
var ruleParams = []param[rule.Change]{
	{name: "description", code: "invalid_dynamic_search_rule_description", kind: raw, shape: textOrNullShape, set: func(c *rule.Change, a *arg) error {
		c.Description = new(*string)
		if a.json.null() {
			return nil
		}
		if !a.readJSON(textual) {
			return a.expected("a string or null")
		}
		text := a.text
		*c.Description = &text
		return nil
	}},
	{name: "priority", code: "invalid_dynamic_search_rule_priority", kind: raw, shape: orNull(schema{"type": "integer", "minimum": 0}), set: func(c *rule.Change, a *arg) error {
		c.Priority = new(*uint64)
		if a.json.null() {
			return nil
		}
		priority, err := strconv.ParseUint(string(a.json), 10, 64)
		if err != nil {
			return a.expected("a whole number from 0, or null")
		}
		*c.Priority = &priority
		return nil
	}},
	{name: "active", code: "invalid_dynamic_search_rule_active", kind: raw, shape: orNull(schema{"type": "boolean"}), set: func(c *rule.Change, a *arg) error {
		if !a.json.null() && !a.readJSON(flag) {
			return a.expected("`true`, `false` or null")
		}
		active := a.json.null() || a.flag
		c.Active = &active
		return nil
	}},
	{name: "conditions", code: "invalid_dynamic_search_rule_conditions", kind: raw, shape: orNull(listOf(schema{"type": "object"})), set: func(c *rule.Change, a *arg) error {
		conditions, err := rule.ReadConditions(json.RawMessage(a.json))
		c.Conditions = &conditions
		return err
	}},
	{name: "actions", code: "invalid_dynamic_search_rule_actions", kind: raw, shape: listOf(schema{"type": "object"}), set: func(c *rule.Change, a *arg) error {
		var err error
		c.Actions, err = rule.ReadActions(json.RawMessage(a.json))
		c.GivesActions = true
		return err
	}},
}

// needRules refuses the routes of search rules while their feature is off.
func (s *Server) needRules() error { return s.features.need("dynamicSearchRules", "search rules") }

// activeRules returns the rules that searches follow.
func (s *Server) activeRules() *rule.Set {
	if !s.features.on("dynamicSearchRules") {
		return nil
	}
	return s.rules.Set()
}

func (s *Server) listRules(ctx *fasthttp.RequestCtx) error {
	if err := s.needRules(); err != nil {
		return err
	}
	q := ruleQuery{paging: paging{limit: defaultLimit}}
	if err := readObject(s, ctx, &q, ruleQueryParams); err != nil {
		return err
	}
	wanted := []*rule.Rule{}
	for _, r := range s.rules.Set().List() {
		if q.wants(r) {
			wanted = append(wanted, r)
		}
	}
	return answerPage(s, ctx, wanted, q.offset, q.limit, func(r *rule.Rule) (*rule.Rule, bool) { return r, true })
}

func (s *Server) getRule(ctx *fasthttp.RequestCtx) error {
	if err := s.needRules(); err != nil {
		return err
	}
	r, err := s.rules.Get(pathValue(ctx, "rule_uid"))
	if err != nil {
		return err
	}
	return answerCharged(ctx, r.AppendJSON(nil))
}

func (s *Server) putRule(ctx *fasthttp.RequestCtx) error {
	if err := s.needRules(); err != nil {
		return err
	}
	uid := pathValue(ctx, "rule_uid")
	if !rule.ValidUID(uid) {
		return rule.NotFound(uid)
	}
	var c rule.Change
	if err := readObject(s, ctx, &c, ruleParams); err != nil {
		return err
	}
	for i := range c.Actions {
		if err := s.checkFilter(c.Actions[i].Selector.Filter); err != nil {
			return err
		}
	}
	r, created, err := s.rules.Put(uid, c)
	if err != nil {
		return err
	}
	if created {
		ctx.SetStatusCode(fasthttp.StatusCreated)
	}
	return answerCharged(ctx, r.AppendJSON(nil))
}

func (s *Server) deleteRule(ctx *fasthttp.RequestCtx) error {
	if err := s.needRules(); err != nil {
		return err
	}
	if err := s.rules.Delete(pathValue(ctx, "rule_uid")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
