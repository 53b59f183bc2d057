package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"svc/internal/jsontext"
)

// AppendVector appends the numbers of a vector, a valid JSON value: an array, of which it reads at most most+1 numbers, or a string
// of base64. It returns false for other values, or if a number does not fit into 32 bits.
func AppendVector(dst []float32, value []byte, most int) (_ []float32, ok bool) {
	if value[0] == '"' {
		return AppendBase64(dst, value)
	}
	if value[0] != '[' {
		return dst, false
	}
	dst = slices.Grow(dst, min(bytes.Count(value, []byte{','}), most)+1)
	for i := 1; len(dst) <= most; {
		switch c := value[i]; {
		case c == ']':
			return dst, true
		case c == '-' || isDigit(c):
			f, end := floatAt(value, i)
			if math.IsInf(float64(f), 0) {
				return dst, false
			}
			dst = append(dst, f)
			i = end
		case c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
		default:
			return dst, false
		}
	}
	return dst, true
}

// AppendBase64 appends the 32-bit floats, little-endian, of a JSON string of base64 with or without padding. It returns false where the
// string is not that, or where a number is not finite.
func AppendBase64(dst []float32, quoted []byte) (_ []float32, ok bool) {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // some encoders escape the slash
		text = jsontext.AppendUnquoted(nil, quoted)
	}
	if end := bytes.TrimRight(text, "="); len(text)-len(end) <= 2 {
		text = end
	}
	raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Strict().Decode(raw, text)
	if err != nil || n%4 != 0 || bytes.ContainsAny(text, "\r\n") {
		return dst, false
	}
	dst = slices.Grow(dst, n/4)
	for ; n > 0; n -= 4 {
		f := math.Float32frombits(binary.LittleEndian.Uint32(raw))
		if f != f || math.IsInf(float64(f), 0) {
			return dst, false
		}
		dst, raw = append(dst, f), raw[4:]
	}
	return dst, true
}

// floatAt reads the JSON number at b[i], rounded to 64 bits and then to 32, and returns its end. One too large is infinite.
func floatAt(b []byte, i int) (f float32, end int) {
	start := i
	sign := uint64(0)
	if b[i] == '-' { // half of the numbers: no jump
		sign = 1
	}
	i += int(sign)
	first := i
	var mantissa uint64
	for ; i < len(b) && isDigit(b[i]); i++ { // few digits stand before a point
		mantissa = mantissa*10 + uint64(b[i]-'0')
	}
	digits, exponent := i-first, 0
	if i < len(b) && b[i] == '.' {
		point := i
		mantissa, i = jsontext.ReadDigits(mantissa, b, i+1)
		exponent = point + 1 - i
		digits -= exponent
	}
	if digits > mantissaDigits { // zeros at the beginning are none of the mantissa
		for ; first < i && (b[first] == '0' || b[first] == '.'); first++ {
			if b[first] == '0' {
				digits--
			}
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		below := b[i] == '-'
		if below || b[i] == '+' {
			i++
		}
		n := 0
		for ; i < len(b) && isDigit(b[i]); i++ {
			n = min(n*10+int(b[i]-'0'), 1<<20)
		}
		if below {
			n = -n
		}
		exponent += n
	}
	if digits <= mantissaDigits && exponent >= -maxPower && exponent <= maxPower {
		// Two roundings, of the mantissa and of the division, leave an error of less than two units in the last place of 64
		// bits. That decides how 32 bits are rounded only next to the middle between two of them.
		x := float64(mantissa)
		if exponent < 0 {
			x /= powers[-exponent]
		} else {
			x *= powers[exponent]
		}
		const half = 1 << 28 // of the 29 bits that 32-bit floats do not have
		low := int64(math.Float64bits(x) & (2*half - 1))
		if d := low - half; mantissa == 0 || x > 1e-30 && x < 1e30 && (d < -4 || d > 4) {
			return math.Float32frombits(math.Float32bits(float32(x)) | uint32(sign)<<31), i
		}
	}
	x, _ := strconv.ParseFloat(string(b[start:i]), 64)
	return float32(x), i
}

// mantissaDigits is how many digits a mantissa of 64 bits always holds.
const mantissaDigits = 19

// powers of ten that 64 bits hold exactly.
const maxPower = 22

var powers = [maxPower + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
