package text

import (
	"unicode"
	"unicode/utf8"
)

// Cursor is a place in a text that is cut part by part. The zero value is the beginning of any.
type Cursor struct {
	at    int // bytes of the text that are behind
	end   int // of the group that at is in, as far as it is known
	group group
	open  bool // what follows may belong to the group, too
}

// AtEnd reports whether nothing of a text is left.
func (c *Cursor) AtEnd(s []byte) bool { return c.at >= len(s) }

// Offset returns how many bytes are behind the cursor.
func (c *Cursor) Offset() int { return c.at }

// More appends the next tokens of s, at least n if so many remain, and moves the cursor past them. Stop words are words, as
// formatting requires. All parts of a text together give the result of Tokens.
//
// With partial, s is the beginning of a text, made of whole characters. More then appends only tokens that do not depend on the rest,
// maybe none. Later calls pass the same beginning with more text.
func (a *Analyzer) More(dst []Token, s []byte, l Locales, c *Cursor, n int, partial bool) []Token {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	first := len(dst)
	forms, ends := sc.form[:0], sc.ends[:0]
	yield := func(p piece) bool {
		raw := s[p.start:p.end]
		if p.inner != whole {
			dst[len(dst)-1].addInner(a, sc, raw, p)
			return true
		}
		sc.parts = sc.parts[:0]
		kind := p.kind
		if kind == Word {
			kind = a.classify(sc, raw, p, false)
		}
		from := len(forms)
		var a article
		forms, a = appendForm(forms, raw, p.group, nil)
		ends = append(ends, len(forms))
		t := Token{Kind: kind, Start: p.start, End: p.end, group: p.group}
		if a != "" {
			t.Whole = a.whole(string(forms[from:]))
		}
		dst = append(dst, t)
		return true
	}
	for c.at < len(s) && len(dst)-first < n {
		if c.open {
			_, size := nextGroup(s[c.end:], c.group.script)
			c.end += size
			if c.open = partial && c.end == len(s); !c.open {
				c.end = c.at + withoutNumber(s[c.at:], c.end-c.at, c.group.script)
			}
		}
		if !c.enter(s, l, partial) {
			break
		}
		known, knownForms, knownEnds := len(dst), len(forms), len(ends)
		next, _ := a.stretch(s, c.at, c.end, c.group, yield)
		if c.open && next > c.end-a.longest {
			dst, forms, ends = dst[:known], forms[:knownForms], ends[:knownEnds]
			break
		}
		c.at = next
	}
	// One string has the forms of all.
	all, start := string(forms), 0
	for i, end := range ends {
		dst[first+i].Form = all[start:end]
		start = end
	}
	sc.form, sc.ends = forms, ends
	return dst
}

// enter finds out which group the cursor is in, if that is not known. It returns false where it takes more of the text.
func (c *Cursor) enter(s []byte, l Locales, partial bool) bool {
	if c.at < c.end {
		return true
	}
	script, size := nextGroup(s[c.at:], other)
	open := partial && c.at+size == len(s)
	size = withoutNumber(s[c.at:], size, script)
	if open && (script == other || guessed(script, l)) {
		return false
	}
	c.end, c.open = c.at+size, open
	c.group = group{script, languageOf(script, s[c.at:c.end], l)}
	return true
}

// passing says which bytes of a text can be skipped while looking for words by their beginnings.
type passing struct {
	able  bool
	inner [256]bool   // ASCII letters and digits that are neither separators nor begin a pattern
	wide  [0x250]bool // the same of À to ɏ
}

// newPassing computes what can be skipped. If the settings have patterns of several characters, or patterns that are words, nothing
// can: a space then need not end a token, and a letter need not be inside one.
func newPassing(p *patterns, c Config) passing {
	able := len(c.Dictionary) == 0
	for _, s := range c.Separators {
		kind, _ := p.separator(appendBase(nil, []byte(s)))
		able = able && (s == "" || utf8.RuneCountInString(s) == 1 && kind != Word)
	}
	t := passing{able: able}
	for b := range utf8.RuneSelf {
		t.inner[b] = p.class[b] == classWord && isAlphanumeric(byte(b))
	}
	for r := rune(0xc0); r < rune(len(t.wide)); r++ {
		t.wide[r] = unicode.IsLetter(r) && !p.firsts.has(r) && scriptRangeOf(r).script == latin
	}
	return t
}

