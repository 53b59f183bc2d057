package fastapi

import (
	"encoding/json"
	"net/url"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/task"
)

var exportParams = []param[task.ExportTo]{
	{name: "url", code: "invalid_export_url", kind: textual, shape: schema{"type": "string", "format": "uri"}, set: func(e *task.ExportTo, a *arg) error {
		u, err := url.Parse(a.text)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return a.expected("the absolute URL of another instance, such as `https://example.com:7700`")
		}
		e.URL = a.text
		return nil
	}},
	{name: "apiKey", code: "invalid_export_api_key", kind: textual, null: true, set: func(e *task.ExportTo, a *arg) error { e.APIKey = a.text; return nil }},
	{name: "payloadSize", code: "invalid_export_payload_size", kind: raw, null: true, shape: schema{"type": []any{"string", "integer"}}, set: setPayloadSize},
	{name: "indexes", code: "bad_request", kind: raw, null: true, shape: mapOf(objectOf(exportIndexParams)), set: setExportIndexes},
}

// setPayloadSize reads a number of bytes, or a text with a unit.
func setPayloadSize(e *task.ExportTo, a *arg) error {
	const want = "a size such as \"24 MiB\", or a number of bytes, from 1"
	if text, ok := a.json.text(); ok {
		n, err := task.ParseSize(text)
		if err != nil || n < 1 {
			return a.expected(want)
		}
		e.PayloadSize = n
		return nil
	}
	n, ok := parseCount(string(a.json))
	if !ok || n < 1 {
		return a.expected(want)
	}
	e.PayloadSize = int64(n)
	return nil
}

var exportIndexParams = []param[task.ExportIndex]{
	{name: "filter", code: "invalid_export_index_filter", kind: raw, null: true, shape: filterShape, set: func(x *task.ExportIndex, a *arg) error {
		x.Filter = json.RawMessage(a.json)
		return nil
	}},
	{name: "overrideSettings", code: "invalid_export_index_override_settings", kind: flag, set: func(x *task.ExportIndex, a *arg) error {
		x.OverrideSettings = a.flag
		return nil
	}},
}

// setExportIndexes reads an object that says, per index pattern, what to export.
func setExportIndexes(e *task.ExportTo, a *arg) error {
	if !a.json.object() {
		return a.expected("an object of index patterns")
	}
	e.Indexes = map[string]task.ExportIndex{}
	for quoted, v := range a.json.members() {
		pattern, ok := value(append(append([]byte{'"'}, quoted...), '"')).text()
		if !ok || auth.CheckPattern(pattern) != nil {
			return apierr.New(a.code, "`%s` in `indexes` must be %s, or a prefix of one followed by `*`.", shorten(quoted), uidForm)
		}
		var x task.ExportIndex
		if err := decode(&x, v, exportIndexParams, object{path: "indexes." + pattern + ".", code: "bad_request"}); err != nil {
			return err
		}
		e.Indexes[pattern] = x
	}
	return nil
}

// export enqueues sending documents and settings to another instance.
func (s *Server) export(ctx *fasthttp.RequestCtx) error {
	var e task.ExportTo
	if err := readObject(s, ctx, &e, exportParams); err != nil {
		return err
	}
	if e.URL == "" {
		return apierr.New("invalid_export_url", "`url` is missing: name the instance to export to.")
	}
	if e.Indexes == nil {
		e.Indexes = map[string]task.ExportIndex{"*": {}}
	}
	return s.enqueue(ctx, task.New{Content: e}, fasthttp.StatusOK)
}
