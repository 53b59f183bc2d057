package group

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"svc/internal/sealedjson"
	"svc/internal/vfs"
)

// Names in the data directory of a member.
const (
	// IdentityFile says which member of which group owns the directory.
	IdentityFile = "GROUP"

	// workDir is a directory of this package:
	//
	//	log       the log of a writer
	//	ballot    of a voter: the log that voters agree on, and their elections (package consensus)
	//	spool     of a voter: files that entries of its log name
	//	state     files of images that joining members fetch
	//	position  of a reader or voter: up to which entry the directory has the log
	//	join      the data directory that a reader or voter is to have instead of its own
	//	replace   says that join is whole
	//	sums      checksums of files
	workDir = "group"

	// Dir is the name of workDir for others.
	Dir = workDir
)

// Position is a position in the history of a group: an entry of the log of one run of its writer.
type Position struct {
	Term  uint32 // grows with each promotion of a reader and each election; the first one is 1
	Run   uint32 // of the writer in the term, counted from 1
	Index uint64 // of the entry, counted from 1; 0: before all
}

// Compare is negative when p is before o.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Term, o.Term), cmp.Compare(p.Run, o.Run), cmp.Compare(p.Index, o.Index))
}

// SameLog reports whether both are of one log.
func (p Position) SameLog(o Position) bool { return p.Term == o.Term && p.Run == o.Run }

// String returns the form of headers: "1.2.345".
func (p Position) String() string { return fmt.Sprintf("%d.%d.%d", p.Term, p.Run, p.Index) }

// ParsePosition reads what String returns.
func ParsePosition(text string) (Position, error) {
	parts := strings.Split(text, ".")
	if len(parts) == 3 {
		term, err := strconv.ParseUint(parts[0], 10, 32)
		run, err2 := strconv.ParseUint(parts[1], 10, 32)
		index, err3 := strconv.ParseUint(parts[2], 10, 64)
		if err == nil && err2 == nil && err3 == nil {
			return Position{uint32(term), uint32(run), index}, nil
		}
	}
	return Position{}, fmt.Errorf("%q is not a position: write three numbers, such as 1.2.345", text)
}

// Role is what a member does.
type Role string

// The roles.
const (
	RoleWriter Role = "writer"
	RoleReader Role = "reader"
	RoleVoter  Role = "voter"
)

// Identity is what GROUP says of a member.
type Identity struct {
	Group  string `json:"group"`          // random; groups that are copies of each other have different ones
	Name   string `json:"name"`           // that of --group-name
	Member string `json:"member"`         // random
	Role   Role   `json:"role"`           //
	Term   uint32 `json:"term"`           // the highest one that the member has heard of
	Run    uint32 `json:"run,omitempty"`  // of a writer: the last one
	Fenced bool   `json:"over,omitempty"` // another member became the writer, in Term
	// Founds is set for a voter while it creates the group.
	Founds bool `json:"founds,omitempty"`
	// Rejoins is set for a voter with the data of a former member. They are replaced once it has joined a group.
	Rejoins bool `json:"rejoins,omitempty"`
	// Lapsed is set for a voter whose directory was replaced by an earlier copy: it no longer takes part in the group.
	Lapsed bool `json:"lapsed,omitempty"`
	// Recovers says of a voter that it becomes the only one of a new group, and may not be done: see Recover.
	Recovers bool `json:"recovers,omitempty"`
	// Successor is the member that became the writer, if this one had handed all changes over to it.
	Successor string `json:"successor,omitempty"`
	Promoted  bool   `json:"promoted,omitempty"` // of a writer: it was a reader before
	Voters    bool   `json:"voters,omitempty"`   // of a reader: it follows voters
	// Former are the addresses of former writers that this one has to notify of its term.
	Former []string `json:"former,omitempty"`
}

// identityVersion is the format version of GROUP, a sealed JSON object.
const identityVersion = 1

// ReadIdentity reads GROUP in a data directory. A missing one is an error that is fs.ErrNotExist.
func ReadIdentity(fsys vfs.FS, dir string) (*Identity, error) {
	b, err := sealedjson.Read(fsys, path.Join(dir, IdentityFile), identityVersion)
	if err != nil {
		return nil, err
	}
	id := new(Identity)
	if err := json.Unmarshal(b, id); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path.Join(dir, IdentityFile), err)
	}
	return id, nil
}

// write makes the identity what GROUP says, durably.
func (id *Identity) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", IdentityFile, err)
	}
	return sealedjson.Write(fsys, path.Join(dir, IdentityFile), identityVersion, b)
}

// newID returns a random id.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// identityOf reads GROUP, or returns nil if there is none.
func identityOf(fsys vfs.FS, dir string) (*Identity, error) {
	id, err := ReadIdentity(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return id, err
}

// RefusedError says why a member refuses another one. Retrying is useless until an operator changes something.
type RefusedError struct {
	Code    string // refusedKey and so on
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Codes of RefusedError.
const (
	refusedKey         = "key"         // the master keys differ
	refusedGroup       = "group"       // another group, or another name
	refusedFormat      = "format"      // one of them is too old for the other
	refusedRole        = "role"        // the member asked is not a writer
	refusedTerm        = "term"        // the member asked is no longer the writer
	refusedCertificate = "certificate" // one of them does not accept the certificate of the other
	refusedData        = "data"        // the directory holds data that is not of the group
	refusedClock       = "clock"       // the clocks differ
)
