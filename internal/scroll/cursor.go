package scroll

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// MaxCursorBytes is more than any cursor has.
const MaxCursorBytes = 128

// Secret returns the secret of the cursors of a server with a master key; "": without one, where cursors protect nothing.
func Secret(masterKey string) []byte {
	h := hmac.New(sha256.New, []byte(masterKey))
	h.Write([]byte("svc cursors"))
	return h.Sum(nil)
}

// Digest identifies a search: the index, and everything that decides which documents there are and in which order.
type Digest [16]byte

// DigestOf returns the digest of a description.
func DigestOf(description []byte) (d Digest) {
	sum := sha256.Sum256(description)
	copy(d[:], sum[:])
	return d
}

// cursor is what the text of a cursor says. Its form is, in base64url without padding:
//
//	version  1 byte, 1
//	kind     1 byte
//	of       16 bytes
//	afterID: id, hits       uvarints
//	atPlace: place, page    16 bytes, uvarint
//	code     16 bytes: the beginning of HMAC-SHA256 of all before it
type cursor struct {
	kind cursorKind
	of   Digest

	after uint32 // of afterID: the highest id that was returned
	hits  uint64 // how many were

	place placeID // of atPlace
	page  uint64  // how many pages it has to be behind
}

type cursorKind byte

const (
	afterID cursorKind = 1 + iota
	atPlace
)

const (
	cursorVersion = 1
	codeBytes     = 16
)

// print returns the text of a cursor.
func (s *Store) print(c *cursor) string {
	b := append([]byte{cursorVersion, byte(c.kind)}, c.of[:]...)
	if c.kind == afterID {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.after)), c.hits)
	} else {
		b = binary.AppendUvarint(append(b, c.place[:]...), c.page)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, s.code(b)...))
}

// parse reads the text of a cursor. It returns false for a text that print has not made with the same secret.
func (s *Store) parse(text string) (c cursor, ok bool) {
	if len(text) > MaxCursorBytes {
		return c, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 2+len(c.of)+codeBytes {
		return c, false
	}
	b, code := b[:len(b)-codeBytes], b[len(b)-codeBytes:]
	if !hmac.Equal(code, s.code(b)) || b[0] != cursorVersion {
		return c, false
	}
	c.kind = cursorKind(b[1])
	b = b[2+copy(c.of[:], b[2:]):]
	switch c.kind {
	case afterID:
		after, n := binary.Uvarint(b)
		hits, m := binary.Uvarint(b[max(n, 0):])
		c.after, c.hits = uint32(after), hits
		return c, n > 0 && m > 0
	case atPlace:
		if len(b) < len(c.place) {
			return c, false
		}
		b = b[copy(c.place[:], b):]
		page, n := binary.Uvarint(b)
		c.page = page
		return c, n > 0
	}
	return c, false
}

// code returns what authenticates the bytes of a cursor.
func (s *Store) code(b []byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write(b)
	return h.Sum(nil)[:codeBytes]
}
