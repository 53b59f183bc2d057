package fastapi

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"svc/internal/geo"
)

// walkScoring has score functions as sent.
type walkScoring struct {
	Levels    int            `json:"levels"`
	Functions []walkFunction `json:"functions"`
}

type walkFunction struct {
	Name      string   `json:"name"`
	Function  string   `json:"function"`
	Attribute string   `json:"attribute,omitempty"`
	Weight    float64  `json:"weight"`
	Scale     float64  `json:"scale,omitempty"`
	Missing   *float64 `json:"missing,omitempty"`
	Curve     string   `json:"curve,omitempty"`
	Origin    any      `json:"origin,omitempty"`
	Filter    string   `json:"filter,omitempty"`
}

// scoring makes score functions. open says which attributes they may use.
func (r walkRandom) scoring(open func(string) bool) *walkScoring {
	s := &walkScoring{Levels: pick(r, 20, 5, 2, 100), Functions: []walkFunction{}}
	for i := range r.IntN(4) {
		f := walkFunction{Name: fmt.Sprint("f", i), Function: pick(r, "log", "sqrt", "linear", "reciprocal", "decay", "decay", "filter"), Weight: pick(r, 1.0, 0.5, 2, -1, 0)}
		f.Attribute = pick(r, "n", "o.k")
		switch f.Function {
		case "filter":
			f.Attribute, f.Filter = "", "b = true"
			if !open("b") {
				continue
			}
		case "decay":
			f.Curve, f.Origin, f.Scale = pick(r, "exp", "gauss", "linear"), r.IntN(10), pick(r, 1.0, 7, 1e10)
			if r.chance(40) {
				f.Attribute, f.Origin, f.Scale = "_geo", map[string]any{"lat": float64(r.IntN(50)), "lng": float64(r.IntN(50))}, pick(r, 1e5, 1e6, 1e7)
			}
		default:
			if f.Scale = pick(r, 1.0, 10, 1e6); r.chance(50) {
				missing := pick(r, 0.0, 2, -1)
				f.Missing = &missing
			}
		}
		if f.Attribute == "" || open(f.Attribute) {
			s.Functions = append(s.Functions, f)
		}
	}
	return s
}

// level returns the score level of a document.
func (s *walkScoring) level(m *walkModel, d *walkDoc) int {
	sum, low, high := 0.0, 0.0, 0.0
	for _, f := range s.Functions {
		sum, low, high = sum+float64(f.Weight*f.share(m, d)), low+min(f.Weight, 0), high+max(f.Weight, 0)
	}
	if low == high {
		return 0
	}
	return min(int(float64((sum-low)*float64(s.Levels))/(high-low)), s.Levels-1)
}

func (f *walkFunction) share(m *walkModel, d *walkDoc) float64 {
	if f.Function == "filter" {
		if m.set.filters("b") && slices.Contains(d.at("b").keys, "true") {
			return 1
		}
		return 0
	}
	if f.Attribute == "_geo" {
		lat, lng, ok := d.point()
		if !ok {
			return 0
		}
		at := f.Origin.(map[string]any)
		return f.decay(geo.Distance(at["lat"].(float64), at["lng"].(float64), lat, lng))
	}
	best := -1.0
	for _, x := range d.at(f.Attribute).numbers {
		n, _ := x.Float64()
		best = max(best, f.of(n))
	}
	switch {
	case best >= 0:
		return best
	case f.Missing != nil:
		return f.of(*f.Missing)
	}
	return 0
}

func (f *walkFunction) of(x float64) float64 {
	switch f.Function {
	case "decay":
		return f.decay(math.Abs(x - f.Origin.(float64)))
	case "log":
		return min(math.Log1p(max(x, 0))/math.Log1p(f.Scale), 1)
	case "sqrt":
		return min(math.Sqrt(max(x, 0)/f.Scale), 1)
	case "linear":
		return min(max(x, 0)/f.Scale, 1)
	}
	return f.Scale / (f.Scale + max(x, 0))
}

func (f *walkFunction) decay(distance float64) float64 {
	d := distance / f.Scale
	switch f.Curve {
	case "exp":
		return math.Exp(math.Log(0.5) * d)
	case "gauss":
		return math.Exp(math.Log(0.5) * float64(d*d))
	}
	return max(1-float64(0.5*d), 0)
}

// sent returns the functions as the model reads them, with JSON numbers.
func (s *walkScoring) sent() *walkScoring {
	var again walkScoring
	if err := json.Unmarshal([]byte(encode(s)), &again); err != nil {
		panic(err)
	}
	return &again
}