// Pass moves the cursor towards the next word that may begin with an entry of b, or towards the end. It leaves at least the given
// number of words in between. If the form of a word is obvious, Pass also asks wanted. It reports whether it moved. It skips only
// Latin text that no language cuts in its own way. With partial, s is the beginning of a text.
func (a *Analyzer) Pass(s []byte, l Locales, c *Cursor, b *Beginnings, wanted func(form []byte) bool, words int, partial bool) bool {
	if !a.passes.able || c.at >= len(s) || !c.enter(s, l, partial) || c.group.script != latin || segmenterFor(c.group) != nil {
		return false
	}
	// A separator that ends with this byte in any context ends a token: nothing longer begins there.
	for i := a.candidate(s, c.at, c.end, b, wanted) - 1; i > c.at; i-- {
		if a.class[s[i-1]] == classSoft && a.passes.inner[s[i]] {
			if words--; words < 0 {
				c.at = i
				return true
			}
		}
	}
	return false
}

// candidate returns the first place in s[at:end] at which a word may begin with an entry of b, or end. A token begins at at.
func (a *Analyzer) candidate(s []byte, at, end int, b *Beginnings, wanted func(form []byte) bool) int {
	var buf [32]byte
	first := s[at]
	for i := at; i < end-1; i++ {
		second := s[i+1]
		if b.pairs[first][second>>6]>>(second&63)&1 != 0 && (i == at || a.mayBegin(s, i)) {
			if form := a.plainWord(buf[:], s[i:end]); len(form) == 0 || wanted(form) {
				return i
			}
		}
		first = second
	}
	return max(at, end-1) // what one byte may be is not looked at
}

// Lacks reports whether no word of a text is wanted, or begins with an entry of b. For text that is not ASCII, or that a language may
// cut in its own way, it returns false.
func (a *Analyzer) Lacks(s []byte, l Locales, b *Beginnings, wanted func(form []byte) bool) bool {
	if !a.passes.able || guessed(latin, l) || !isASCII(s) || segmenterFor(group{latin, languageOf(latin, nil, l)}) != nil {
		return false
	}
	n := len(s)
	if n == 0 {
		return true
	}
	if a.candidate(s, 0, n, b, wanted) < n-1 {
		return false
	}
	// Nothing follows the last byte: it is a word of one letter, or no word begins there.
	const nothing = ' '
	return b.pairs[s[n-1]][0]>>nothing&1 == 0 || n > 1 && !a.mayBegin(s, n-1)
}

// mayBegin reports whether a word may begin at s[i]. i is not 0.
func (a *Analyzer) mayBegin(s []byte, i int) bool {
	if class := a.class[s[i]]; class == classSoft || class == classHard {
		return false
	}
	if s[i] >= utf8.RuneSelf {
		if r, _ := utf8.DecodeRune(s[i:]); isPictograph(r) {
			return true
		}
	}
	t, last := &a.passes, s[i-1]
	if last < utf8.RuneSelf || i < 2 {
		return !t.inner[last]
	}
	lead := s[i-2]
	return lead < 0xc3 || lead > 0xc9 || !t.wide[rune(lead&0x1f)<<6|rune(last&0x3f)]
}

// plainWord returns the form of the word that s begins with, if it is made of ASCII letters and digits only and fits into buf.
func (a *Analyzer) plainWord(buf, s []byte) []byte {
	n := 0
	for n < len(s) && a.passes.inner[s[n]] {
		if n == len(buf) {
			return nil
		}
		buf[n] = lower[s[n]]
		n++
	}
	if n < len(s) {
		if size, _ := a.match(s[n:]); size == 0 {
			return nil
		}
	}
	return buf[:n]
}

// Beginnings say of the first two bytes of an unfolded word whether the word may be wanted.
type Beginnings struct {
	pairs [256][4]uint64 // by the first: a bit for the second
}

// NewBeginnings returns Beginnings without words. Characters that are not ASCII, or that folding drops, may become anything.
func NewBeginnings() *Beginnings {
	b := new(Beginnings)
	*b = noBeginnings
	return b
}

var noBeginnings = func() (b Beginnings) {
	for c := range b.pairs {
		if c < ' ' || c == 0x7f || c >= 0xc0 { // the others of those that are not ASCII are within a character
			b.pairs[c] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		}
	}
	return b
}()

// Add adds the folded form of a word, or of the start of one.
func (b *Beginnings) Add(form string) {
	if form == "" || form[0] >= utf8.RuneSelf {
		return
	}
	for _, c := range [...]byte{form[0], upper(form[0])} {
		row := &b.pairs[c]
		if len(form) == 1 {
			*row = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
			continue
		}
		row[0] |= 1<<' ' - 1
		row[1] |= 1 << (0x7f - 64)
		row[2], row[3] = ^uint64(0), ^uint64(0)
		for _, d := range [...]byte{form[1], upper(form[1])} {
			row[d>>6] |= 1 << (d & 63)
		}
	}
}

func upper(b byte) byte {
	if 'a' <= b && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}
