package template

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts are the dates that the filter date reads.
var layouts = []string{
	"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05", "2006-01-02 15:04", time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02",
	"02 January 2006 15:04:05 -0700", "02 Jan 2006 15:04:05 -0700", "02 January 2006", "02 Jan 2006", "January 2, 2006", "Jan 2, 2006",
	time.RFC1123Z, time.RFC1123, time.ANSIC, time.UnixDate, "Mon Jan _2 15:04:05 2006",
}

// directives are those that are layouts of package time.
var directives = map[byte]string{
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'p': "PM", 'P': "pm", 'Z': "MST", 'z': "-0700",
	'F': "2006-01-02", 'D': "01/02/06", 'x': "01/02/06", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM",
	'c': "Mon Jan _2 15:04:05 2006", 'v': "_2-Jan-2006",
}

// date formats a date by the directives of strftime. It leaves other values unchanged.
func date(r *renderer, v value, args []value) (value, error) {
	const longest = 100 // of dates
	format := r.text(args[0])
	if v.kind != kindText || format == "" || len(v.text) > longest {
		return v, nil
	}
	if v.text == "now" || v.text == "today" {
		return text(r.strftime(time.Now(), format)), nil
	}
	if r.make(len(layouts)*4*longest) != nil { // errors of package time have copies of the text
		return value{}, nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, v.text); err == nil {
			return text(r.strftime(t, format)), nil
		}
	}
	return v, nil
}

// strftime knows the directives of C and Ruby, with the flags - (no padding), _ (blanks), 0 (zeros) and ^ (capitals).
func (m *meter) strftime(t time.Time, format string) string {
	const longest = 64 // of what a directive makes, in bytes
	var b []byte
	for i := 0; i < len(format); i++ {
		if n := strings.IndexByte(format[i:], '%'); n != 0 {
			if n < 0 {
				n = len(format) - i
			}
			b = m.appendText(b, format[i:i+n])
			i += n - 1
			continue
		}
		if m.make(2*longest) != nil {
			return ""
		}
		j, flag := i+1, byte(0)
		if j < len(format) && strings.IndexByte("-_0^", format[j]) >= 0 {
			flag = format[j]
			j++
		}
		if j >= len(format) {
			b = m.appendText(b, format[i:])
			break
		}
		s, ok := directive(t, format[j], flag)
		switch {
		case !ok: // j may be inside a character
			s = format[i : j+1]
		case flag == '^':
			s = strings.ToUpper(s)
		}
		b = m.appendText(b, s)
		i = j
	}
	return m.string(b)
}

// directive writes one directive of a date format, such as %Y. flag is its padding, as of strftime.
func directive(t time.Time, c, flag byte) (string, bool) {
	number := func(n, width int, pad byte) (string, bool) {
		switch flag {
		case '-':
			return strconv.Itoa(n), true
		case '_':
			pad = ' '
		case '0':
			pad = '0'
		}
		s := strconv.Itoa(n)
		return strings.Repeat(string(pad), max(width-len(s), 0)) + s, true
	}
	hour12 := (t.Hour()+11)%12 + 1
	isoYear, isoWeek := t.ISOWeek()
	switch c {
	case 'Y':
		return number(t.Year(), 4, '0')
	case 'C':
		return number(t.Year()/100, 2, '0')
	case 'y':
		return number(t.Year()%100, 2, '0')
	case 'm':
		return number(int(t.Month()), 2, '0')
	case 'd':
		return number(t.Day(), 2, '0')
	case 'e':
		return number(t.Day(), 2, ' ')
	case 'j':
		return number(t.YearDay(), 3, '0')
	case 'H':
		return number(t.Hour(), 2, '0')
	case 'k':
		return number(t.Hour(), 2, ' ')
	case 'I':
		return number(hour12, 2, '0')
	case 'l':
		return number(hour12, 2, ' ')
	case 'M':
		return number(t.Minute(), 2, '0')
	case 'S':
		return number(t.Second(), 2, '0')
	case 'L':
		return fmt.Sprintf("%03d", t.Nanosecond()/1e6), true
	case 'N', 'f':
		return fmt.Sprintf("%09d", t.Nanosecond()), true
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 'U':
		return number((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
	case 'W':
		return number((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 'V':
		return number(isoWeek, 2, '0')
	case 'G':
		return number(isoYear, 4, '0')
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	}
	if layout, ok := directives[c]; ok {
		return t.Format(layout), true
	}
	return "", false
}
