package settings

func readTimeToLive(s *Settings, v value) error {
	var t TimeToLive
	given := false
	err := v.fields(map[string]func(value) error{
		"attribute": func(v value) (err error) {
			if t.Attribute, err = v.text(); err == nil && t.Attribute == "" {
				err = v.fail("is empty: name the field that says when a document expires.")
			}
			for _, reserved := range []string{VectorsField, GeoField, GeoJSONField} {
				if err == nil && within(t.Attribute, reserved) {
					err = v.fail("cannot be in `%s`: name a field with seconds since 1970.", reserved)
				}
			}
			given = true
			return err
		},
		"seconds": func(v value) (err error) {
			t.Seconds, err = v.whole(MaxTimeToLive)
			return err
		},
	})
	if err == nil && !given {
		err = v.fail("has no `attribute`: name the field that says when a document expires.")
	}
	if err == nil {
		s.TimeToLive = &t
	}
	return err
}

func showTimeToLive(t *TimeToLive) any {
	switch {
	case t == nil:
		return nil
	case t.Seconds == 0:
		return object{{"attribute", t.Attribute}}
	}
	return object{{"attribute", t.Attribute}, {"seconds", t.Seconds}}
}
