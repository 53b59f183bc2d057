package fastapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/aggregate"
	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/script"
	"svc/internal/scroll"
	"svc/internal/search"
	"svc/internal/task"
)

// addition has the query parameters of an addition of documents.
type addition struct {
	primaryKey   string
	emptyKey     bool  // given, and empty
	delimiter    *byte // of CSV; nil: not given
	metadata     *string
	skipCreation bool
}

var additionParams = []param[addition]{
	{name: "primaryKey", code: "invalid_index_primary_key", kind: textual, set: func(d *addition, a *arg) error {
		d.primaryKey, d.emptyKey = a.text, a.text == ""
		return nil
	}},
	{name: "csvDelimiter", code: "invalid_document_csv_delimiter", kind: textual, shape: schema{"type": "string", "minLength": 1, "maxLength": 1}, set: func(d *addition, a *arg) error {
		if len(a.text) != 1 || a.text[0] >= 0x80 {
			return a.expected("one ASCII character")
		}
		c := a.text[0]
		d.delimiter = &c
		return nil
	}},
	{name: "customMetadata", code: "invalid_index_custom_metadata", kind: textual, set: func(d *addition, a *arg) error { d.metadata = &a.text; return nil }},
	{name: "skipCreation", code: "invalid_skip_creation", kind: textual, shape: schema{"type": "boolean"}, set: func(d *addition, a *arg) error {
		a.text = strings.ToLower(a.text) // unlike other flags, this one may be written TRUE
		if !a.readText(flag) {
			return a.expected(wanted[flag])
		}
		d.skipCreation = a.flag
		return nil
	}},
}

func (s *Server) replaceDocuments(ctx *fasthttp.RequestCtx) error { return s.addDocuments(ctx, false) }
func (s *Server) updateDocuments(ctx *fasthttp.RequestCtx) error  { return s.addDocuments(ctx, true) }

// addDocuments streams the payload through the parser into the queue's file. It reports errors in the payload before a task exists.
func (s *Server) addDocuments(ctx *fasthttp.RequestCtx, merge bool) error {
	var d addition
	if err := decodeQuery(&d, ctx.QueryArgs(), additionParams); err != nil {
		return err
	}
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	format, err := payloadFormat(ctx, d.delimiter != nil)
	if err != nil {
		return err
	}
	delimiter := byte(',')
	if d.delimiter != nil {
		delimiter = *d.delimiter
	}
	payload, err := s.queue.NewPayload()
	if err != nil {
		return err
	}
	defer payload.Discard() // does nothing once a task has it
	n, err := s.receive(ctx, payload, format, delimiter)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{
		IndexUID: uid,
		Content: task.AddDocuments{
			Merge: merge, SkipCreation: d.skipCreation, PrimaryKey: d.primaryKey, EmptyKey: d.emptyKey, Documents: n, MayCreate: mayCreate(ctx, uid),
		},
		Payload:        payload,
		CustomMetadata: d.metadata,
	}, fasthttp.StatusAccepted)
}

// payloadFormat returns the format of documents by the content type.
func payloadFormat(ctx *fasthttp.RequestCtx, delimiter bool) (document.Format, error) {
	const accepted = "`application/json`, `application/x-ndjson` or `text/csv`"
	kind, err := mediaType(ctx, accepted)
	if err != nil {
		return 0, err
	}
	format := document.CSV
	switch kind {
	case "text/csv":
		return document.CSV, nil
	case contentJSON:
		format = document.JSON
	case contentNDJSON:
		format = document.NDJSON
	default:
		return 0, wrongType(ctx, accepted)
	}
	if delimiter {
		return 0, apierr.New("invalid_content_type", "`csvDelimiter` is for `text/csv`, but the `Content-Type` is `%s`.", kind)
	}
	return format, nil
}

// receive writes the documents of the body to the payload and returns their number.
func (s *Server) receive(ctx *fasthttp.RequestCtx, payload *task.Payload, format document.Format, delimiter byte) (int, error) {
	body, err := s.bodyReader(ctx)
	if err != nil {
		return 0, err
	}
	upload := new(work) // no time limit: the client may be slow
	upload.begin(s.searching, requestOf(ctx).bytes(), time.Now(), forEver)
	defer upload.cancel()
	body.turn = (&turn{work: upload, request: requestOf(ctx), slots: s.slots}).charged()
	body.account = body.turn.Account()
	defer body.pause()
	n, err := document.Convert(payload, body, format, delimiter)
	if body.err != nil {
		return 0, body.err // it caused the parser's error
	}
	return n, err
}

