package settings

import "svc/internal/apierr"

// Schema is a JSON Schema of the draft 2020-12.
type Schema = map[string]any

// Shape is what the update of a setting takes, and where.
type Shape struct {
	Key, Route, Method string
	Code               apierr.Code // of a value that cannot be used
	Schema             Schema
}

// Shapes returns all settings in the order of the API.
func Shapes() []Shape {
	shapes := make([]Shape, len(table))
	for i := range table {
		t := &table[i]
		shapes[i] = Shape{t.key, t.route, t.method, t.code, orNull(t.shape)}
	}
	return shapes
}

// orNull allows null, which means the default, in addition to s: for every setting and most members.
func orNull(s Schema) Schema {
	if one, ok := s["type"].(string); ok && one != "null" && s["enum"] == nil {
		with := Schema{}
		for key, v := range s {
			with[key] = v
		}
		with["type"] = []any{one, "null"}
		return with
	}
	if s["type"] == "null" {
		return s
	}
	return Schema{"anyOf": []any{s, Schema{"type": "null"}}}
}

var (
	textShape  = Schema{"type": "string"}
	flagShape  = Schema{"type": "boolean"}
	countShape = Schema{"type": "integer", "minimum": 0}
	ratioShape = Schema{"type": "number", "minimum": 0, "maximum": 1}
	byteShape  = Schema{"type": "integer", "minimum": 0, "maximum": 255}
	textsShape = listShape(textShape)
	anyObject  = Schema{"type": "object"}
)

func listShape(of Schema) Schema { return Schema{"type": "array", "items": of} }

func mapShape(of Schema) Schema { return Schema{"type": "object", "additionalProperties": of} }

func choiceShape(of ...string) Schema {
	names := make([]any, len(of))
	for i, name := range of {
		names[i] = name
	}
	return Schema{"type": "string", "enum": names}
}

// members are those of an object that allows no others.
type members map[string]Schema

// strict is an object of members that cannot be null, those that must be there among them.
func strict(all members, needed ...any) Schema {
	properties := Schema{}
	for name, s := range all {
		properties[name] = s
	}
	s := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

// loose is an object with members whose default is written as null.
func loose(all members) Schema {
	nullable := members{}
	for name, s := range all {
		nullable[name] = orNull(s)
	}
	return strict(nullable)
}

// searchableShape is the schema of searchableAttributes: names, and arrays of names for groups.
var searchableShape = listShape(Schema{"anyOf": []any{textShape, Schema{"type": "array", "items": textShape, "minItems": 1, "uniqueItems": true}}})

// filterableShape is the schema of a rule of filterableAttributes: a name, or patterns and their features.
var filterableShape = Schema{"anyOf": []any{textShape, strict(members{
	"attributePatterns": textsShape,
	"features": strict(members{
		"facetSearch": flagShape,
		"elements":    flagShape,
		"infix":       flagShape,
		"filter":      strict(members{"equality": flagShape, "comparison": flagShape}),
	}),
}, "attributePatterns")}}

var typoToleranceShape = loose(members{
	"enabled":             flagShape,
	"minWordSizeForTypos": loose(members{"oneTypo": byteShape, "twoTypos": byteShape}),
	"disableOnWords":      textsShape,
	"disableOnAttributes": textsShape,
	"disableOnNumbers":    flagShape,
})

var chatShape = loose(members{
	"description":              textShape,
	"documentTemplate":         textShape,
	"documentTemplateMaxBytes": countShape,
	"searchParameters": loose(members{
		"hybrid":                strict(members{"embedder": textShape, "semanticRatio": ratioShape}, "embedder"),
		"limit":                 countShape,
		"sort":                  textsShape,
		"distinct":              textShape,
		"attributesToSearchOn":  textsShape,
		"matchingStrategy":      choiceShape(matchingStrategies...),
		"rankingScoreThreshold": ratioShape,
	}),
})

// embedderShape has the members of all sources; embedderSource says which source takes which.
func embedderShape(nested bool) Schema {
	all := members{
		"source":                   choiceShape(Sources()...),
		"model":                    textShape,
		"revision":                 textShape,
		"apiKey":                   textShape,
		"pooling":                  choiceShape(poolings...),
		"dimensions":               countShape,
		"url":                      textShape,
		"indexingFragments":        anyObject,
		"searchFragments":          anyObject,
		"request":                  {},
		"response":                 {},
		"documentTemplate":         textShape,
		"documentTemplateMaxBytes": countShape,
		"headers":                  mapShape(textShape),
		"binaryQuantized":          flagShape,
		"halfPrecision":            flagShape,
		"distribution":             strict(members{"mean": {"type": "number"}, "sigma": {"type": "number"}}, "mean", "sigma"),
	}
	all["searchEmbedder"], all["indexingEmbedder"] = Schema{"type": "null"}, Schema{"type": "null"}
	if !nested {
		all["searchEmbedder"], all["indexingEmbedder"] = embedderShape(true), embedderShape(true)
	}
	return loose(all)
}
