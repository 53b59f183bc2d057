package fastapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// operation has what the API document says about a route besides its method, path and action. Parameters and bodies come from the
// tables that the handler decodes with.
type operation struct {
	does    string // in a few words
	query   []field
	loose   bool // other parameters pass
	body    *content
	answers []int // statuses of success; nil: 200
	refuses []int // statuses of errors besides those of all routes of its kind
	gives   schema
	as      string // media type of the answer; "": JSON
}

// content is a body: its media types, and what JSON has to be.
type content struct {
	types  []string
	schema schema
}

// body is a body that is an object of parameters.
func body[T any](params []param[T], needed ...string) *content {
	return jsonBody(objectOf(params, needed...))
}

// looseBody is a body that may have unknown members.
func looseBody[T any](params []param[T], needed ...string) *content {
	s := objectOf(params, needed...)
	delete(s, "additionalProperties")
	return jsonBody(s)
}

func jsonBody(s schema) *content { return &content{[]string{contentJSON}, s} }

var (
	accepted  = []int{fasthttp.StatusAccepted}
	created   = []int{fasthttp.StatusCreated}
	noContent = []int{fasthttp.StatusNoContent}

	conflict      = []int{fasthttp.StatusConflict}
	wholeOrPart   = []int{fasthttp.StatusOK, fasthttp.StatusPartialContent}
	moveErrors    = []int{fasthttp.StatusNotFound, fasthttp.StatusConflict}
	fromElsewhere = []int{fasthttp.StatusNotFound, fasthttp.StatusBadGateway} // other instances, and indexes that bodies name
	ofNetwork     = []int{fasthttp.StatusPreconditionFailed, fasthttp.StatusBadGateway}
)

// documentsBody is a document or many.
var documentsBody = &content{
	[]string{contentJSON, contentNDJSON, "text/csv"}, schema{"type": []any{"array", "object"}, "items": schema{"type": "object"}},
}

// taskShape is the summary of a task that was enqueued.
var taskShape = schema{
	"type": "object",
	"properties": schema{
		"taskUid": uint32Shape, "indexUid": textOrNullShape, "status": oneOf("enqueued"), "type": schema{"type": "string"},
		"enqueuedAt": schema{"type": "string", "format": "date-time"}, "customMetadata": schema{"type": "string"},
	},
	"required": []string{"taskUid", "indexUid", "status", "type", "enqueuedAt"},
}

// uidPageShape is a list that is cut by uids.
var uidPageShape = schema{
	"type": "object",
	"properties": schema{
		"results": schema{"type": "array", "items": objectShape}, "total": schema{"type": "integer"}, "limit": schema{"type": "integer"},
		"from": orNull(uint32Shape), "next": orNull(uint32Shape),
	},
	"required": []string{"results", "total", "limit", "from", "next"},
}

// chatShape has the used members of a conversation; the rest goes to the provider.
var chatShape = schema{
	"type": "object",
	"properties": schema{
		"model": schema{"type": "string"}, "messages": schema{"type": "array", "items": objectShape}, "stream": schema{"const": true},
		"n": schema{"enum": []any{1, nil}}, "tools": orNull(schema{"type": "array", "items": objectShape}),
	},
	"required": []string{"model", "messages", "stream"},
}

// objectShape is an answer that the document does not describe further.
var objectShape = schema{"type": "object"}

// statuses returns the statuses of errors that a route may answer with, in order.
func (r *route) statuses() []int {
	all := []int{
		fasthttp.StatusBadRequest, fasthttp.StatusRequestTimeout, fasthttp.StatusRequestHeaderFieldsTooLarge,
		fasthttp.StatusInternalServerError, fasthttp.StatusServiceUnavailable,
	}
	if r.action != public {
		all = append(all, fasthttp.StatusUnauthorized, fasthttp.StatusForbidden, fasthttp.StatusUnprocessableEntity, fasthttp.StatusTooManyRequests)
	}
	if r.action.spreads() {
		all = append(all, ofNetwork...)
	}
	if strings.Contains(r.path, "{") {
		all = append(all, fasthttp.StatusNotFound)
	}
	if r.op.body != nil {
		all = append(all, fasthttp.StatusRequestEntityTooLarge, fasthttp.StatusUnsupportedMediaType)
	}
	all = append(all, r.op.refuses...)
	slices.Sort(all)
	return slices.Compact(all)
}

