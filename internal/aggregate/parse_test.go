package aggregate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"svc/internal/apierr"
)

// TestParseErrors reads requests with one mistake each: the message must name the member and what is allowed.
func TestParseErrors(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+format, i)
		}
		return b.String()[1:]
	}
	for body, want := range map[string]string{
		`[]`:                                    "`aggregations` must be an object",
		`"x"`:                                   "`aggregations` must be an object",
		`{"":{"stats":"x"}}`:                    "name of 0 bytes",
		`{"a":1}`:                               "`aggregations.a` must be an object, but it is 1",
		`{"a":{}}`:                              "`aggregations.a` has no kind. Give one of `terms`, `stats`, `percentiles`, `histogram`, `dateHistogram`, `range`, `cardinality`",
		`{"a":{"sum":"x"}}`:                     "`aggregations.a` has no kind",
		`{"a":{"stats":"x","terms":"y"}}`:       "has both `stats` and `terms`",
		`{"a":{"stats":3}}`:                     "`aggregations.a.stats` must be the name of an attribute, but it is 3",
		`{"a":{"stats":""}}`:                    "`aggregations.a.stats` must be the name of an attribute",
		`{"a":{"stats":"x","limit":3}}`:         "`aggregations.a.limit` is unknown: `stats` has no options",
		`{"a":{"terms":"x","limt":3}}`:          "Did you mean `limit`?",
		`{"a":{"terms":"x"},"a":{"terms":"x"}}`: "`aggregations.a` is given twice",
		`{"a":{"terms":"x","limit":0}}`:         "a whole number from 1 to 10000, but it is 0",
		`{"a":{"terms":"x","limit":1e3}}`:       "a whole number from 1 to 10000",
		`{"a":{"terms":"x","limit":10001}}`:     "a whole number from 1 to 10000",
		`{"a":{"terms":"x","limit":99999999999999999999}}`:                           "a whole number from 1 to 10000",
		`{"a":{"terms":"x","order":"count"}}`:                                        "`count:desc`, `count:asc`, `key:asc` or `key:desc`",
		`{"a":{"terms":"x","minCount":0}}`:                                           "a whole number from 1 to",
		`{"a":{"percentiles":"x","percents":50}}`:                                    "an array of 1 to 100 numbers from 0 to 100",
		`{"a":{"percentiles":"x","percents":[]}}`:                                    "an array of 1 to 100 numbers",
		`{"a":{"percentiles":"x","percents":[100.5]}}`:                               "numbers from 0 to 100",
		`{"a":{"percentiles":"x","percents":["5"]}}`:                                 "numbers from 0 to 100",
		`{"a":{"percentiles":"x","percents":[` + many(101, "0.%03d") + `]}}`:         "an array of 1 to 100 numbers",
		`{"a":{"histogram":"x"}}`:                                                    "`aggregations.a.interval` is missing: `histogram` needs it",
		`{"a":{"histogram":"x","interval":0}}`:                                       "a number above 0, but it is 0",
		`{"a":{"histogram":"x","interval":-1}}`:                                      "a number above 0",
		`{"a":{"histogram":"x","interval":1e999}}`:                                   "a number above 0",
		`{"a":{"histogram":"x","interval":"day"}}`:                                   "a number above 0",
		`{"a":{"histogram":"x","interval":1,"offset":"1"}}`:                          "`aggregations.a.offset` must be a number",
		`{"a":{"dateHistogram":"x"}}`:                                                "`aggregations.a.interval` is missing",
		`{"a":{"dateHistogram":"x","interval":3600}}`:                                "one of `second`, `minute`, `hour`, `day`, `week`, `month`, `quarter`, `year`",
		`{"a":{"dateHistogram":"x","interval":"day","timeZone":"Mars/Olympus"}}`:     "a time zone of the tz database",
		`{"a":{"dateHistogram":"x","interval":"day","timeZone":"../../etc/passwd"}}`: "a time zone of the tz database",
		`{"a":{"dateHistogram":"x","interval":"day","timeZone":"Local"}}`:            "a time zone of the tz database",
		`{"a":{"dateHistogram":"x","interval":"day","timeZone":""}}`:                 "a time zone of the tz database",
		`{"a":{"dateHistogram":"x","interval":"day","unit":"hours"}}`:                "`seconds` or `milliseconds`",
		`{"a":{"range":"x"}}`:                                                        "`aggregations.a.bands` is missing",
		`{"a":{"range":"x","bands":[]}}`:                                             "an array of bands",
		`{"a":{"range":"x","bands":[{}]}}`:                                           "`aggregations.a.bands[0]` must be a band with `from`, `to` or both",
		`{"a":{"range":"x","bands":[{"to":1},{"from":2,"to":2}]}}`:                   "`aggregations.a.bands[1]` must be a band",
		`{"a":{"range":"x","bands":[{"from":"1"}]}}`:                                 "`aggregations.a.bands[0].from` must be a number",
		`{"a":{"range":"x","bands":[{"low":1}]}}`:                                    "has a member `low`",
		`{"a":{"range":"x","bands":[` + many(101, `{"to":%d}`) + `]}}`:               "more than 100 bands",
		`{"a":{"terms":"x","aggregations":{"b":{"terms":"x","aggregations":{"c":{"terms":"x","aggregations":{"d":{"stats":"x"}}}}}}}}`: "nested too deeply: aggregations have at most 3 levels",
		`{"a":{"stats":"x","aggregations":{}}}`:      "`stats` has no options",
		`{` + many(101, `"a%d":{"stats":"x"}`) + `}`: "more than 100 aggregations",
	} {
		_, err := Parse([]byte(body), "aggregations", "invalid_search_aggregations")
		var e *apierr.Error
		if !errors.As(err, &e) || e.Code != "invalid_search_aggregations" || !strings.Contains(e.Message, want) {
			t.Errorf("%.200s: %v, want %s", body, err, want)
		}
	}
}

// TestKindsAndOptions checks that each option of a kind has a reader, that each kind has a constructor, and that each option
// belongs to a kind.
func TestKindsAndOptions(t *testing.T) {
	used := map[string]bool{}
	for _, k := range kinds {
		if k.make == nil {
			t.Errorf("%s has no state", k.name)
		}
		for _, name := range k.options {
			if used[name] = true; name != nested && options[name] == nil {
				t.Errorf("the option %s of %s has no reader", name, k.name)
			}
		}
	}
	for name := range options {
		if !used[name] {
			t.Errorf("no kind has the option %s", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"a":{"terms":"x","limit":3,"order":"key:asc","aggregations":{"b":{"percentiles":"y","percents":[1,2.5]}}}}`)
	f.Add(`{"a":{"dateHistogram":"x","interval":"month","timeZone":"Europe/Paris","unit":"milliseconds","minCount":0}}`)
	f.Add(`{"a":{"range":"x","bands":[{"from":-1e3},{"to":1}]},"b":{"histogram":"x","interval":0.1,"offset":-1}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := Parse([]byte(body), "aggregations", "invalid_search_aggregations")
		if err != nil {
			return
		}
		again, err := Parse(r.Text, "aggregations", "invalid_search_aggregations")
		if err != nil || string(again.Text) != string(r.Text) {
			t.Errorf("%s becomes %s, %v", body, r.Text, err)
		}
	})
}
