package group

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

// authority is a certificate authority.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	a.key = a.make("ca", a.cert, a.cert)
	return a
}

// make creates a certificate and writes it and its key.
func (a *authority) make(name string, c, by *x509.Certificate) *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", private)
	return key
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// member creates a certificate of a member at 127.0.0.1, modified by change.
func (a *authority) member(change func(*x509.Certificate)) Certificates {
	a.t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(c)
	}
	a.make("member", c, a.cert)
	return Certificates{filepath.Join(a.dir, "member.pem"), filepath.Join(a.dir, "member.key"), filepath.Join(a.dir, "ca.pem")}
}

// copyTo copies the files of certificates over those of another set.
func (f Certificates) copyTo(t *testing.T, to Certificates) {
	t.Helper()
	for from, to := range map[string]string{f.Cert: to.Cert, f.Key: to.Key, f.CA: to.CA} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificates checks that members with wrong certificates get one clear error, and that the writer keeps serving the others.
func TestCertificates(t *testing.T) {
	t.Parallel()
	house, other := newAuthority(t), newAuthority(t)
	good := Certificates{filepath.Join(house.dir, "good.pem"), filepath.Join(house.dir, "good.key"), filepath.Join(house.dir, "goodca.pem")}
	house.member(nil).copyTo(t, good)
	foreign := other.member(nil)
	secure := newHost(t, func(o *WriterOptions) { o.TLS = good })
	secure.add("a", 1)
	plain := newHost(t, nil)
	elsewhere := newHost(t, func(o *WriterOptions) {
		o.TLS = Certificates{filepath.Join(house.dir, "far.pem"), filepath.Join(house.dir, "far.key"), filepath.Join(house.dir, "farca.pem")}
		house.member(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 99)} }).copyTo(t, o.TLS)
	})
	for name, tt := range map[string]struct {
		to   *host
		tls  func() Certificates
		want string
	}{
		"of another authority":     {secure, func() Certificates { return Certificates{foreign.Cert, foreign.Key, good.CA} }, "does not accept the certificate of this member"},
		"trusts another authority": {secure, func() Certificates { return Certificates{good.Cert, good.Key, foreign.CA} }, "its certificate is not accepted here: x509: certificate signed by unknown authority"},
		"none":                     {secure, func() Certificates { return Certificates{} }, "start this member with --group-tls-cert"},
		"for servers alone": {secure, func() Certificates {
			return house.member(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })
		}, "a certificate for clients"},
		"expired": {secure, func() Certificates {
			return house.member(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
		}, "does not accept the certificate of this member"},
		"the writer has none":             {plain, func() Certificates { return good }, "its certificate is not accepted here"},
		"the writer's is of another host": {elsewhere, func() Certificates { return good }, "127.0.0.99"},
	} {
		o := ReaderOptions{FS: unsyncedFS{vfs.OS}, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Join: []string{tt.to.addr}, MasterKey: testKey, TLS: tt.tls(), Format: testFormat, Version: "1", Logger: slog.New(slog.DiscardHandler)}
		r, err := OpenReader(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err = r.Join(ctx)
		cancel()
		refused := new(RefusedError)
		if !errors.As(err, &refused) || refused.Code != refusedCertificate || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	f := newFollower(t, secure, func(o *ReaderOptions) { o.TLS = good })
	f.reach(secure)
	f.same(secure)

	// Replace the certificates by those of another authority. Existing connections end.
	foreign.copyTo(t, good)
	f.r.client.close()
	secure.add("a", 2)
	f.reach(secure)
	if err := os.WriteFile(good.Key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.r.client.close()
	secure.add("a", 3)
	f.reach(secure)
	f.same(secure)
}

func TestBadCertificates(t *testing.T) {
	t.Parallel()
	house := newAuthority(t)
	c := house.member(nil)
	for want, change := range map[string]func(*Certificates){
		"no.pem":             func(c *Certificates) { c.Cert = filepath.Join(house.dir, "no.pem") },
		"private key":        func(c *Certificates) { c.Key = filepath.Join(house.dir, "ca.key") },
		"has no certificate": func(c *Certificates) { c.CA = c.Key },
	} {
		bad := c
		change(&bad)
		o := ReaderOptions{FS: vfs.OS, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", Join: []string{"127.0.0.1:1"}, MasterKey: testKey, TLS: bad, Logger: slog.New(slog.DiscardHandler)}
		if _, err := OpenReader(o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "certificates of the group") {
			t.Errorf("%v, want %q", err, want)
		}
		w := WriterOptions{FS: vfs.OS, Dir: filepath.ToSlash(t.TempDir()), Name: "shop", MasterKey: testKey, TLS: bad, Logger: slog.New(slog.DiscardHandler)}
		if _, err := OpenWriter(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