// deletion is what the query string says of a deletion.
type deletion struct{ metadata *string }

var deletionParams = []param[deletion]{
	{name: "customMetadata", code: "invalid_index_custom_metadata", kind: textual, set: func(d *deletion, a *arg) error { d.metadata = &a.text; return nil }},
}

// enqueueDeletion enqueues a task that deletes documents of the index in the path.
func (s *Server) enqueueDeletion(ctx *fasthttp.RequestCtx, d deletion, content task.Content) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: uid, Content: content, CustomMetadata: d.metadata}, fasthttp.StatusAccepted)
}

func (s *Server) clearDocuments(ctx *fasthttp.RequestCtx) error {
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	return s.enqueueDeletion(ctx, d, task.ClearDocuments{})
}

func (s *Server) deleteDocument(ctx *fasthttp.RequestCtx) error {
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	return s.enqueueDeletion(ctx, d, task.DeleteDocuments{IDs: []string{pathValue(ctx, "document_id")}})
}

// deleteByIDs enqueues a deletion. Values that cannot be ids count as given, and delete nothing.
func (s *Server) deleteByIDs(ctx *fasthttp.RequestCtx) error {
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	if !body.array() {
		return apierr.New("bad_request", "The body must be an array of document ids, but it is %s.", body.kind())
	}
	ids := []string{}
	for e := range body.elements() {
		id, ok := e.id()
		if !ok {
			id = "" // of no document: counts as given, deletes nothing
		}
		ids = append(ids, id)
	}
	return s.enqueueDeletion(ctx, d, task.DeleteDocuments{IDs: ids})
}

// filterDeletion is the body of a deletion by filter.
type filterDeletion struct {
	filter value
	expr   *filter.Expr
}

var filterDeletionParams = []param[filterDeletion]{
	{name: "filter", code: "invalid_document_filter", kind: raw, shape: filterShape, set: func(d *filterDeletion, a *arg) error {
		var err error
		d.filter = a.json
		d.expr, err = parseFilter(a)
		return err
	}},
}

// parseFilter reads a filter of a body, or of a query string.
func parseFilter(a *arg) (*filter.Expr, error) {
	body := []byte(a.json)
	if body == nil {
		body = appendString(nil, a.text)
	}
	return filter.FromJSON(body, a.code)
}

// checkFilter refuses filters that need a disabled experimental feature. It needs no index.
func (s *Server) checkFilter(e *filter.Expr) error {
	return e.Check(filter.Features{
		Contains: s.features.on("containsFilter"),
		Foreign:  s.features.on("foreignKeys"),
		Vectors:  s.features.on("multimodal"),
		Shards:   s.features.on("network"),
	})
}

// deleteByFilter enqueues a deletion. It refuses an empty filter, which would select all documents.
func (s *Server) deleteByFilter(ctx *fasthttp.RequestCtx) error {
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	var b filterDeletion
	if err := readObject(s, ctx, &b, filterDeletionParams); err != nil {
		return err
	}
	switch {
	case b.filter == nil:
		return apierr.New("missing_document_filter", "`filter` is missing. It selects the documents to delete.")
	case b.expr == nil:
		return apierr.New("invalid_document_filter", "The filter is empty and would select every document. To delete all documents, send DELETE to /indexes/{index_uid}/documents.")
	}
	if err := s.checkFilter(b.expr); err != nil {
		return err
	}
	if err := ownOnly(ctx, b.expr); err != nil {
		return err
	}
	return s.enqueueDeletion(ctx, d, task.DeleteByFilter{Filter: json.RawMessage(b.filter)})
}

// edition is the body of an edition by function.
type edition struct {
	function string
	given    bool
	filter   value
	expr     *filter.Expr
	context  value
}

var editionParams = []param[edition]{
	{name: "function", code: "invalid_document_edition_function_filter", kind: textual, set: func(e *edition, a *arg) error {
		e.function, e.given = a.text, true
		return nil
	}},
	{name: "filter", code: "invalid_document_filter", kind: raw, null: true, shape: filterShape, set: func(e *edition, a *arg) error {
		var err error
		e.filter = a.json
		if e.expr, err = parseFilter(a); err == nil && e.expr == nil {
			err = apierr.New(a.code, "The filter is empty. Leave `filter` out to edit every document.")
		}
		return err
	}},
	{name: "context", code: "invalid_document_edition_context", kind: raw, null: true, shape: schema{"type": "object"}, set: func(e *edition, a *arg) error {
		if !a.json.object() {
			return a.expected("an object")
		}
		e.context = a.json
		return nil
	}},
}

