package fastapi

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/rule"
	"svc/internal/settings"
	"svc/internal/task"
)

// ruleQuery is the body of the listing of search rules.
type ruleQuery struct {
	paging
	patterns []string // nil: not given
	query    *string
	active   *bool
}

var (
	ruleQueryParams       = newRuleQueryParams(slices.Concat(rulePatternParams, ruleFilterParams))
	newestRuleQueryParams = newRuleQueryParams(ruleFilterParams)
)

// newRuleQueryParams are the members of the body of the listing, with those of its filter.
func newRuleQueryParams(filters []param[ruleQuery]) []param[ruleQuery] {
	return []param[ruleQuery]{
		{name: "offset", code: "invalid_dynamic_search_rule_offset", kind: count, set: func(q *ruleQuery, a *arg) error { q.offset = a.count; return nil }},
		{name: "limit", code: "invalid_dynamic_search_rule_limit", kind: count, set: func(q *ruleQuery, a *arg) error { q.limit = a.count; return nil }},
		{name: "filter", code: "invalid_dynamic_search_rule_filter", kind: raw, null: true, shape: objectOf(filters), set: func(q *ruleQuery, a *arg) error {
			return decode(q, a.json, filters, object{path: "filter.", code: a.code, notCode: a.code})
		}},
	}
}

// rulePatternParams are the parameters of filters that only v1.42 has.
var rulePatternParams = []param[ruleQuery]{
	{name: "attributePatterns", code: "invalid_dynamic_search_rule_filter_attribute_patterns", kind: list, null: true, set: func(q *ruleQuery, a *arg) error {
		q.patterns = a.list
		return nil
	}},
}

