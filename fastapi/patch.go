package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/document"
	"svc/internal/task"
)

// patch is what the query string says of a partial update.
type patch struct {
	atomic    bool
	ifMissing string
	metadata  *string
}

var patchParams = []param[patch]{
	{name: "atomic", code: "invalid_document_atomic", kind: flag, set: func(p *patch, a *arg) error { p.atomic = a.flag; return nil }},
	{name: "ifMissing", code: "invalid_document_if_missing", kind: textual, shape: oneOf(document.IfMissingNames()...), set: func(p *patch, a *arg) error {
		if _, ok := document.ParseIfMissing(a.text); !ok {
			return a.expected("`skip`, `create` or `fail`")
		}
		p.ifMissing = a.text
		return nil
	}},
	{name: "customMetadata", code: "invalid_index_custom_metadata", kind: textual, set: func(p *patch, a *arg) error { p.metadata = &a.text; return nil }},
}

// operationShape is one entry of a partial update. It also has the primary key of the index, under its name.
var operationShape = schema{
	"type": "object",
	"properties": schema{
		"set": objectShape, "unset": schema{"type": "array", "items": schema{"type": "string"}},
		"increment": mapOf(schema{"type": "number"}), "append": objectShape, "addToSet": objectShape, "remove": objectShape,
		"filter": orNull(filterShape), "ifMissing": oneOf(document.IfMissingNames()...),
	},
}

// operationsBody is an operation or many.
var operationsBody = &content{
	[]string{contentJSON, contentNDJSON}, schema{"anyOf": []any{schema{"type": "array", "items": operationShape}, operationShape}},
}

// patchDocuments streams operations into the queue's file. Before it creates the task it only checks that each operation is a JSON
// object. The task checks the rest: an invalid operation fails alone, or with `atomic` all operations fail.
func (s *Server) patchDocuments(ctx *fasthttp.RequestCtx) error {
	var p patch
	if err := decodeQuery(&p, ctx.QueryArgs(), patchParams); err != nil {
		return err
	}
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	const accepted = "`application/json` or `application/x-ndjson`"
	kind, err := mediaType(ctx, accepted)
	if err != nil {
		return err
	}
	format := document.JSON
	switch kind {
	case contentJSON:
	case contentNDJSON:
		format = document.NDJSON
	default:
		return wrongType(ctx, accepted)
	}
	payload, err := s.queue.NewPayload()
	if err != nil {
		return err
	}
	defer payload.Discard() // does nothing once a task has it
	n, err := s.receive(ctx, payload, format, 0)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{
		IndexUID: uid,
		Content: task.AddDocuments{
			Documents: n, Operations: true, Atomic: p.atomic, IfMissing: p.ifMissing, Contains: s.features.on("containsFilter"),
		},
		Payload:        payload,
		CustomMetadata: p.metadata,
	}, fasthttp.StatusAccepted)
}
