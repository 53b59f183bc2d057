package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"svc/internal/apierr"
)

// Key is an API key. It contains no secret: its value is derived from the uid and the master key. Keys that the store returns are
// shared and must not be modified.
type Key struct {
	UID         uuid.UUID
	Name        *string
	Description *string
	Actions     []string
	Indexes     []string  // patterns
	ExpiresAt   time.Time // with its original offset; zero: never
	RateLimit   RateLimit
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Request     uuid.UUID // that created the key; zero: unknown
}

// expired reports whether the key has expired.
func (k *Key) expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// storedKey is a key as auth.db stores it: JSON under the uid.
type storedKey struct {
	Name        *string    `json:"name,omitempty"`
	Description *string    `json:"description,omitempty"`
	Actions     []string   `json:"actions"`
	Indexes     []string   `json:"indexes"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	RateLimit   RateLimit  `json:"rateLimit,omitzero"`
	CreatedAt   time.Time  `json:"createdAt"`
	UpdatedAt   time.Time  `json:"updatedAt"`
	Request     uuid.UUID  `json:"request,omitzero"`
}

func (k *Key) encode() ([]byte, error) {
	s := storedKey{
		Name: k.Name, Description: k.Description, Actions: k.Actions, Indexes: k.Indexes,
		RateLimit: k.RateLimit, CreatedAt: k.CreatedAt, UpdatedAt: k.UpdatedAt, Request: k.Request,
	}
	if !k.ExpiresAt.IsZero() {
		s.ExpiresAt = &k.ExpiresAt
	}
	return json.Marshal(s)
}

func decodeKey(uid, b []byte) (*Key, error) {
	id, err := uuid.FromBytes(uid)
	if err != nil {
		return nil, err
	}
	var s storedKey
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	k := &Key{
		UID: id, Name: s.Name, Description: s.Description, Actions: s.Actions, Indexes: s.Indexes,
		RateLimit: s.RateLimit, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Request: s.Request,
	}
	if s.ExpiresAt != nil {
		k.ExpiresAt = *s.ExpiresAt
	}
	for _, a := range k.Actions {
		if err := CheckAction(a); err != nil {
			return nil, err
		}
	}
	if err := k.RateLimit.Check(); err != nil {
		return nil, err
	}
	return k, nil
}

// newestFirst orders keys for lists.
func newestFirst(a, b *Key) int {
	if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
		return c
	}
	return slices.Compare(a.UID[:], b.UID[:])
}

// value is the secret of a key: HMAC-SHA256 of the uid's text under the master key.
type value [sha256.Size]byte

func derive(master string, uid uuid.UUID) (v value) {
	h := hmac.New(sha256.New, []byte(master))
	h.Write([]byte(uid.String()))
	h.Sum(v[:0])
	return v
}

// text returns the value as clients send it.
func (v *value) text() string { return hex.EncodeToString(v[:]) }

// parseValue reads a value in upper or lower case.
func parseValue(text string) (v value, ok bool) {
	if len(text) != 2*len(v) {
		return v, false
	}
	_, err := hex.Decode(v[:], []byte(text))
	return v, err == nil
}

// rfc3339 is stricter than time.Parse, which accepts hours of one digit, commas, and offsets that time cannot print.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseExpiry reads an expiry, which must be after now: RFC 3339, the same without an offset (UTC), with a space for the T, or a date
// alone (invalid_api_key_expires_at).
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	full := text
	switch {
	case len(text) == len(time.DateOnly):
		full = text + "T00:00:00Z"
	case len(text) == len(time.DateTime) && (text[10] == ' ' || text[10] == 'T'):
		full = text[:10] + "T" + text[11:] + "Z"
	}
	full = strings.ToUpper(full)
	t, err := time.Parse(time.RFC3339, full)
	if err != nil || !rfc3339.MatchString(full) {
		return t, apierr.New("invalid_api_key_expires_at", "`expiresAt` must be a date such as `2077-05-06`, or a time such as `2077-05-06T07:08:09Z`, or null for a key that does not expire, but it is %q.", text)
	}
	if !t.After(now) {
		return t, apierr.New("invalid_api_key_expires_at", "`expiresAt` must be in the future, but it is %q.", text)
	}
	return t, nil
}
