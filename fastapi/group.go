package fastapi

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/group"
)

// Member is what a server knows of the group that it belongs to.
type Member interface {
	// Position returns the position that the data directory has reached in the history of the group.
	Position() group.Position
	// Wait waits until Position reaches p. It returns only errors of ctx.
	Wait(ctx context.Context, p group.Position) error
	// Staleness returns how long ago the data directory was equal to that of the writer. known is false if it never was in this run.
	Staleness() (d time.Duration, known bool)
	Status() *group.Status
}

// Headers of answers of a member of a group.
const (
	headerPosition  = "Svc-Position"
	headerStaleness = "Svc-Staleness"
)

// positionTime is how long a request waits for the changes that it wants to see.
const positionTime = 5 * time.Second

// aloneRole is the role of a server that is in no group.
const aloneRole group.Role = "alone"

func (s *Server) getGroup(ctx *fasthttp.RequestCtx) error {
	if s.member == nil {
		return answer(ctx, struct {
			Role group.Role `json:"role"`
		}{aloneRole})
	}
	st := s.member.Status()
	if st.Reader != nil {
		st.Reader.AnswersReads = s.forward != nil // else a Standby would answer
	}
	st.MissingModels = s.catalog.MissingModels()
	return answer(ctx, st)
}

// promotion is a request for this reader to become the writer.
type promotion struct{ force bool }

var promotionParams = []param[promotion]{
	{name: "force", code: "invalid_group_force", kind: flag, set: func(p *promotion, a *arg) error { p.force = a.flag; return nil }},
}

// promote makes this reader the writer of its group.
func (s *Server) promote(ctx *fasthttp.RequestCtx) error {
	var p promotion
	if err := readObject(s, ctx, &p, promotionParams); err != nil {
		return err
	}
	switch {
	case s.member == nil:
		return apierr.New("not_a_reader", "This server belongs to no group.")
	case s.forward == nil:
		return apierr.New("not_a_reader", "This server is the writer of its group already.")
	case s.takeOver == nil:
		return apierr.New("promotion_refused", "This reader has no address for other members. Start it with `--group-addr`, or stop it and run `svc group promote --db-path`.")
	}
	member, err := s.takeOver(ctx, p.force)
	if err != nil {
		return err
	}
	return answer(ctx, member.Status())
}

// electorate is a Member that votes. Its errors are errors of the API.
type electorate interface {
	// Transfer starts to hand the lead to another member, given by id or address; "": any. It fails if this member does not lead.
	Transfer(to string) error
	// Remove removes a member by its id or address.
	Remove(member string) error
	// Latest returns a position that has all changes which were acknowledged before the call.
	Latest(ctx context.Context) (group.Position, error)
	// Draining reports whether this member is stopping: clients should use another one.
	Draining() bool
	// Votes reports whether this member has a vote. It does not wait for the disk.
	Votes() bool
	// Behind reports whether this member has not caught up with the group since its start.
	Behind() bool
}

func (s *Server) voter() (electorate, error) {
	if v, ok := s.member.(electorate); ok {
		return v, nil
	}
	return nil, apierr.New("not_a_voter", "This server is no voter of a group.")
}

// leadTransfer is a request for another voter to lead.
type leadTransfer struct{ member string }

var transferLeadParams = []param[leadTransfer]{
	{name: "member", code: "invalid_group_member", kind: textual, null: true, set: func(t *leadTransfer, a *arg) error { t.member = a.text; return nil }},
}

// transferLead starts to hand the lead of the group to another voter. It answers first, because this server closes its stores for
// that.
func (s *Server) transferLead(ctx *fasthttp.RequestCtx) error {
	var t leadTransfer
	if err := readObject(s, ctx, &t, transferLeadParams); err != nil {
		return err
	}
	v, err := s.voter()
	if err != nil {
		return err
	}
	concerns(ctx, t.member)
	if err := v.Transfer(t.member); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusAccepted)
	return answer(ctx, s.member.Status())
}

