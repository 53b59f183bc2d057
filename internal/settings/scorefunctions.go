package settings

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"svc/internal/numeric"
)

// ScoreFunctions are what the ranking rule score adds up for each document. Immutable once it is shared.
type ScoreFunctions struct {
	Levels    int // into how many the sum is cut, from 2
	Functions []ScoreFunction
	text      []byte
}

// ScoreFunction gives each document a share from 0 to 1, which counts Weight times.
type ScoreFunction struct {
	Name      string
	Attribute string // of FilterScore ""
	Kind      ScoreKind
	Weight    float64

	Curve  DecayCurve // of Decay
	Origin ScoreOrigin
	Offset float64 // up to this distance the share is 1
	Decay  float64 // the share at Offset + Scale

	// Scale is a value from which the share is 1, or half of it for ReciprocalScore. For DecayScore it is a distance: in seconds for dates,
	// in metres for points.
	Scale   float64
	Missing *float64 // the number of documents without one; nil: their share is 0

	Filter json.RawMessage // of FilterScore, in the form of a request: a string or an array
}

// ScoreKind is how a function finds the share.
type ScoreKind uint8

const (
	DecayScore ScoreKind = iota
	LogScore
	SqrtScore
	LinearScore
	ReciprocalScore
	FilterScore
)

var scoreKinds = []string{"decay", "log", "sqrt", "linear", "reciprocal", "filter"}

// DecayCurve is how the share falls with the distance from an origin.
type DecayCurve uint8

const (
	ExpDecay DecayCurve = iota
	GaussDecay
	LinearDecay
)

var decayCurves = []string{"exp", "gauss", "linear"}

// ScoreOrigin is where decay begins: a number, a date or a point.
type ScoreOrigin struct {
	Now, Date, Point bool
	Number           float64 // or seconds since 1970 of a date
	Lat, Lng         float64 // of a point, in degrees
	PerSecond        float64 // the unit of numbers that are dates
	text             string  // of a date, as it was given
}

// Limits of score functions and their members.
const (
	MaxScoreFunctions = 32
	DefaultLevels     = 20
	MaxLevels         = 1000
	maxScoreName      = 100
	maxWeight         = 1e6
	maxScale          = 1e15
)

func readScores(v value) (*ScoreFunctions, error) {
	s := &ScoreFunctions{Levels: DefaultLevels}
	if err := s.read(v); err != nil {
		return nil, err
	}
	s.text = encode(showScores(s))
	return s, nil
}

func (s *ScoreFunctions) read(v value) error {
	if v.raw[0] == '[' {
		return s.readList(v)
	}
	if v.raw[0] != '{' {
		return v.wrong("an array of functions, or an object with functions")
	}
	given := false
	err := v.fields(map[string]func(value) error{
		"levels": func(v value) error {
			n, err := v.whole(MaxLevels)
			if err != nil || n < 2 {
				return v.wrong("a whole number from 2 to 1000")
			}
			s.Levels = int(n)
			return nil
		},
		"functions": func(v value) error {
			given = true
			return s.readList(v)
		},
	})
	if err == nil && !given {
		err = v.fail("has no `functions`: give the functions to add up.")
	}
	return err
}

func (s *ScoreFunctions) readList(v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	if len(items) > MaxScoreFunctions {
		return v.fail("has %d functions, but may have at most %d.", len(items), MaxScoreFunctions)
	}
	s.Functions = make([]ScoreFunction, len(items))
	for i, item := range items {
		f := &s.Functions[i]
		if err := f.read(item); err != nil {
			return err
		}
		if slices.ContainsFunc(s.Functions[:i], func(o ScoreFunction) bool { return o.Name == f.Name }) {
			return item.fail("has the name %q, which a previous function has. Each function needs its own name.", f.Name)
		}
	}
	return nil
}

// scoreMembers are the members of each kind besides name, function and weight. A required member ends in an exclamation mark.
var scoreMembers = [...]string{
	DecayScore:      "attribute! origin! scale! curve offset decay unit",
	LogScore:        "attribute! scale! missing",
	SqrtScore:       "attribute! scale! missing",
	LinearScore:     "attribute! scale! missing",
	ReciprocalScore: "attribute! scale! missing",
	FilterScore:     "filter!",
}

