package aggregate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones of a server that has none
	"unicode/utf8"

	"svc/internal/apierr"
	"svc/internal/jsontext"
	"svc/internal/numeric"
)

// Parse reads the parameter of a request: an object with an aggregation for each name, in valid JSON. Errors are *apierr.Error with the
// code, and name the member by its path, which begins with path.
func Parse(text []byte, path string, code apierr.Code) (*Request, error) {
	p := parser{code: code}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, p.fail(path, "an object", text)
	}
	s, err := p.set(compact.Bytes(), path, 1)
	if err != nil {
		return nil, err
	}
	return &Request{s, compact.Bytes()}, nil
}

type parser struct {
	code  apierr.Code
	total int
}

// fail is the error of a value that cannot be used.
func (p *parser) fail(path, want string, got []byte) error {
	shown := string(got)
	if len(shown) > maxName {
		cut := maxName
		for cut > 0 && !utf8.RuneStart(shown[cut]) {
			cut--
		}
		shown = shown[:cut] + "…"
	}
	return apierr.New(p.code, "`%s` must be %s, but it is %s.", path, want, shown)
}

// set reads an object of aggregations.
func (p *parser) set(object []byte, path string, depth int) (Set, error) {
	if object[0] != '{' {
		return nil, p.fail(path, "an object of aggregations by name", object)
	}
	if depth > MaxDepth {
		return nil, apierr.New(p.code, "`%s` is nested too deeply: aggregations have at most %d levels.", path, MaxDepth)
	}
	s := Set{}
	err := jsontext.EachMember(object, func(key, value []byte) error {
		name := string(jsontext.AppendUnquoted(nil, key))
		at := path + "." + name
		if p.total++; p.total > MaxAggregations {
			return apierr.New(p.code, "There are more than %d aggregations. Send fewer, or several requests.", MaxAggregations)
		}
		if name == "" || len(name) > maxName {
			return apierr.New(p.code, "`%s` has a member with a name of %d bytes, but the name of an aggregation must have 1 to %d.", path, len(name), maxName)
		}
		if slices.ContainsFunc(s, func(a *Spec) bool { return a.Name == name }) {
			return apierr.New(p.code, "`%s` is given twice. Each aggregation needs a name of its own.", at)
		}
		a, err := p.spec(value, at, depth)
		if err != nil {
			return err
		}
		a.Name = name
		s = append(s, a)
		return nil
	})
	return s, err
}

// spec reads one aggregation.
func (p *parser) spec(object []byte, path string, depth int) (*Spec, error) {
	if object[0] != '{' {
		return nil, p.fail(path, "an object", object)
	}
	a := &Spec{limit: defaultTerms, minCount: 1, zone: time.UTC, perUnit: 1, percents: slices.Clone(defaultPercents)}
	given := map[string][]byte{}
	var names []string
	err := jsontext.EachMember(object, func(key, value []byte) error {
		name := string(jsontext.AppendUnquoted(nil, key))
		if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); i >= 0 {
			if a.kind != nil {
				return apierr.New(p.code, "`%s` has both `%s` and `%s`. An aggregation has one kind.", path, a.kind.name, name)
			}
			if value[0] != '"' || len(value) == 2 {
				return p.fail(path+"."+name, "the name of an attribute", value)
			}
			a.kind, a.Attribute = &kinds[i], string(jsontext.AppendUnquoted(nil, value))
			return nil
		}
		if given[name] == nil {
			names = append(names, name)
		}
		given[name] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	if a.kind == nil {
		return nil, apierr.New(p.code, "`%s` has no kind. Give one of %s with the name of an attribute.", path, kindNames())
	}
	for _, name := range names {
		if !slices.Contains(a.kind.options, name) {
			return nil, p.unknown(a.kind, path, name)
		}
		at, value := path+"."+name, given[name]
		if name == nested {
			a.Nested, err = p.set(value, at, depth+1)
		} else {
			err = options[name](p, a, value, at)
		}
		if err != nil {
			return nil, err
		}
	}
	if need := a.kind.needs; need != "" && given[need] == nil {
		return nil, apierr.New(p.code, "`%s.%s` is missing: `%s` needs it.", path, need, a.kind.name)
	}
	return a, nil
}

func kindNames() string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = "`" + kinds[i].name + "`"
	}
	return strings.Join(names, ", ")
}

// unknown is the error of an option that a kind does not take. It suggests the nearest one.
func (p *parser) unknown(k *kind, path, name string) error {
	if len(name) > maxName {
		name = name[:maxName]
	}
	if len(k.options) == 0 {
		return apierr.New(p.code, "`%s.%s` is unknown: `%s` has no options.", path, name, k.name)
	}
	if meant := apierr.Closest(name, k.options); meant != "" {
		return apierr.New(p.code, "`%s.%s` is unknown. Did you mean `%s`?", path, name, meant)
	}
	return apierr.New(p.code, "`%s.%s` is unknown. `%s` takes `%s`.", path, name, k.name, strings.Join(k.options, "`, `"))
}