func (s *Server) editDocuments(ctx *fasthttp.RequestCtx) error {
	var d deletion
	if err := decodeQuery(&d, ctx.QueryArgs(), deletionParams); err != nil {
		return err
	}
	var e edition
	if err := readObject(s, ctx, &e, editionParams); err != nil {
		return err
	}
	if !e.given {
		return apierr.New("missing_document_edition_function", "`function` is missing. It changes each document.")
	}
	if err := s.features.need("editDocumentsByFunction", "editing documents by function"); err != nil {
		return err
	}
	if err := s.checkFilter(e.expr); err != nil {
		return err
	}
	if err := ownOnly(ctx, e.expr); err != nil {
		return err
	}
	if err := script.Check(e.function); err != nil {
		return err
	}
	return s.enqueueDeletion(ctx, d, task.EditDocuments{
		Filter: json.RawMessage(e.filter), Context: json.RawMessage(e.context), Function: e.function,
	})
}

// fetchInput is what a request for documents asks.
type fetchInput struct {
	search.FetchRequest
	network *bool // useNetwork; nil: not given
}

var fetchPaging = []param[search.FetchRequest]{
	{name: "offset", code: "invalid_document_offset", kind: count, set: func(r *search.FetchRequest, a *arg) error { r.Offset = a.count; return nil }},
	{name: "limit", code: "invalid_document_limit", kind: count, set: func(r *search.FetchRequest, a *arg) error { r.Limit = a.count; return nil }},
}

// fetchShaping are the parameters of a list that affect the documents of every page.
var fetchShaping = []param[search.FetchRequest]{
	{name: "fields", code: "invalid_document_fields", kind: list, null: true, set: func(r *search.FetchRequest, a *arg) error { r.Fields = a.list; return nil }},
	{name: "retrieveVectors", code: "invalid_document_retrieve_vectors", kind: flag, set: func(r *search.FetchRequest, a *arg) error { r.RetrieveVectors = a.flag; return nil }},
	{name: "ids", code: "invalid_document_ids", kind: raw, null: true, shape: idsShape, set: setIDs},
	{name: "filter", code: "invalid_document_filter", kind: raw, null: true, shape: filterShape, set: func(r *search.FetchRequest, a *arg) error {
		var err error
		r.Filter, err = parseFilter(a)
		return err
	}},
	{name: "sort", code: "invalid_document_sort", kind: raw, null: true, shape: sortShape, set: func(r *search.FetchRequest, a *arg) error {
		var err error
		r.Sort, err = parseSort(a)
		return err
	}},
}

// fetchTurning is the parameter that continues an earlier list.
var fetchTurning = []param[search.FetchRequest]{
	{name: "cursor", code: "invalid_document_cursor", kind: textual, null: true, most: scroll.MaxCursorBytes, shape: cursorShape, set: func(r *search.FetchRequest, a *arg) error {
		r.Cursor = &search.Cursor{Text: a.text}
		return nil
	}},
}

// fetchAggregating is the parameter of a list that exists only in bodies.
var fetchAggregating = []param[search.FetchRequest]{
	{name: "aggregations", code: "invalid_document_aggregations", kind: raw, null: true, shape: aggregationsShape, set: func(r *search.FetchRequest, a *arg) (err error) {
		r.Aggregations, err = aggregate.Parse(a.json, a.path(), a.code)
		return err
	}},
}

var fetchNetwork = []param[fetchInput]{
	{name: "useNetwork", code: "invalid_document_use_network", kind: flag, null: true, set: func(f *fetchInput, a *arg) error {
		use := a.flag
		f.network = &use
		return nil
	}},
}

func toFetch(f *fetchInput) *search.FetchRequest { return &f.FetchRequest }

var (
	fetchParams     = join(lift(fetchPaging, toFetch), lift(fetchShaping, toFetch), lift(fetchTurning, toFetch), fetchNetwork)
	fetchBodyParams = join(fetchParams, lift(fetchAggregating, toFetch))
)

