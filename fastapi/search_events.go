package fastapi

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/analytics"
	"svc/internal/apierr"
)

// Limits of events.
const (
	maxEvents        = 1000 // of a request
	maxEventBytes    = 1 << 10
	maxEventPosition = 1_000_000
)

// eventInput is an event, and which of its members were given.
type eventInput struct {
	analytics.Event
	named, typed bool
}

var eventParams = []param[eventInput]{
	{name: "requestUid", code: "invalid_event_request_uid", kind: textual, shape: schema{"type": "string", "format": "uuid"}, set: func(e *eventInput, a *arg) error {
		id, err := uuid.Parse(a.text)
		if err != nil {
			return a.expected("the `requestUid` of an answer to a search")
		}
		e.Request, e.named = id, true
		return nil
	}},
	{name: "type", code: "invalid_event_type", kind: textual, shape: oneOf("click", "conversion"), set: func(e *eventInput, a *arg) error {
		switch e.typed = true; a.text {
		case "click":
			e.Kind = analytics.Click
		case "conversion":
			e.Kind = analytics.Conversion
		default:
			return a.expected("`click` or `conversion`")
		}
		return nil
	}},
	{name: "position", code: "invalid_event_position", kind: count, null: true, shape: schema{"type": "integer", "minimum": 1, "maximum": maxEventPosition}, set: func(e *eventInput, a *arg) error {
		if e.Position = a.count; a.count < 1 || a.count > maxEventPosition {
			return a.expected("the place of the hit among all hits, from 1 to 1000000")
		}
		return nil
	}},
	{name: "queryPosition", code: "invalid_event_query_position", kind: count, null: true, shape: schema{"type": "integer", "minimum": 0, "maximum": maxEventPosition}, set: func(e *eventInput, a *arg) error {
		if e.Query = a.count; a.count > maxEventPosition {
			return a.expected("the place of the query in its multi-search, from 0")
		}
		return nil
	}},
}

var eventsBody = jsonBody(schema{"type": "array", "items": objectOf(eventParams, "requestUid", "type"), "minItems": 1, "maxItems": maxEvents})

// readEvents reads the body of a request with events.
func (s *Server) readEvents(ctx *fasthttp.RequestCtx) ([]analytics.Event, error) {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return nil, err
	}
	const code = "invalid_events"
	if !body.array() {
		return nil, apierr.New(code, "The body must be an array of events such as `{\"requestUid\": \"…\", \"type\": \"click\", \"position\": 1}`, but it is %s.", body.kind())
	}
	var events []analytics.Event
	for element := range body.elements() {
		path := fmt.Sprintf("[%d]", len(events))
		switch {
		case len(events) == maxEvents:
			return nil, apierr.New(code, "The body has more than %d events. Send them in several requests.", maxEvents)
		case len(element) > maxEventBytes:
			return nil, apierr.New(code, "The event `%s` has %d bytes, but may have at most %d.", path, len(element), maxEventBytes)
		}
		var e eventInput
		if err := decode(&e, element, eventParams, object{path: path + ".", code: "bad_request", notCode: code}); err != nil {
			return nil, err
		}
		switch {
		case !e.named:
			return nil, apierr.New("missing_event_request_uid", "`%s.requestUid` is missing: name the search by the `requestUid` of its answer.", path)
		case !e.typed:
			return nil, apierr.New("missing_event_type", "`%s.type` is missing: use `click` or `conversion`.", path)
		}
		events = append(events, e.Event)
	}
	if len(events) == 0 {
		return nil, apierr.New(code, "The body has no events. Send at least one.")
	}
	return events, nil
}

// eventsView is what became of events.
type eventsView struct {
	Counted int `json:"counted"`
	Unknown int `json:"unknown"` // of unknown or forgotten searches
}

// postEvents counts clicks and conversions. It reads all events of a request before it counts one.
func (s *Server) postEvents(ctx *fasthttp.RequestCtx) error {
	events, err := s.readEvents(ctx)
	if err != nil {
		return err
	}
	if err := s.needAnalytics(); err != nil {
		return err
	}
	counted, unknown := s.analytics.AddEvents(events, caller(ctx).Reaches)
	return answer(ctx, eventsView{counted, unknown})
}
