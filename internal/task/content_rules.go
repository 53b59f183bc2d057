package task

import "encoding/json"

// UpdateRule changes, makes or deletes a search rule. Its task is of RulesIndex.
type UpdateRule struct {
	UID  string          `json:"uid"`
	Rule json.RawMessage `json:"rule,omitempty"` // a JSON object, as it was sent; nil: the rule is deleted
}

func (UpdateRule) Kind() Kind { return RuleUpdate }

func (c UpdateRule) details(string, *outcome) json.RawMessage {
	return encode(struct {
		Rule    json.RawMessage `json:"rule,omitempty"`
		Updated int             `json:"updatedRules"`
	}{c.Rule, 1})
}

// ClearRules deletes all search rules. Its task is of RulesIndex.
type ClearRules struct{}

func (ClearRules) Kind() Kind { return RuleClear }

func (ClearRules) details(_ string, o *outcome) json.RawMessage { return deletedDetails(o) }

func (UpdateRule) class() class   { return ruleUpdate }
func (c UpdateRule) bytes() int64 { return int64(len(c.Rule)) }
func (ClearRules) class() class   { return ruleClear }