// read reads a function: first its kind, which says what other members it has and needs.
func (f *ScoreFunction) read(v value) error {
	*f = ScoreFunction{Weight: 1, Decay: 0.5, Origin: ScoreOrigin{PerSecond: 1}}
	members, err := v.members()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(members, func(m member) bool { return m.key == "function" })
	if at < 0 {
		return v.fail("has no `function`: give one of %s.", strings.Join(scoreKinds, ", "))
	}
	kind, err := members[at].choice(scoreKinds...)
	if err != nil {
		return err
	}
	f.Kind = ScoreKind(kind)
	known := []string{"name", "function", "weight"}
	needed := []string{"name"}
	for _, name := range strings.Fields(scoreMembers[f.Kind]) {
		name, must := strings.CutSuffix(name, "!")
		if known = append(known, name); must {
			needed = append(needed, name)
		}
	}
	for _, m := range members {
		if !slices.Contains(known, m.key) {
			return v.unknown(m.key, known)
		}
		if err := scoreReaders[m.key](f, m.value); err != nil {
			return err
		}
		needed = slices.DeleteFunc(needed, func(name string) bool { return name == m.key })
	}
	if len(needed) > 0 {
		return v.fail("has no `%s`, which the function %s needs.", needed[0], scoreKinds[f.Kind])
	}
	return f.check(v)
}

// check refuses members that do not go together.
func (f *ScoreFunction) check(v value) error {
	switch o := &f.Origin; {
	case f.Kind != DecayScore:
		if within(f.Attribute, GeoField) || within(f.Attribute, GeoJSONField) || within(f.Attribute, VectorsField) {
			return v.fail("has the attribute `%s`, which has no numbers.", f.Attribute)
		}
	case o.Point != (f.Attribute == GeoField):
		return v.fail("needs an origin with lat and lng for the attribute `_geo`, and for no other.")
	case o.PerSecond != 1 && !o.Date:
		return v.fail("has a `unit`, but its origin is not a date.")
	case within(f.Attribute, GeoJSONField) || within(f.Attribute, VectorsField):
		return v.fail("has the attribute `%s`, which has no numbers.", f.Attribute)
	}
	return nil
}

var scoreReaders = map[string]func(f *ScoreFunction, v value) error{
	"function": func(*ScoreFunction, value) error { return nil },
	"name": func(f *ScoreFunction, v value) (err error) {
		if f.Name, err = v.text(); err == nil && (f.Name == "" || len(f.Name) > maxScoreName) {
			err = v.fail("must have from 1 to %d bytes.", maxScoreName)
		}
		return err
	},
	"attribute": func(f *ScoreFunction, v value) (err error) {
		if f.Attribute, err = v.text(); err == nil && f.Attribute == "" {
			err = v.fail("is empty: name the attribute.")
		}
		return err
	},
	"weight": func(f *ScoreFunction, v value) (err error) {
		f.Weight, err = v.between(-maxWeight, maxWeight)
		return err
	},
	"curve": func(f *ScoreFunction, v value) error {
		n, err := v.choice(decayCurves...)
		f.Curve = DecayCurve(n)
		return err
	},
	"origin": func(f *ScoreFunction, v value) error { return f.Origin.read(v) },
	"scale": func(f *ScoreFunction, v value) (err error) {
		if f.Scale, err = v.between(0, maxScale); err == nil && f.Scale < 1/maxScale {
			err = v.wrong("a number above 0")
		}
		return err
	},
	"offset": func(f *ScoreFunction, v value) (err error) {
		f.Offset, err = v.between(0, maxScale)
		return err
	},
	"decay": func(f *ScoreFunction, v value) (err error) {
		f.Decay, err = v.between(0.001, 0.999)
		return err
	},
	"unit": func(f *ScoreFunction, v value) error {
		n, err := v.choice("seconds", "milliseconds")
		f.Origin.PerSecond = math.Pow(1000, float64(n))
		return err
	},
	"missing": func(f *ScoreFunction, v value) error {
		x, err := v.number()
		f.Missing = &x
		return err
	},
	"filter": func(f *ScoreFunction, v value) error {
		if v.raw[0] != '"' && v.raw[0] != '[' {
			return v.wrong("a filter: a string or an array")
		}
		f.Filter = slices.Clone(v.raw)
		return nil
	},
}

// between reads a number.
func (v value) between(least, most float64) (float64, error) {
	x, err := v.number()
	if err == nil && !(x >= least && x <= most) {
		err = v.wrong("a number from " + formatBound(least) + " to " + formatBound(most))
	}
	return x, err
}

func formatBound(x float64) string { return string(encode(x)) }

