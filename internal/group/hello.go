package group

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A connection between members begins so, within TLS 1.3. Its certificates say nothing, unless there are Certificates:
//
//	→ frame: hello of who connects, and its proof
//	← frame: reply of who was connected to, and its proof
//
// A frame is a u16 length, as many bytes of JSON, and 32 bytes of proof: HMAC-SHA-256 over the side, the exporter of the TLS
// connection (RFC 9266), and the JSON of both frames so far. Its key is derived from the master key. A man in the middle cannot pass
// a proof on, because the exporter differs. The reply to a hello with another master key has no proof.
//
// HTTP/1.1 follows: that of the group, or that of the API (Purpose).

// protocol is the version of what members say to each other.
const protocol = 1

const (
	maxHello    = 4096 // bytes of the JSON
	proofBytes  = sha256.Size
	helloTime   = 10 * time.Second // for the whole beginning of a connection
	dialTime    = 5 * time.Second
	exporter    = "EXPORTER-svc-group"
	keyRounds   = 100_000 // of PBKDF2: who pretends to be a member may try master keys on a proof
	sideDialing = "dials"
	sideDialed  = "answers"
)

// Purpose says what a connection is for.
type purpose string

const (
	forGroup purpose = "group" // state, log and files
	forAPI   purpose = "api"   // requests of clients that a member forwards
	forVotes purpose = "votes" // what voters agree on
)

// hello is how a member introduces itself.
type hello struct {
	Protocol int     `json:"protocol"`
	Format   string  `json:"format"`  // of its data directory
	Version  string  `json:"version"` // of the program
	Group    string  `json:"group"`   // "": it belongs to none yet
	Name     string  `json:"name"`
	Member   string  `json:"member"`
	Role     Role    `json:"role"`
	Term     uint32  `json:"term"`
	Purpose  purpose `json:"purpose,omitempty"`
	// Of a voter: whether its directory has data although it is in no group, and the address of the leader that it knows.
	Data   bool   `json:"data,omitempty"`
	Leader string `json:"leader,omitempty"`
	Time   int64  `json:"time,omitempty"`  // of its clock, in milliseconds since 1970; 0: unknown
	Run    string `json:"run,omitempty"`   // of a voter: the process, by an id of its own
	Level  byte   `json:"level,omitempty"` // the newest level of entries that it reads; 0: the first one
}

// reply is the answer to a hello.
type reply struct {
	hello
	Refused string `json:"refused,omitempty"` // code of the reason; "": it is not
	Because string `json:"because,omitempty"`
	early   bool   // the other side may come again: this member is about to take part
}

// earlyError is the error of a refusal that ends by itself.
type earlyError struct{ *RefusedError }

func (e earlyError) Unwrap() error { return e.RefusedError }

// secret is what both sides of a connection prove to know.
type secret []byte

// newSecret derives the key of proofs from the master key.
func newSecret(masterKey string) (secret, error) {
	key, err := pbkdf2.Key(sha256.New, masterKey, []byte("svc group"), keyRounds, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot derive the key of the group: %w", err)
	}
	return key, nil
}

// prove returns the proof of one side of a connection.
func (s secret) prove(side string, binding []byte, frames ...[]byte) []byte {
	m := hmac.New(sha256.New, s)
	part := func(b []byte) {
		_, _ = m.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(b))))
		_, _ = m.Write(b)
	}
	part([]byte(side))
	part(binding)
	for _, f := range frames {
		part(f)
	}
	return m.Sum(nil)
}

// writeFrame writes a frame of the form above.
func writeFrame(w io.Writer, body, proof []byte) error {
	if len(body) > maxHello {
		return fmt.Errorf("a hello of %d bytes is longer than %d", len(body), maxHello)
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(body)))
	_, err := w.Write(append(append(b, body...), proof...))
	return err
}

// readFrame reads a frame, without judging its proof.
func readFrame(r io.Reader) (body, proof []byte, err error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, nil, err
	}
	n := int(binary.LittleEndian.Uint16(length[:]))
	if n > maxHello {
		return nil, nil, fmt.Errorf("a hello of %d bytes is longer than %d", n, maxHello)
	}
	b := make([]byte, n+proofBytes)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, nil, err
	}
	return b[:n], b[n:], nil
}