// describeAPI generates the API document from the table of routes.
func describeAPI(table []route, version Version) ([]byte, error) {
	paths := map[string]schema{}
	used := map[int]bool{}
	for i := range table {
		r := &table[i]
		for _, status := range r.statuses() {
			used[status] = true
		}
		if paths[r.path] == nil {
			paths[r.path] = schema{"parameters": pathParameters(r.path)}
		}
		paths[r.path][strings.ToLower(r.method)] = r.describe()
	}
	responses := schema{}
	for status := range used {
		codes := []apierr.Code{}
		for _, code := range apierr.Codes() {
			if code.Status() == status {
				codes = append(codes, code)
			}
		}
		what := fasthttp.StatusMessage(status)
		if len(codes) > 0 && len(codes) < 20 {
			names := make([]string, len(codes))
			for i, code := range codes {
				names[i] = fmt.Sprintf("[%s](%s)", code, code.Link())
			}
			what += ": " + strings.Join(names, ", ")
		}
		responses["Error"+strconv.Itoa(status)] = schema{
			"description": what, "content": schema{contentJSON: schema{"schema": reference("schemas/Error")}},
		}
	}
	return json.Marshal(schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "svc", "version": cmp.Or(version.Package, "unknown"), "license": schema{"name": "See /licenses"},
			"description": "The API of this server. Request and response bodies may be compressed (gzip, deflate, br, zstd). " +
				"GET routes also answer HEAD. Other methods get 405, other paths 404.",
		},
		"servers": []schema{{"url": "/"}},
		"paths":   paths,
		"components": schema{
			"responses": responses,
			"schemas": schema{"Error": schema{
				"type": "object",
				"properties": schema{
					"message": schema{"type": "string"}, "code": schema{"type": "string", "enum": apierr.Codes()},
					"type": oneOf("invalid_request", "auth", "internal", "system"), "link": schema{"type": "string", "format": "uri-reference"},
				},
				"required": []string{"message", "code", "type", "link"},
			}},
			"securitySchemes": schema{"key": schema{"type": "http", "scheme": "bearer", "description": "The master key, an API key or a tenant token. " +
				"Without a master key, every client has full access, except to keys and chats."}},
		},
	})
}

func reference(to string) schema { return schema{"$ref": "#/components/" + to} }

// pathParameters describes the variables of a path.
func pathParameters(path string) []schema {
	all := []schema{}
	for segment := range strings.SplitSeq(path, "/") {
		name, ok := strings.CutPrefix(segment, "{")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		shape, ok := pathShapes[name]
		if !ok {
			shape = nameShape
		}
		all = append(all, schema{"name": name, "in": "path", "required": true, "schema": shape})
	}
	return all
}

// pathShapes has the schemas of path variables other than plain names.
var pathShapes = map[string]schema{"index_uid": uidShape, "alias": uidShape, "task_id": uint32Shape, "batch_id": uint32Shape, "webhook": uuidShape}

// describe returns the route as an operation of the document.
func (r *route) describe() schema {
	d := &r.op
	parameters := []schema{}
	for i := range d.query {
		f := &d.query[i]
		shape := f.inQuery()
		p := schema{"name": f.name, "in": "query", "schema": shape, "x-error-code": f.code}
		if shape["type"] == "array" {
			p["style"], p["explode"] = "form", false
		}
		parameters = append(parameters, p)
	}
	responses := schema{}
	success := d.answers
	if success == nil {
		success = []int{fasthttp.StatusOK}
	}
	for _, status := range success {
		response := schema{"description": fasthttp.StatusMessage(status)}
		if status != fasthttp.StatusNoContent {
			shape := d.gives
			if shape == nil {
				shape = schema{}
			}
			response["content"] = schema{cmp.Or(d.as, contentJSON): schema{"schema": shape}}
		}
		responses[strconv.Itoa(status)] = response
	}
	for _, status := range r.statuses() {
		responses[strconv.Itoa(status)] = reference("responses/Error" + strconv.Itoa(status))
	}
	tag, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/"), "/")
	o := schema{
		"operationId": operationID(r), "summary": d.does, "tags": []string{cmp.Or(tag, "server")}, "responses": responses, "parameters": parameters,
		"security": []schema{{"key": []string{}}}, "x-action": r.action,
	}
	if r.action == public {
		o["security"] = []schema{}
	}
	if d.body != nil {
		types := schema{}
		for _, t := range d.body.types {
			shape := d.body.schema
			if t != contentJSON {
				shape = schema{"type": "string"}
			}
			types[t] = schema{"schema": shape}
		}
		o["requestBody"] = schema{"required": true, "content": types}
	}
	return o
}

// operationID names an operation by its method and path: getIndexesByIndexUidStats.
func operationID(r *route) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.method))
	for word := range strings.FieldsFuncSeq(strings.ReplaceAll(r.path, "{", "by-"), func(c rune) bool { return strings.ContainsRune("/}-_.", c) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// getOpenAPI answers with the API document. It reveals only the version of this server and which routes it has.
func (s *Server) getOpenAPI(ctx *fasthttp.RequestCtx) error {
	b, err := s.openAPI()
	if err != nil {
		return err
	}
	ctx.Response.Header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	ctx.SetContentType(contentJSON)
	ctx.Response.SetBodyRaw(b)
	return nil
}
