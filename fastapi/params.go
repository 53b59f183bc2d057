package fastapi

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/numeric"
)

// kind says what a parameter holds.
type kind uint8

const (
	textual kind = iota // a string
	count               // a whole number ≥ 0
	flag                // true or false
	list                // strings: an array in a body, separated by commas in a query string
	number              // any finite number
	raw                 // any: the setter validates it
)

// param is one parameter of a request, in a body or a query string: its name, the kind of its value, the error code for other values,
// whether null means absence, and where the value goes. Tables of params are the only description of what a route accepts.
type param[T any] struct {
	name string
	code apierr.Code
	kind kind
	null bool
	set  func(dst *T, a *arg) error
	most int // bytes of a text, or entries of a list; 0 stands for defaultMost, unlimited for any number

	shape schema // of the value, for the API document; nil: that of the kind
}

// Limits beyond the needs of any real client. The size of a body limits the rest.
const (
	maxTextBytes   = 64 << 10
	maxListEntries = 1000
	maxTagBytes    = 1 << 10 // of tags and markers, which an answer repeats
	unlimited      = -1
)

// defaultMost are the limits of parameters without one of their own.
var defaultMost = [...]int{textual: maxTextBytes, list: maxListEntries, raw: unlimited}

// arg is the value of a given parameter. Which field has it depends on the kind.
type arg struct {
	text   string // also of raw in a query string
	count  int
	flag   bool
	list   []string
	number float64
	json   value // the value as sent, in a body; nil in a query string

	in   string // the path of the object that has the parameter, with a dot after it; "" for the body itself
	name string
	code apierr.Code
}

// path is where the parameter stands, for messages.
func (a *arg) path() string { return a.in + a.name }

// expected returns the error of an invalid value. what completes "must be …".
func (a *arg) expected(what string) error {
	got := strconv.Quote(shorten([]byte(a.text)))
	if a.json != nil {
		got = shorten(a.json)
		switch a.json[0] {
		case '"', '[', '{':
			got = a.json.kind() + ": " + got
		}
	}
	return apierr.New(a.code, "`%s` must be %s, but it is %s.", a.path(), what, got)
}

const shownBytes = 80

// shorten cuts what a client sent to a length that fits a message.
func shorten(b []byte) string { return shortenTo(b, shownBytes) }

// shortenTo cuts what a client sent to at most most bytes. most is larger than utf8.UTFMax.
func shortenTo(b []byte, most int) string {
	if len(b) <= most {
		return string(b)
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(b[end]) { // paths and parameters may be any bytes
		end--
	}
	return string(b[:end]) + "…"
}

var wanted = [...]string{
	textual: "a string",
	count:   "a whole number from 0",
	flag:    "`true` or `false`",
	list:    "an array of strings",
	number:  "a number",
	raw:     "text in UTF-8", // in a query string; bodies are always UTF-8
}

// fits refuses values that are longer than any realistic one.
func (a *arg) fits(k kind, most int) error {
	if k != textual && k != list {
		return nil
	}
	if most == 0 {
		most = defaultMost[k]
	}
	switch {
	case most == unlimited:
	case k == textual && len(a.text) > most:
		return apierr.New(a.code, "`%s` has %d bytes, but may have at most %d.", a.path(), len(a.text), most)
	case k == list:
		return a.entries(len(a.list), most)
	}
	return nil
}

// entries refuses a list of n entries if that is more than most.
func (a *arg) entries(n, most int) error {
	if n > most {
		return apierr.New(a.code, "`%s` has %d entries, but may have at most %d.", a.path(), n, most)
	}
	return nil
}

// object says how an object of parameters is read.
type object struct {
	path    string      // of the object in the body, with a dot after it; "" for the body itself
	code    apierr.Code // of an unknown member; "": ignore them
	notCode apierr.Code // for a body that is no object; "" means bad_request
}

// decode reads the members of an object into dst.
func decode[T any](dst *T, v value, params []param[T], o object) error {
	if !v.object() {
		code := o.notCode
		if code == "" {
			code = "bad_request"
		}
		name := "The body"
		if o.path != "" {
			name = "`" + strings.TrimSuffix(o.path, ".") + "`"
		}
		return apierr.New(code, "%s must be a JSON object, but it is %s: %s.", name, v.kind(), shorten(v))
	}
	var a arg
	for name, member := range v.members() {
		p := find(params, name)
		if p == nil {
			if o.code == "" {
				continue
			}
			return unknown(o.code, o.path, string(name), params)
		}
		a = arg{json: member, in: o.path, name: p.name, code: p.code}
		if p.null && member.null() {
			continue
		}
		if !a.readJSON(p.kind) {
			return a.expected(wanted[p.kind])
		}
		if err := a.fits(p.kind, p.most); err != nil {
			return err
		}
		if err := p.set(dst, &a); err != nil {
			return err
		}
	}
	return nil
}

// lift makes of the params of a part those of the whole.
func lift[T, U any](params []param[U], part func(*T) *U) []param[T] {
	lifted := make([]param[T], len(params))
	for i, p := range params {
		lifted[i] = param[T]{p.name, p.code, p.kind, p.null, func(dst *T, a *arg) error { return p.set(part(dst), a) }, p.most, p.shape}
	}
	return lifted
}

// find looks up a member's name. Names with escapes are compared unescaped.
func find[T any](params []param[T], name []byte) *param[T] {
	for i := range params {
		if params[i].name == string(name) {
			return &params[i]
		}
	}
	if strings.IndexByte(string(name), '\\') < 0 {
		return nil
	}
	quoted := append(append([]byte{'"'}, name...), '"')
	plain, ok := value(quoted).text()
	if !ok || strings.IndexByte(plain, '\\') >= 0 {
		return nil
	}
	return find(params, []byte(plain))
}

// readJSON decodes a.json according to k, and reports whether it could.
func (a *arg) readJSON(k kind) (ok bool) {
	v := a.json
	switch k {
	case textual:
		a.text, ok = v.text()
	case count:
		a.count, ok = parseCount(string(v))
	case flag:
		a.flag, ok = v[0] == 't', v[0] == 't' || v[0] == 'f'
	case number:
		var err error
		a.number, err = strconv.ParseFloat(string(v), 64)
		ok = err == nil && v[0] != '"'
	case list:
		if !v.array() {
			return false
		}
		a.list = []string{}
		for e := range v.elements() {
			s, ok := e.text()
			if !ok {
				return false
			}
			a.list = append(a.list, s)
		}
		ok = true
	case raw:
		ok = true
	}
	return ok
}

// parseCount reads a whole number. Values beyond the range of int become the largest int.
func parseCount(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, false
	}
	return int(min(n, math.MaxInt)), true
}