// setIDs reads ids of documents: strings and whole numbers.
func setIDs(r *search.FetchRequest, a *arg) error {
	const form = "an array of document ids (whole numbers of 64 bits, or strings of letters from a to z in either case, digits, - and _)"
	r.IDs = []string{}
	valid := true
	if a.json == nil {
		r.IDs = splitList(a.text)
		valid = !slices.ContainsFunc(r.IDs, func(id string) bool { return !document.ValidID([]byte(id)) })
	} else {
		if !a.json.array() {
			return a.expected(form)
		}
		for e := range a.json.elements() {
			id, ok := e.id()
			r.IDs, valid = append(r.IDs, id), valid && ok
		}
	}
	if err := a.entries(len(r.IDs), maxIDs); err != nil {
		return err
	}
	if !valid {
		return a.expected(form)
	}
	return nil
}

// maxIDs is how many documents may be asked for by their ids.
const maxIDs = 100000

// parseSort reads a sort order: an array of strings, or a list in a query string, in which commas inside parentheses do not separate.
func parseSort(a *arg) ([]string, error) {
	if a.json != nil {
		if !a.readJSON(list) {
			return nil, a.expected(wanted[list])
		}
		return a.list, a.entries(len(a.list), maxSortRules)
	}
	var rules []string
	start, depth := 0, 0
	for i, c := range a.text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			rules = append(rules, strings.TrimSpace(a.text[start:i]))
			start = i + 1
		}
	}
	rules = append(rules, strings.TrimSpace(a.text[start:]))
	return rules, a.entries(len(rules), maxSortRules)
}

// maxSortRules is the maximum number of fields and points to sort documents by.
const maxSortRules = 100

func newFetch() fetchInput { return fetchInput{FetchRequest: search.FetchRequest{Limit: defaultLimit}} }

func (s *Server) getDocuments(ctx *fasthttp.RequestCtx) error {
	f := newFetch()
	if err := decodeQuery(&f, ctx.QueryArgs(), fetchParams); err != nil {
		return err
	}
	return s.fetch(ctx, &f)
}

func (s *Server) fetchDocuments(ctx *fasthttp.RequestCtx) error {
	f := newFetch()
	if err := readObject(s, ctx, &f, fetchBodyParams); err != nil {
		return err
	}
	return s.fetch(ctx, &f)
}

// fetch serves both routes that list documents, with a turn, because a page may read much.
func (s *Server) fetch(ctx *fasthttp.RequestCtx, f *fetchInput) error {
	r := &f.FetchRequest
	if err := cmp.Or(s.checkFilter(r.Filter), r.CheckCursor()); err != nil {
		return err
	}
	if r.Cursor != nil {
		r.Cursor.Places, r.Cursor.Filter = s.places, r.Filter
	}
	spread, err := s.readsNetwork(f.network)
	if err != nil {
		return err
	}
	limited, _, err := s.turn(ctx, r.Limit)
	if err != nil {
		return err
	}
	defer limited.end()
	v, err := s.plainView(ctx)
	if err != nil {
		return err
	}
	defer v.Release()
	r.Contains = s.features.on("containsFilter")
	r.Foreign = s.foreign(ctx)
	defer r.Foreign.Release()
	if spread {
		return answerWith(ctx, func(dst []byte) ([]byte, error) { return s.fetchNetwork(limited, dst, v, r) })
	}
	return answerWith(ctx, func(dst []byte) ([]byte, error) { return search.Fetch(limited, dst, v, r) })
}

// oneParams are the parameters of the route of one document.
var oneParams = join(lift(fetchShaping[:2], toFetch), fetchNetwork)

// getDocument answers from this instance, or from the one that owns the document in a network. One document
// needs no slot.
func (s *Server) getDocument(ctx *fasthttp.RequestCtx) error {
	var f fetchInput
	if err := decodeQuery(&f, ctx.QueryArgs(), oneParams); err != nil {
		return err
	}
	spread, err := s.readsNetwork(f.network)
	if err != nil {
		return err
	}
	v, err := s.plainView(ctx)
	if err != nil {
		return err
	}
	defer v.Release()
	id := []byte(pathValue(ctx, "document_id"))
	if spread {
		done, err := s.getFromNetwork(ctx, v, id, &f.FetchRequest)
		if done || err != nil {
			return err
		}
	}
	seg, row, ok := v.Find(id)
	if !ok {
		return noDocument(id)
	}
	return answerWith(ctx, func(dst []byte) ([]byte, error) {
		return search.AppendDocument(requestOf(ctx).bytes(), dst, v, seg, row, f.Fields, f.RetrieveVectors)
	})
}

func noDocument(id []byte) error {
	return apierr.New("document_not_found", "There is no document `%s`.", shorten(id))
}
