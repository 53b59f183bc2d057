package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", sec1)
}

func TestHTTPS(t *testing.T) {
	cert, key := certificate(t)
	clientCert, clientKey := certificate(t)
	// OCSPResponse (RFC 6960, 4.2.1): successful, with an empty sequence as the bytes that clients check.
	staple := []byte{0x30, 0x07, 0x0a, 0x01, 0x00, 0xa0, 0x02, 0x30, 0x00}
	ocsp := filepath.Join(t.TempDir(), "ocsp.der")
	if err := os.WriteFile(ocsp, staple, 0o600); err != nil {
		t.Fatal(err)
	}
	in := start(t, filepath.Join(t.TempDir(), "data"),
		"--ssl-cert-path", cert, "--ssl-key-path", key, "--ssl-auth-path", clientCert, "--ssl-require-auth", "--ssl-ocsp-path", ocsp)
	if !strings.Contains(in.log.String(), "https://") {
		t.Errorf("the start message does not say https: %s", in.log)
	}
	b, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b)
	pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(in.url, "http:", "https:", 1) + "/health"
	for _, certs := range [][]tls.Certificate{{pair}, nil} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certs}}
		res, err := (&http.Client{Transport: transport}).Get(url)
		if (err == nil) != (certs != nil) {
			t.Errorf("with %d client certificates: %v", len(certs), err)
		}
		if err == nil {
			res.Body.Close()
			if res.StatusCode != 200 || !bytes.Equal(res.TLS.OCSPResponse, staple) {
				t.Errorf("status %d, stapled %x", res.StatusCode, res.TLS.OCSPResponse)
			}
		}
		transport.CloseIdleConnections()
	}
	res, err := http.Get(in.url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if told, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 400 || !strings.Contains(string(told), "This address serves HTTPS") || !strings.Contains(string(told), `"bad_request"`) {
		t.Errorf("by HTTP: %d %s, %v", res.StatusCode, told, err)
	}
	if err := in.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestBadTLSOptions(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	for name, o := range map[string]tlsOptions{
		"no key":             {CertPath: cert},
		"no certificate":     {KeyPath: key},
		"only an authority":  {AuthPath: cert},
		"another's key":      {CertPath: other, KeyPath: key},
		"no such file":       {CertPath: cert + "x", KeyPath: key},
		"no authority":       {CertPath: cert, KeyPath: key, RequireAuth: true},
		"authority is a key": {CertPath: cert, KeyPath: key, AuthPath: key},
		"no OCSP response":   {CertPath: cert, KeyPath: key, OCSPPath: cert + "x"},
		"OCSP of another":    {CertPath: cert, KeyPath: key, OCSPPath: cert},
	} {
		err := o.validate()
		if err == nil {
			_, err = o.config()
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if c, err := (&tlsOptions{}).config(); c != nil || err != nil {
		t.Errorf("no options: %v %v", c, err)
	}
}