// binding returns what proofs of a connection are bound to.
func binding(c *tls.Conn) ([]byte, error) {
	state := c.ConnectionState()
	return state.ExportKeyingMaterial(exporter, nil, 32)
}

// greet begins an accepted connection. admit returns the reply to a hello.
func greet(ctx context.Context, raw net.Conn, config *tls.Config, key secret, admit func(*hello) *reply) (net.Conn, *hello, error) {
	if err := raw.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, nil, err
	}
	c := tls.Server(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	bound, err := binding(c)
	if err != nil {
		return nil, nil, err
	}
	theirs, proof, err := readFrame(c)
	if err != nil {
		return nil, nil, err
	}
	if !hmac.Equal(proof, key.prove(sideDialing, bound, theirs)) {
		own, err := json.Marshal(&reply{Refused: refusedKey})
		if err == nil {
			err = writeFrame(c, own, make([]byte, proofBytes))
		}
		return nil, nil, errors.Join(errKeys, err)
	}
	h := new(hello)
	if err := json.Unmarshal(theirs, h); err != nil {
		return nil, nil, fmt.Errorf("cannot read a hello: %w", err)
	}
	r := admit(h)
	own, err := json.Marshal(r)
	if err == nil {
		err = writeFrame(c, own, key.prove(sideDialed, bound, theirs, own))
	}
	if err == nil && r.Refused != "" {
		refusal := &RefusedError{r.Refused, r.Because}
		if err = refusal; r.early {
			err = earlyError{refusal}
		}
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	return c, h, err
}

var errKeys = errors.New("the other side has another master key")

// introduce starts the protocol on a connection to an address, and returns the hello of the other side.
func introduce(ctx context.Context, raw net.Conn, own *credentials, addr string, key secret, me *hello) (net.Conn, *hello, error) {
	if err := raw.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, nil, err
	}
	c := tls.Client(raw, own.client(addr))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, nil, own.untrusted(err)
	}
	bound, err := binding(c)
	if err != nil {
		return nil, nil, err
	}
	mine, err := json.Marshal(me)
	if err != nil {
		return nil, nil, err
	}
	unwritten := writeFrame(c, mine, key.prove(sideDialing, bound, mine))
	theirs, proof, err := readFrame(c) // even so: the other side says why it refuses the certificate
	if err != nil {
		return nil, nil, own.untrusted(errors.Join(err, unwritten))
	}
	if !hmac.Equal(proof, key.prove(sideDialed, bound, mine, theirs)) {
		return nil, nil, &RefusedError{refusedKey, "it has another master key. Start both with the same --master-key"}
	}
	r := new(reply)
	if err := json.Unmarshal(theirs, r); err != nil {
		return nil, nil, fmt.Errorf("cannot read an answer to a hello: %w", err)
	}
	if r.Refused != "" {
		return nil, &r.hello, &RefusedError{r.Refused, r.Because}
	}
	return c, &r.hello, c.SetDeadline(time.Time{})
}

// refuse makes a reply that refuses.
func (h *hello) refuse(code, because string, args ...any) *reply {
	return &reply{hello: *h, Refused: code, Because: fmt.Sprintf(because, args...)}
}

// compatible returns the reason why two members cannot be in one group, or nil if they can.
func (h *hello) compatible(other *hello) *reply {
	switch {
	case h.Protocol != other.Protocol:
		return h.refuse(refusedFormat, "svc %s speaks version %d of the protocol of groups, and svc %s version %d. Run the same svc on both", h.Version, h.Protocol, other.Version, other.Protocol)
	case h.Format != other.Format:
		return h.refuse(refusedFormat, "the data of svc %s has format version %s, and svc %s reads version %s. Run the same svc on both", h.Version, h.Format, other.Version, other.Format)
	case h.Name != other.Name:
		return h.refuse(refusedGroup, "it belongs to the group %q, and not to %q. Check --group-name and --group-join", h.Name, other.Name)
	case other.Group != "" && h.Group != other.Group:
		return h.refuse(refusedGroup, "it belongs to another group with the name %q. To join that group, start a reader with an empty data directory", h.Name)
	}
	return nil
}