// read reads an origin: now, a date, a number or a point.
func (o *ScoreOrigin) read(v value) (err error) {
	unit := o.PerSecond
	*o = ScoreOrigin{PerSecond: unit}
	switch v.raw[0] {
	case '"':
		text, err := v.text()
		if err != nil {
			return err
		}
		o.Date, o.text = true, text
		if text == "now" {
			o.Now = true
			return nil
		}
		second, ok := numeric.ParseDate([]byte(text), time.UTC)
		if o.Number = float64(second); !ok {
			return v.wrong("`now`, a date in RFC 3339, a number, or an object with lat and lng")
		}
		return nil
	case '{':
		var lat, lng bool
		o.Point = true
		err = v.fields(map[string]func(value) error{
			"lat": func(v value) (err error) {
				lat = true
				o.Lat, err = v.between(-90, 90)
				return err
			},
			"lng": func(v value) (err error) {
				lng = true
				o.Lng, err = v.between(-180, 180)
				return err
			},
		})
		if err == nil && !(lat && lng) {
			err = v.fail("needs both lat and lng.")
		}
		return err
	}
	o.Number, err = v.number()
	return err
}

// JSON returns the functions in the form that ParseScoreFunctions reads, without default values. The caller must not modify it.
func (s *ScoreFunctions) JSON() []byte { return s.text }

func showScores(s *ScoreFunctions) any {
	if s == nil {
		return nil
	}
	list := make([]object, len(s.Functions))
	for i := range s.Functions {
		list[i] = s.Functions[i].show()
	}
	if s.Levels == DefaultLevels {
		return list
	}
	return object{{"levels", s.Levels}, {"functions", list}}
}

// show returns the function with the members that differ from their defaults.
func (f *ScoreFunction) show() object {
	o := object{{"name", f.Name}}
	add := func(shown bool, key string, value any) {
		if shown {
			o = append(o, pair{key, value})
		}
	}
	add(f.Attribute != "", "attribute", f.Attribute)
	add(true, "function", scoreKinds[f.Kind])
	if f.Kind == DecayScore {
		add(true, "curve", decayCurves[f.Curve])
		switch r := &f.Origin; {
		case r.Point:
			add(true, "origin", object{{"lat", r.Lat}, {"lng", r.Lng}})
		case r.Date:
			add(true, "origin", r.text)
		default:
			add(true, "origin", r.Number)
		}
		add(f.Origin.PerSecond != 1, "unit", "milliseconds")
	}
	add(f.Kind != FilterScore, "scale", f.Scale)
	add(f.Offset != 0, "offset", f.Offset)
	add(f.Decay != 0.5, "decay", f.Decay)
	add(f.Missing != nil, "missing", f.Missing)
	add(f.Kind == FilterScore, "filter", f.Filter)
	add(f.Weight != 1, "weight", f.Weight)
	return o
}

// ScoreFunctions returns the functions that the update sets; nil: none.
func (u *Update) ScoreFunctions() *ScoreFunctions {
	raw := u.values[byKey["scoreFunctions"]]
	if raw == nil {
		return nil
	}
	s, err := readScores(value{raw: raw})
	if err != nil { // a null
		return nil
	}
	return s
}

var scoreShape = scoreShapeOf(strict)

// ScoreShape is the schema of what ParseScoreFunctions reads. It does not say that other members are refused.
func ScoreShape() Schema {
	return scoreShapeOf(func(all members, needed ...any) Schema {
		s := strict(all, needed...)
		delete(s, "additionalProperties")
		return s
	})
}

func scoreShapeOf(object func(all members, needed ...any) Schema) Schema {
	list := listShape(object(members{
		"name":      {"type": "string", "minLength": 1, "maxLength": maxScoreName},
		"function":  choiceShape(scoreKinds...),
		"attribute": {"type": "string", "minLength": 1},
		"curve":     choiceShape(decayCurves...),
		"origin": {"anyOf": []any{textShape, Schema{"type": "number"}, object(members{
			"lat": {"type": "number", "minimum": -90, "maximum": 90},
			"lng": {"type": "number", "minimum": -180, "maximum": 180},
		}, "lat", "lng")}},
		"unit":    choiceShape("seconds", "milliseconds"),
		"scale":   {"type": "number", "exclusiveMinimum": 0, "maximum": maxScale},
		"offset":  {"type": "number", "minimum": 0, "maximum": maxScale},
		"decay":   {"type": "number", "minimum": 0.001, "maximum": 0.999},
		"missing": {"type": "number"},
		"filter":  {"anyOf": []any{textShape, Schema{"type": "array"}}},
		"weight":  {"type": "number", "minimum": -maxWeight, "maximum": maxWeight},
	}, "name", "function"))
	return Schema{"anyOf": []any{list, object(members{"levels": {"type": "integer", "minimum": 2, "maximum": MaxLevels}, "functions": list}, "functions")}}
}
