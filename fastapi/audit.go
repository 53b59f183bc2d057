package fastapi

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/audit"
)

// audited are the actions whose requests are logged in the audit log: they change administrative data, or copy the whole instance.
var audited = map[action]bool{
	actionIndexesCreate: true, actionIndexesUpdate: true, actionIndexesDelete: true, actionIndexesSwap: true,
	actionSettingsUpdate: true,
	actionKeysCreate:     true, actionKeysUpdate: true, actionKeysDelete: true,
	actionFeaturesUpdate: true, actionNetworkUpdate: true, actionGroupUpdate: true,
	actionWebhooksCreate: true, actionWebhooksUpdate: true, actionWebhooksDelete: true,
	actionChatsDelete: true, actionChatsSettingsUpdate: true,
	actionRulesUpdate: true, actionRulesDelete: true,
	actionAnalyticsDelete: true,
	actionDumpsCreate:     true, actionSnapshotsCreate: true, actionExport: true,
	actionMetricsAll: true, // a change of the log settings may hide something
}

// unaudited are routes of audited actions that change nothing.
var unaudited = map[string]bool{"/network/transfer": true}

// auditedReads are routes that change nothing, but are in the audit log because they copy the whole instance.
var auditedReads = map[string]bool{"/downloads/dumps/{dump}": true, "/downloads/snapshots/{snapshot}": true}

// auditKey is the key of the request value with the data for the audit log, besides the route.
type auditKey struct{}

// auditNote is what a handler tells the audit log.
type auditNote struct {
	route  *route
	object string
	task   *uint32
}

// noteOf returns the data of a request for the audit log, or nil if it is not logged.
func noteOf(ctx *fasthttp.RequestCtx) *auditNote {
	n, _ := ctx.UserValue(auditKey{}).(*auditNote)
	return n
}

// concerns sets what a request changes, for the audit log, if its path does not say so.
func concerns(ctx *fasthttp.RequestCtx, object string) {
	if n := noteOf(ctx); n != nil {
		n.object = object
	}
}

// objectNames are the variables of paths that name the changed object.
var objectNames = [...]string{"index_uid", "alias", "webhook", "workspace", "rule_uid", "member", "dump", "snapshot", "key"}

// beginAudit begins the entry of a request, if the audit log is to have one.
func (s *Server) beginAudit(ctx *fasthttp.RequestCtx, r *route) {
	if s.audit == nil || !audited[r.action] && !auditedReads[r.path] || unaudited[r.path] {
		return
	}
	n := &auditNote{route: r}
	for _, name := range objectNames {
		if ctx.UserValue(name) == nil {
			continue
		}
		n.object = shorten([]byte(pathValue(ctx, name)))
		if name == "key" && uuid.Validate(n.object) != nil { // the value of a key: a secret
			n.object = ""
		}
		n.object = s.concealed(n.object)
	}
	ctx.SetUserValue(auditKey{}, n)
}

// endAudit writes the entry of a request that is answered.
func (s *Server) endAudit(ctx *fasthttp.RequestCtx) {
	if s.audit == nil {
		return
	}
	n := noteOf(ctx)
	if n == nil {
		return
	}
	r := n.route
	e := audit.Entry{
		Time: time.Now(), Key: s.auditedKey(ctx), Action: string(r.action), Method: r.method, Route: r.path, Object: n.object,
		Address: ctx.RemoteAddr().String(), Status: ctx.Response.StatusCode(), Outcome: audit.Done, Task: n.task,
	}
	write := s.audit.Append
	switch err, failed := ctx.UserValue(errorKey{}).(*apierr.Error); {
	case failed:
		e.Outcome = string(err.Code)
		if err.Code == "invalid_api_key" || err.Code == "missing_authorization_header" {
			write = s.audit.Refuse
		}
	case n.task != nil:
		e.Outcome = audit.Enqueued
	}
	if err := write(e); err != nil {
		s.log.Error("a change is missing in the audit log", "error", err, "action", e.Action, "object", e.Object, "key", e.Key)
	}
}

// auditedKey identifies the sender of a request, even if the key has no right to it.
func (s *Server) auditedKey(ctx *fasthttp.RequestCtx) string {
	if !s.keys.Protected() {
		return ""
	}
	switch uid, master := s.keys.Holder(credential(ctx)); {
	case master:
		return audit.Master
	case uid != uuid.Nil:
		return uid.String()
	}
	return ""
}
