package group

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Certificates are PEM files by which the members of a group authenticate each other, in addition to the master key. Each member has
// a certificate that is valid for servers and for clients, and accepts those of an authority. With the zero value, members
// authenticate by the master key alone.
type Certificates struct {
	Cert string // of this member, with the chain
	Key  string // of Cert
	CA   string // authorities of the certificates of the others
}

// credentials are the certificates of a member. Files are read again for each connection, as certificates are renewed.
type credentials struct {
	files Certificates
	log   *slog.Logger

	mu    sync.Mutex
	own   tls.Certificate
	trust *x509.CertPool // nil: certificates say nothing
}

// newCredentials reads the certificates, or generates one for this run if there are none. Then only proofs authenticate members.
func newCredentials(files Certificates, log *slog.Logger) (*credentials, error) {
	c := &credentials{files: files, log: log}
	var err error
	if files == (Certificates{}) {
		c.own, err = throwAway()
	} else {
		c.own, c.trust, err = files.read()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificates of the group: %w", err)
	}
	return c, nil
}

// read reads the files. The certificate and the key must belong together, and the CA file must have a
// certificate.
func (f *Certificates) read() (own tls.Certificate, trust *x509.CertPool, err error) {
	if own, err = tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return own, nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return own, nil, err
	}
	trust = x509.NewCertPool()
	if !trust.AppendCertsFromPEM(pem) {
		return own, nil, fmt.Errorf("%s has no certificate", f.CA)
	}
	return own, trust, nil
}

// current returns the certificates that are in the files now, or the previous ones if the files cannot be read.
func (c *credentials) current() (tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trust == nil {
		return c.own, nil
	}
	own, trust, err := c.files.read()
	if err != nil {
		c.log.Warn("cannot read the certificates of the group again; the previous ones stay in use", "error", err)
		return c.own, c.trust
	}
	c.own, c.trust = own, trust
	return own, trust
}

// server returns the configuration of a connection that was accepted.
func (c *credentials) server() *tls.Config {
	own, trust := c.current()
	t := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
	if trust != nil {
		t.ClientCAs, t.ClientAuth = trust, tls.RequireAndVerifyClientCert
	}
	return t
}

// client returns the configuration of a connection to an address.
func (c *credentials) client(addr string) *tls.Config {
	own, trust := c.current()
	if trust == nil {
		// The proof bound to the connection authenticates the peer.
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: trust, ServerName: host, MinVersion: tls.VersionTLS13}
}

// throwAway makes a certificate for this run of the program, which says nothing.
func throwAway() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// untrusted turns a TLS error that is caused by certificates into one that says what to do.
func (c *credentials) untrusted(err error) error {
	wrong, alert := new(tls.CertificateVerificationError), new(net.OpError)
	switch {
	case errors.As(err, &wrong):
		return &RefusedError{refusedCertificate, fmt.Sprintf("its certificate is not accepted here: %v. All members need a certificate of the authority in --group-tls-ca, or none of them has --group-tls options", wrong.Err)}
	case errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate"):
		own := "start this member with --group-tls-cert, --group-tls-key and --group-tls-ca"
		if c.files != (Certificates{}) {
			own = "check that its --group-tls-ca is the authority of " + c.files.Cert + ", and that this is a certificate for clients, too"
		}
		return &RefusedError{refusedCertificate, fmt.Sprintf("it does not accept the certificate of this member (%s): %s", strings.TrimPrefix(alert.Err.Error(), "tls: "), own)}
	}
	return err
}