var ruleFilterParams = []param[ruleQuery]{
	{name: "query", code: "invalid_dynamic_search_rule_filter_query", kind: textual, null: true, set: func(q *ruleQuery, a *arg) error {
		text := a.text
		q.query = &text
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

// ruleParams are the parts of a rule of v1.42, apart from its uid. null resets optional ones.
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

// needRulesHere is needRules for writes. Writes that a leader sends on are executed even while the feature is off, because they would
// block all later ones.
func (s *Server) needRulesHere(ctx *fasthttp.RequestCtx) error {
	if s.sentOn(ctx) {
		return nil
	}
	return s.needRules()
}

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
	params := ruleQueryParams
	if s.newest {
		params = newestRuleQueryParams
	}
	if err := readObject(s, ctx, &q, params); err != nil {
		return err
	}
	set := s.rules.Set()
	all := set.Newest()
	if q.query != nil {
		all = set.Find(*q.query)
	}
	wanted := []*rule.Rule{}
	for _, r := range all {
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

// newerRuleShape is a rule of v1.50 to v1.54, apart from its uid.
func newerRuleShape() schema {
	text, flag := orNull(schema{"type": "string"}), orNull(schema{"type": "boolean"})
	of := func(properties schema) schema {
		return orNull(schema{"type": "object", "properties": properties, "additionalProperties": false})
	}
	moment := orNull(schema{"type": "string", "format": "date-time"})
	list := func(properties schema, required ...string) schema {
		return orNull(listOf(schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
	}
	withCode := func(s schema, code apierr.Code) schema {
		s["x-error-code"] = code
		return s
	}
	return schema{"type": "object", "additionalProperties": false, "properties": schema{
		"description": withCode(orNull(schema{"type": "string"}), "invalid_dynamic_search_rule_description"),
		"precedence":  withCode(orNull(schema{"type": "integer", "minimum": 0}), "invalid_dynamic_search_rule_priority"),
		"active":      withCode(orNull(schema{"type": "boolean"}), "invalid_dynamic_search_rule_active"),
		"conditions": withCode(of(schema{
			"query":  of(schema{"isEmpty": flag, "words": text, "contains": text}),
			"time":   of(schema{"start": moment, "end": moment}),
			"filter": of(schema{"values": objectShape}),
		}), "invalid_dynamic_search_rule_conditions"),
		"actions": schema{"x-error-code": "invalid_dynamic_search_rule_actions", "anyOf": []any{schema{"type": "null"}, listOf(objectShape), schema{"type": "object", "additionalProperties": false, "properties": schema{
			"pin":   list(schema{"id": schema{"type": "string"}, "position": schema{"type": "integer", "minimum": 0, "maximum": math.MaxUint32}, "indexUid": text}, "id", "position"),
			"scale": list(schema{"weight": schema{"type": "number", "minimum": 0}, "ids": orNull(listOf(schema{"type": "string"})), "filter": filterShape, "indexUid": text}, "weight"),
		}}}},
	}}
}

// ruleTask reports whether a write of a rule is a task, as since v1.50, and refuses it on instances that do not lead (not_a_leader).
// Writes that a leader sends on are always tasks. If a write does not show its form, the form of the rule that it changes decides,
// and it queues behind waiting rule tasks.
func (s *Server) ruleTask(ctx *fasthttp.RequestCtx, uid string, form rule.Form, decided bool) (bool, error) {
	newer := decided && form != rule.Lists || s.sentOn(ctx)
	if !decided && !newer {
		r, err := s.rules.Get(uid)
		newer = s.newest || err == nil && r.Form != rule.Lists
		if !newer {
			waiting, err := s.queue.Match(task.Filter{Kinds: []task.Kind{task.RuleUpdate, task.RuleClear}, Statuses: []task.Status{task.Enqueued, task.Processing}})
			if err != nil {
				return false, err
			}
			newer = len(waiting) > 0
		}
	}
	if !newer {
		return false, nil
	}
	return true, s.admitWrite(ctx)
}

// putRule stores a rule. A body in the newer form becomes a task; one in the older form takes effect before the answer. The API
// changed this with the form.
func (s *Server) putRule(ctx *fasthttp.RequestCtx) error {
	if err := s.needRulesHere(ctx); err != nil {
		return err
	}
	uid := pathValue(ctx, "rule_uid")
	if !rule.ValidUID(uid) {
		return rule.NotFound(uid)
	}
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	form, decided := rule.FormOf(json.RawMessage(body))
	newer, err := s.ruleTask(ctx, uid, form, decided)
	if err != nil {
		return err
	}
	if newer {
		return s.enqueueRule(ctx, uid, body, d.metadata)
	}
	var c rule.Change
	if err := decode(&c, body, ruleParams, object{code: "bad_request"}); err != nil {
		return err
	}
	if err := s.checkActions(c.Actions); err != nil {
		return err
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

// checkActions refuses filters of actions that need a disabled feature.
func (s *Server) checkActions(all []rule.Action) error {
	for i := range all {
		if err := s.checkFilter(all[i].Selector.Filter); err != nil {
			return err
		}
	}
	return nil
}

// enqueueRule checks a change of a rule and enqueues it. The task would find the same mistakes.
func (s *Server) enqueueRule(ctx *fasthttp.RequestCtx, uid string, body value, metadata *string) error {
	c, err := rule.ReadChange(json.RawMessage(body))
	if err != nil {
		return err
	}
	if !s.sentOn(ctx) { // the leader has its features
		if err := s.checkActions(c.Actions); err != nil {
			return err
		}
	}
	ctx.SetUserValue(bodyKey{}, body)
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: task.RulesIndex, Content: task.UpdateRule{UID: uid, Rule: compact.Bytes()}, CustomMetadata: metadata}, fasthttp.StatusAccepted)
}

// deleteRule deletes a rule at once or by a task, like putRule.
func (s *Server) deleteRule(ctx *fasthttp.RequestCtx) error {
	if err := s.needRulesHere(ctx); err != nil {
		return err
	}
	uid := pathValue(ctx, "rule_uid")
	if !rule.ValidUID(uid) {
		return rule.NotFound(uid)
	}
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	newer, err := s.ruleTask(ctx, uid, rule.Lists, false)
	if err != nil {
		return err
	}
	if newer {
		return s.enqueueRuleDeletion(ctx, task.UpdateRule{UID: uid}, d.metadata)
	}
	if err := s.rules.Delete(uid); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

func (s *Server) clearRules(ctx *fasthttp.RequestCtx) error {
	if err := s.needRulesHere(ctx); err != nil {
		return err
	}
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	if err := s.admitWrite(ctx); err != nil {
		return err
	}
	return s.enqueueRuleDeletion(ctx, task.ClearRules{}, d.metadata)
}

func (s *Server) enqueueRuleDeletion(ctx *fasthttp.RequestCtx, content task.Content, metadata *string) error {
	return s.enqueue(ctx, task.New{IndexUID: task.RulesIndex, Content: content, CustomMetadata: metadata}, fasthttp.StatusAccepted)
}
