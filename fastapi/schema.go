package fastapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/scroll"
	"svc/internal/settings"
)

// schema is a JSON Schema of the draft 2020-12, as OpenAPI 3.1 uses it.
type schema = map[string]any

// Shapes of values that several parameters have.
var (
	// A filter is an expression, or an array of conditions that all must hold. Inner arrays are alternatives.
	filterShape     = schema{"type": []any{"string", "array"}, "items": schema{"type": []any{"string", "array"}, "items": schema{"type": "string"}}}
	cursorShape     = schema{"type": "string", "maxLength": scroll.MaxCursorBytes, "description": "Empty for the first page, then `nextCursor` of the previous answer."}
	sortShape       = schema{"type": "array", "items": schema{"type": "string"}, "maxItems": maxSortRules}
	idsShape        = schema{"type": "array", "items": schema{"type": []any{"string", "integer"}}, "maxItems": maxIDs}
	ratioShape      = schema{"type": "number", "minimum": 0, "maximum": 1}
	nameShape       = schema{"type": "string", "minLength": 1}
	uidShape        = schema{"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,400}$"}
	uuidShape       = schema{"type": "string", "format": "uuid"}
	uint32Shape     = schema{"type": "integer", "minimum": 0, "maximum": 1<<32 - 1}
	momentShape     = schema{"type": "string", "description": "A date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z, or *."}
	textOrNullShape = schema{"type": []any{"string", "null"}}

	vectorShape = schema{"anyOf": []any{
		schema{"type": "array", "items": schema{"type": "number"}, "maxItems": maxVectorNumbers},
		schema{"type": "string", "contentEncoding": "base64", "description": "32-bit floats, little-endian."},
	}}

	// Each aggregation has one kind, a member that names its attribute, and the options of the kind. See docs/AGGREGATIONS.md.
	aggregationsShape = mapOf(schema{"type": "object", "properties": schema{
		"terms": nameShape, "stats": nameShape, "percentiles": nameShape, "histogram": nameShape, "dateHistogram": nameShape, "range": nameShape, "cardinality": nameShape,
		"limit": schema{"type": "integer", "minimum": 1, "maximum": aggregate.MaxBuckets}, "minCount": schema{"type": "integer", "minimum": 0},
		"order":    oneOf("count:desc", "count:asc", "key:asc", "key:desc"),
		"percents": schema{"type": "array", "items": schema{"type": "number", "minimum": 0, "maximum": 100}, "minItems": 1, "maxItems": 100},
		"interval": schema{"anyOf": []any{schema{"type": "number", "exclusiveMinimum": 0}, oneOf("second", "minute", "hour", "day", "week", "month", "quarter", "year")}},
		"offset":   schema{"type": "number"}, "timeZone": schema{"type": "string"}, "unit": oneOf("seconds", "milliseconds"),
		"bands": schema{"type": "array", "minItems": 1, "maxItems": 100, "items": schema{"type": "object", "properties": schema{
			"from": schema{"type": "number"}, "to": schema{"type": "number"}}}},
		"aggregations": schema{"type": "object", "description": "Aggregations of the documents of each bucket, up to 3 levels."},
	}})

	// refusedShape is the schema of members that only the server sets: no value is valid.
	refusedShape = schema{"not": schema{}, "description": "Cannot be set."}
)

func oneOf(names ...string) schema { return schema{"type": "string", "enum": slices.Clone(names)} }

func listOf(of schema) schema {
	return schema{"type": "array", "items": of, "maxItems": maxListEntries}
}

func mapOf(of schema) schema { return schema{"type": "object", "additionalProperties": of} }

// starOr is of, or * for all.
func starOr(of schema) schema { return schema{"anyOf": []any{of, schema{"const": "*"}}} }

func orNull(of schema) schema {
	if one, ok := of["type"].(string); ok && of["enum"] == nil {
		of = maps.Clone(of)
		of["type"] = []any{one, "null"}
		return of
	}
	return schema{"anyOf": []any{of, schema{"type": "null"}}}
}

// settingsShape is the body of PATCH /settings.
func settingsShape() schema {
	properties := schema{}
	for _, s := range settings.Shapes() {
		properties[s.Key] = s.Schema
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

// field is a parameter as the document of the API shows it.
type field struct {
	name string
	code apierr.Code
	kind kind
	null bool
	most int
	own  schema // param.shape
}

func fields[T any](params []param[T]) []field {
	all := make([]field, len(params))
	for i := range params {
		p := &params[i]
		all[i] = field{p.name, p.code, p.kind, p.null, p.most, p.shape}
	}
	return all
}

// inBody is the schema of the field as a member of an object.
func (f *field) inBody() schema {
	s := f.own
	if s == nil {
		s = f.plain()
	}
	if f.null {
		s = orNull(s)
	}
	return s
}

// inQuery is the schema of the field in a query string.
func (f *field) inQuery() schema {
	switch {
	case f.kind != raw && f.own != nil:
		return f.own
	case f.kind == raw && f.own["type"] == "array":
		return f.own
	case f.kind == raw:
		return schema{"type": "string"} // the language of filters or templates says the rest
	}
	return f.plain()
}

// plain is what the kind says.
func (f *field) plain() schema {
	most := f.most
	if most == 0 && int(f.kind) < len(defaultMost) {
		most = defaultMost[f.kind]
	}
	switch f.kind {
	case textual:
		s := schema{"type": "string"}
		if most != unlimited {
			s["maxLength"] = most // in characters; fewer fit if they take more than a byte
		}
		return s
	case count:
		return schema{"type": "integer", "minimum": 0}
	case flag:
		return schema{"type": "boolean"}
	case number:
		return schema{"type": "number"}
	case list:
		s := schema{"type": "array", "items": schema{"type": "string"}}
		if most != unlimited {
			s["maxItems"] = most
		}
		return s
	}
	return schema{}
}

// objectOf is the schema of an object that a table of parameters decodes.
func objectOf[T any](params []param[T], needed ...string) schema {
	return objectOfFields(fields(params), needed...)
}

func objectOfFields(all []field, needed ...string) schema {
	properties := schema{}
	for i := range all {
		shape := maps.Clone(all[i].inBody())
		if code := all[i].code; code != "bad_request" {
			shape["x-error-code"] = code
		}
		properties[all[i].name] = shape
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// shown is the schema of a value in an answer, as encoding writes it.
func shown[T any]() schema { return shownType(reflect.TypeFor[T]()) }

// shownType derives the schema of an answer from the Go type that encodes it. A type with its own encoding may be anything.
func shownType(t reflect.Type) schema {
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return schema{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(shownType(t.Elem()))
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Slice:
		return schema{"type": "array", "items": shownType(t.Elem())}
	case reflect.Map:
		return mapOf(shownType(t.Elem()))
	case reflect.Struct:
		properties, required := schema{}, []string{}
		addShown(t, properties, &required)
		return schema{"type": "object", "properties": properties, "required": required}
	}
	return schema{}
}

// addShown adds the fields of a struct, including those of embedded structs. Fields without omitempty are required.
func addShown(t reflect.Type, properties schema, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			addShown(f.Type, properties, required)
			continue
		}
		properties[name] = shownType(f.Type)
		if options != "omitempty" {
			*required = append(*required, name)
		}
	}
}
