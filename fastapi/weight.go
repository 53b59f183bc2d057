package fastapi

import (
	"reflect"
	"time"
)

// jsonBytes returns an estimate of the size of v as JSON, without encoding it. It is rather too high than too low.
func jsonBytes(v any) int {
	if own, ok := v.(interface{ JSONBytes() int }); ok {
		return own.JSONBytes()
	}
	return weigh(reflect.ValueOf(v), deepest)
}

// What else there is of a value, its name included.
const (
	scalarBytes = 24
	textBytes   = 8

	deepest = 24 // values refer to values
)

var timeType = reflect.TypeFor[time.Time]()

// weigh estimates the size of v as JSON, without encoding it. depth limits the walk.
func weigh(v reflect.Value, depth int) int {
	if depth == 0 {
		return scalarBytes
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len() + textBytes
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return scalarBytes
		}
		return weigh(v.Elem(), depth-1)
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind < reflect.Array { // bytes are text
			if kind == reflect.Uint8 {
				return v.Len() + textBytes
			}
			return v.Len() * scalarBytes
		}
		n := textBytes
		for i := range v.Len() {
			n += weigh(v.Index(i), depth-1)
		}
		return n
	case reflect.Map:
		n := textBytes
		if v.CanInterface() { // the large ones, without anything made for each member
			switch m := v.Interface().(type) {
			case map[string]int:
				for name := range m {
					n += len(name) + textBytes + scalarBytes
				}
				return n
			case map[string][]string:
				for name, texts := range m {
					n += len(name) + 2*textBytes
					for _, text := range texts {
						n += len(text) + textBytes
					}
				}
				return n
			}
		}
		for each := v.MapRange(); each.Next(); {
			n += weigh(each.Key(), depth-1) + weigh(each.Value(), depth-1)
		}
		return n
	case reflect.Struct:
		if v.Type() == timeType {
			return scalarBytes
		}
		n := textBytes
		for i := range v.NumField() {
			n += scalarBytes + weigh(v.Field(i), depth-1)
		}
		return n
	}
	return scalarBytes
}
