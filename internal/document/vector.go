package document

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
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
			n := len(dst)
			if dst, i = appendPlain(dst, value, i, most+1-n); len(dst) > n {
				continue
			}
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

// plainBytes is more than the longest text of a number that appendPlain reads, with a comma and a space.
const plainBytes = 1 + len("0.") + 24

// appendPlain appends the numbers from b[i] on, at most so many, that have a digit, a point, and up to 18 digits. Such are the components
// of most vectors. Commas separate them, with at most a space behind each. It returns the index of the first byte that it did not read.
func appendPlain(dst []float32, b []byte, i, most int) ([]float32, int) {
	for ; most > 0 && i+plainBytes <= len(b); most-- {
		sign := 0
		if b[i] == '-' { // half of the numbers: no jump
			sign = 1
		}
		text := b[i+sign:][:plainBytes-1]
		whole := uint64(text[0] - '0')
		if whole > 9 || text[1] != '.' {
			break
		}
		text = text[2:]
		values, others := jsontext.DigitValues(binary.LittleEndian.Uint64(text))
		mantissa, n := whole, 0
		for others == 0 && n < 16 {
			mantissa, n = jsontext.AppendDigits(mantissa, values, 8), n+8
			values, others = jsontext.DigitValues(binary.LittleEndian.Uint64(text[n:]))
		}
		digits := bits.TrailingZeros64(others) / 8
		n += digits
		if n == 0 || n > mantissaDigits-1 {
			break
		}
		mantissa = jsontext.AppendDigits(mantissa, values, digits)
		x := float64(mantissa) / powers[n]
		if !rounds(x) && mantissa != 0 || text[n] != ',' && text[n] != ']' {
			break
		}
		dst = append(dst, math.Float32frombits(math.Float32bits(float32(x))|uint32(sign)<<31))
		i += sign + len("0.") + n
		if b[i] == ']' {
			break
		}
		if i++; b[i] == ' ' {
			i++
		}
	}
	return dst, i
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
		x := float64(mantissa)
		if exponent < 0 {
			x /= powers[-exponent]
		} else {
			x *= powers[exponent]
		}
		if rounds(x) || mantissa == 0 {
			return math.Float32frombits(math.Float32bits(float32(x)) | uint32(sign)<<31), i
		}
	}
	x, _ := strconv.ParseFloat(string(b[start:i]), 64)
	return float32(x), i
}

// rounds reports whether x, which two roundings made of a number, one of its mantissa and one of a division, becomes the same number of
// 32 bits as the exact number. The roundings leave an error of less than two units in the last place of 64 bits. That matters only next
// to the middle between two numbers of 32 bits.
func rounds(x float64) bool {
	const half = 1 << 28 // of the 29 bits that 32-bit floats do not have
	d := int64(math.Float64bits(x)&(2*half-1)) - half
	return x > 1e-30 && x < 1e30 && (d < -4 || d > 4)
}

// mantissaDigits is how many digits a mantissa of 64 bits always holds.
const mantissaDigits = 19

// powers of ten that 64 bits hold exactly.
const maxPower = 22

var powers = [maxPower + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