// options read the options of all kinds.
var options = map[string]func(p *parser, a *Spec, value []byte, path string) error{
	"limit": func(p *parser, a *Spec, value []byte, path string) (err error) {
		a.limit, err = p.whole(value, path, 1, MaxBuckets)
		return err
	},
	"minCount": func(p *parser, a *Spec, value []byte, path string) (err error) {
		least := 1
		if a.kind.name != "terms" {
			least = 0
		}
		a.minCount, err = p.whole(value, path, least, math.MaxInt32)
		return err
	},
	"order": func(p *parser, a *Spec, value []byte, path string) error {
		switch string(value) {
		case `"count:desc"`:
		case `"count:asc"`:
			a.rising = true
		case `"key:asc"`:
			a.byKey, a.rising = true, true
		case `"key:desc"`:
			a.byKey = true
		default:
			return p.fail(path, "`count:desc`, `count:asc`, `key:asc` or `key:desc`", value)
		}
		return nil
	},
	"percents": func(p *parser, a *Spec, value []byte, path string) error {
		const form = "an array of 1 to 100 numbers from 0 to 100"
		if value[0] != '[' {
			return p.fail(path, form, value)
		}
		a.percents = a.percents[:0]
		err := jsontext.EachElement(value, func(e []byte) error {
			x, ok := readNumber(e)
			if !ok || x < 0 || x > 100 || len(a.percents) == maxPercents {
				return p.fail(path, form, value)
			}
			if !slices.Contains(a.percents, x) {
				a.percents = append(a.percents, x)
			}
			return nil
		})
		if err == nil && len(a.percents) == 0 {
			err = p.fail(path, form, value)
		}
		return err
	},
	"interval": func(p *parser, a *Spec, value []byte, path string) error {
		if a.kind.name == "dateHistogram" {
			for i := range calendars {
				if string(value) == strconv.Quote(calendars[i].name) {
					a.calendar = &calendars[i]
					return nil
				}
			}
			return p.fail(path, "one of "+calendarNames(), value)
		}
		x, ok := readNumber(value)
		if !ok || x <= 0 {
			return p.fail(path, "a number above 0", value)
		}
		a.interval = x
		return nil
	},
	"offset": func(p *parser, a *Spec, value []byte, path string) error {
		x, ok := readNumber(value)
		if !ok {
			return p.fail(path, "a number", value)
		}
		a.offset = x
		return nil
	},
	"timeZone": func(p *parser, a *Spec, value []byte, path string) (err error) {
		const form = "the name of a time zone of the tz database, such as `Europe/Paris`"
		if value[0] != '"' || len(value) > maxName {
			return p.fail(path, form, value)
		}
		name := string(jsontext.AppendUnquoted(nil, value))
		if a.zone, err = time.LoadLocation(name); err != nil || name == "" || name == "Local" {
			return p.fail(path, form, value)
		}
		return nil
	},
	"unit": func(p *parser, a *Spec, value []byte, path string) error {
		switch string(value) {
		case `"seconds"`:
			a.perUnit = 1
		case `"milliseconds"`:
			a.perUnit = 1000
		default:
			return p.fail(path, "`seconds` or `milliseconds`", value)
		}
		return nil
	},
	"bands": func(p *parser, a *Spec, value []byte, path string) error {
		if value[0] != '[' || len(value) == 2 {
			return p.fail(path, "an array of bands, each with `from`, `to` or both", value)
		}
		return jsontext.EachElement(value, func(e []byte) error {
			if len(a.bands) == maxBands {
				return apierr.New(p.code, "`%s` has more than %d bands, the maximum.", path, maxBands)
			}
			b, err := p.band(e, fmt.Sprintf("%s[%d]", path, len(a.bands)))
			a.bands = append(a.bands, b)
			return err
		})
	},
}

// band reads {"from": number, "to": number}. One of them may be missing.
func (p *parser) band(object []byte, path string) (b band, err error) {
	if object[0] != '{' {
		return b, p.fail(path, "an object with `from`, `to` or both", object)
	}
	err = jsontext.EachMember(object, func(key, value []byte) error {
		name := string(jsontext.AppendUnquoted(nil, key))
		x, ok := readBound(value)
		switch {
		case name != "from" && name != "to":
			return apierr.New(p.code, "`%s` has a member `%.100s`, but a band has `from` and `to`.", path, name)
		case !ok:
			return p.fail(path+"."+name, "a number", value)
		case name == "from":
			b.from = &x
		default:
			b.to = &x
		}
		return nil
	})
	if err == nil && (b.from == nil && b.to == nil || b.from != nil && b.to != nil && b.from.Compare(*b.to) >= 0) {
		err = p.fail(path, "a band with `from`, `to` or both, `from` below `to`", object)
	}
	return b, err
}

// whole reads a whole number.
func (p *parser) whole(value []byte, path string, least, most int) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < least || n > most {
		return 0, p.fail(path, fmt.Sprintf("a whole number from %d to %d", least, most), value)
	}
	return n, nil
}

// readBound reads a finite number of JSON. Integers of 64 bits are exact.
func readBound(value []byte) (numeric.Value, bool) {
	if _, ok := readNumber(value); !ok {
		return numeric.Value{}, false
	}
	return numeric.Parse(string(value))
}

// readNumber reads a finite number of JSON.
func readNumber(value []byte) (float64, bool) {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(value), 64)
	return x + 0, err == nil
}