// decodeQuery reads the parameters of a query string into dst. The last of a repeated one wins.
func decodeQuery[T any](dst *T, query *fasthttp.Args, params []param[T]) error {
	if query.Len() == 0 {
		return nil
	}
	type given struct {
		p     *param[T]
		value []byte
	}
	var last []given
next:
	for name, v := range query.All() {
		if len(name) == 0 && len(v) == 0 {
			continue
		}
		p := find(params, name)
		if p == nil {
			return unknown("bad_request", "", string(name), params)
		}
		for i := range last {
			if last[i].p == p {
				last[i].value = v
				continue next
			}
		}
		last = append(last, given{p, v})
	}
	for _, g := range last {
		a := arg{text: string(g.value), name: g.p.name, code: g.p.code}
		if !a.readText(g.p.kind) {
			return a.expected(wanted[g.p.kind])
		}
		if err := a.fits(g.p.kind, g.p.most); err != nil {
			return err
		}
		if err := g.p.set(dst, &a); err != nil {
			return err
		}
	}
	return nil
}

// readText decodes a.text according to k, and reports whether it could.
func (a *arg) readText(k kind) (ok bool) {
	switch k {
	case count:
		a.count, ok = parseCount(a.text)
	case flag:
		a.flag, ok = a.text == "true", a.text == "true" || a.text == "false"
	case number:
		a.number, ok = numeric.ParseFloat(a.text)
	case list:
		a.list, ok = splitList(a.text), true
	default:
		ok = utf8.ValidString(a.text)
	}
	return ok
}

// splitList cuts a list at its commas. An empty text is an empty list, and empty pieces are left out.
func splitList(s string) []string {
	pieces := []string{}
	for piece := range strings.SplitSeq(s, ",") {
		if piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// unknown returns the error of a name that no param has, with a suggestion for a likely typo.
func unknown[T any](code apierr.Code, path, name string, params []param[T]) error {
	names := make([]string, len(params))
	for i := range params {
		names[i] = params[i].name
	}
	meant := apierr.Closest(name, names)
	shown := shorten([]byte(name))
	switch {
	case meant != "":
		return apierr.New(code, "`%s%s` is unknown. Did you mean `%s%s`?", path, shown, path, meant)
	case len(params) == 0:
		return apierr.New(code, "`%s%s` is unknown: this route has no parameters.", path, shown)
	}
	return apierr.New(code, "`%s%s` is unknown. Use one of `%s`.", path, shown, strings.Join(names, "`, `"))
}