func (s *Server) removeMember(ctx *fasthttp.RequestCtx) error {
	v, err := s.voter()
	if err != nil {
		return err
	}
	if err := v.Remove(pathValue(ctx, "member")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// leastKey is the key of the request value with the position that the request wants to see.
type leastKey struct{}

// latestPosition is the value of headerMinPosition for all changes that were acknowledged before the request.
const latestPosition = "latest"

// leastPosition returns the position that a request wants to see.
func (s *Server) leastPosition(ctx context.Context, text string) (group.Position, error) {
	if text == latestPosition {
		v, err := s.voter()
		if err != nil {
			return group.Position{}, apierr.New("bad_request", "The header `%s` may be `%s` only at voters of a group.", headerMinPosition, latestPosition)
		}
		return v.Latest(ctx)
	}
	at, err := group.ParsePosition(text)
	if err != nil {
		return at, apierr.New("bad_request", "The header `%s` must be a position, such as `1.2.345`, but it is %q.", headerMinPosition, shorten([]byte(text)))
	}
	return at, nil
}

// unready reports whether clients should use another member of a group: this one is stopping, copies the data and does not vote yet,
// or has not caught up since its start.
func unready(m Member) bool {
	if v, ok := m.(electorate); ok {
		return v.Draining() || !v.Votes() || v.Behind()
	}
	return false
}

// stampPosition adds a position to the answer. The answer contains nothing of a later change.
func (s *Server) stampPosition(ctx *fasthttp.RequestCtx) {
	if s.member == nil || len(ctx.Response.Header.Peek(headerPosition)) > 0 { // the writer has answered
		return
	}
	ctx.Response.Header.Set(headerPosition, s.member.Position().String())
	if d, known := s.member.Staleness(); known && d > 0 {
		ctx.Response.Header.Set(headerStaleness, strconv.FormatFloat(d.Seconds(), 'f', 3, 64))
	}
}

// awaits reports whether a request wants to see a change.
func (s *Server) awaits(ctx *fasthttp.RequestCtx) bool {
	return s.member != nil && len(headerMinPosition.in(&ctx.Request.Header)) > 0
}

// awaitPosition waits for the changes that a request wants to see, and refuses it if the data may be older than it allows. Without a
// group both headers have no effect.
func (s *Server) awaitPosition(ctx *fasthttp.RequestCtx) error {
	if s.member == nil {
		return nil
	}
	if text := headerMinPosition.in(&ctx.Request.Header); len(text) > 0 {
		wait, cancel := context.WithTimeout(ctx, positionTime)
		defer cancel()
		least, known := ctx.UserValue(leastKey{}).(group.Position)
		if !known {
			var err error
			if least, err = s.leastPosition(wait, string(text)); err != nil {
				if apierr.From(err).Status() == fasthttp.StatusServiceUnavailable {
					ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
				}
				return err
			}
			ctx.SetUserValue(leastKey{}, least)
		}
		if s.member.Wait(wait, least) != nil {
			ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
			return apierr.New("position_not_reached", "This server is at position %v of its group and has not reached %v within %d s. Try again, or ask the writer.", s.member.Position(), least, int(positionTime.Seconds()))
		}
	}
	text := headerMaxStaleness.in(&ctx.Request.Header)
	if len(text) == 0 {
		return nil
	}
	most, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(most >= 0) || math.IsInf(most, 0) {
		return apierr.New("bad_request", "The header `%s` must be a number of seconds from 0 on, such as `2.5`, but it is %q.", headerMaxStaleness, shorten(text))
	}
	if d, known := s.member.Staleness(); !known || d.Seconds() > most {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
		return apierr.New("data_too_stale", "The data of this reader may be older than the %v s that the request allows: it was last up to date %s.", most, staleText(d, known))
	}
	return nil
}

func staleText(d time.Duration, known bool) string {
	if !known {
		return "before it was started"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + " s ago"
}

var (
	groupEntries   = describe("group_log_entries_total", "Last change of the log of the group that this server has, in this run of the writer.")
	groupStaleness = describe("group_staleness_seconds", "Time since the data of this member equalled that of the writer, in seconds.")
	groupForwarded = describe("group_forwarded_requests_total", "Requests that this reader has forwarded to the writer, since it opened its data.")
	groupLag       = describe("group_lag_entries", "Changes of the log of the group that a member has not applied yet.", "member")
	groupLagTime   = describe("group_lag_seconds", "Age of the oldest change that a member has not applied yet, in seconds.", "member")
	groupLeads     = describe("group_leader", "1 while this voter leads its group, 0 otherwise.")
	groupLed       = describe("group_has_leader", "1 while this voter knows a leader of its group, 0 otherwise.")
	groupReigns    = describe("group_leads_total", "How often this voter became the leader of its group since it was started.")
	groupCommitted = describe("group_committed_entries", "Last change of the log that the group has accepted, as far as this voter knows.")
	groupSilent    = describe("group_suppressed_total", "Messages that this voter did not send because its disk hangs or fails, since it was started.")
	groupModels    = describe("group_missing_models", "Local models that searches need and that are not on this server.")
	groupHeld      = describe("group_held_files", "Files that wait for removal because a member still needs them.")
)

// collectGroup collects the metrics of a member. A server in no group has none of them.
func (c state) collectGroup(to chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	m := c.s.member
	if m == nil {
		return
	}
	to <- prometheus.MustNewConstMetric(groupEntries, prometheus.CounterValue, float64(m.Position().Index))
	missing := map[string]bool{}
	for _, x := range c.s.catalog.MissingModels() {
		missing[x.Directory] = true
	}
	gauge(groupModels, float64(len(missing)))
	st := m.Status()
	if r := st.Reader; r != nil {
		if r.StalenessSeconds != nil {
			gauge(groupStaleness, *r.StalenessSeconds)
		}
		if r.Lag != nil {
			gauge(groupLag, float64(*r.Lag), st.Member)
		}
		to <- prometheus.MustNewConstMetric(groupForwarded, prometheus.CounterValue, float64(c.s.forwarded.Load()))
	}
	if v := st.Voter; v != nil {
		if v.Staleness != nil {
			gauge(groupStaleness, *v.Staleness)
		}
		gauge(groupLeads, oneIf(v.Leads))
		gauge(groupLed, oneIf(v.Leader != ""))
		to <- prometheus.MustNewConstMetric(groupReigns, prometheus.CounterValue, float64(v.Reigns))
		to <- prometheus.MustNewConstMetric(groupCommitted, prometheus.CounterValue, float64(v.Committed))
		to <- prometheus.MustNewConstMetric(groupSilent, prometheus.CounterValue, float64(v.Suppressed))
	}
	if st.Log != nil {
		gauge(groupHeld, float64(st.Log.FilesHeld))
	}
	for _, x := range st.Members {
		if x.Lag != nil {
			gauge(groupLag, float64(*x.Lag), x.Member)
			gauge(groupLagTime, x.LagSeconds, x.Member)
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
