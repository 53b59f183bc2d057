package settings

import "svc/segment"

// Update is a change of settings: for each, untouched, reset to default, or a new value.
type Update struct{}

// ParseUpdate reads the body of PATCH /settings. Errors are *apierr.Error with the field's code; unknown fields bad_request.
// foreignKeys and chat are refused unless enabled in f.
func ParseUpdate(body []byte, f Features) (*Update, error) { panic("stub") }

// Features are the experimental features that open settings.
type Features struct{ ForeignKeys, Chat, CompositeEmbedders, Multimodal bool }

// Routes lists the sub-routes of /settings: "stop-words" and so on, with the method (PUT or PATCH) that updates each.
func Routes() map[string]string { panic("stub") }

// ParseOne reads the body of a sub-route's update; ResetOne is what its DELETE means; ResetAll that of DELETE /settings.
func ParseOne(route string, body []byte, f Features) (*Update, error) { panic("stub") }
func ResetOne(route string) *Update                                   { panic("stub") }
func ResetAll() *Update                                               { panic("stub") }

// MarshalJSON gives the keys that were sent, as task details echo them (tasks.md 2), secrets redacted;
// Full gives them in clear. UnmarshalUpdate reads what Full wrote.
func (u *Update) MarshalJSON() ([]byte, error)  { panic("stub") }
func (u *Update) Full() []byte                  { panic("stub") }
func UnmarshalUpdate(b []byte) (*Update, error) { panic("stub") }

// Apply returns the settings after u; an error (*apierr.Error) when the result is invalid.
func (s *Settings) Apply(u *Update) (*Settings, error) { panic("stub") }

// MarshalJSON gives the form of GET /settings (secrets redacted); One that of a sub-route's GET.
func (s *Settings) MarshalJSON() ([]byte, error)     { panic("stub") }
func (s *Settings) One(route string) ([]byte, error) { panic("stub") }

// Encode and Decode store settings in a manifest, secrets in clear.
func (s *Settings) Encode() []byte       { panic("stub") }
func Decode(b []byte) (*Settings, error) { panic("stub") }

// Rebuild says what a change of settings makes stale.
type Rebuild struct {
	Words                   bool              // analyse every document again
	Prefixes                bool              // prefix postings appear or go
	AddColumns, DropColumns []segment.FieldID // columns to build from documents, and to leave out
}

// Changes compares two settings under their resolved fields.
func Changes(oldSettings, newSettings *Settings, oldFields, newFields *Fields) Rebuild { panic("stub") }
