package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"os"
)

// tlsOptions are the options of HTTPS. Files are PEM, except the OCSP response, which is DER.
type tlsOptions struct {
	CertPath    string `name:"ssl-cert-path" placeholder:"FILE" help:"Certificate chain. With --ssl-key-path, svc serves HTTPS instead of HTTP."`
	KeyPath     string `name:"ssl-key-path" placeholder:"FILE" help:"Private key of the certificate (PKCS#8, PKCS#1 or SEC1)."`
	AuthPath    string `name:"ssl-auth-path" placeholder:"FILE" help:"Authorities whose client certificates are accepted."`
	RequireAuth bool   `name:"ssl-require-auth" help:"Refuse clients without a certificate."`
	OCSPPath    string `name:"ssl-ocsp-path" placeholder:"FILE" help:"OCSP response to staple to the certificate."`
	Resumption  bool   `name:"ssl-resumption" help:"Let clients resume sessions."`
	Tickets     bool   `name:"ssl-tickets" help:"Let clients resume sessions by tickets."`
}

func (o *tlsOptions) validate() error {
	switch {
	case o.CertPath == "" && o.KeyPath == "" && *o != (tlsOptions{}):
		return errors.New("the --ssl options need --ssl-cert-path and --ssl-key-path")
	case (o.CertPath == "") != (o.KeyPath == ""):
		return errors.New("--ssl-cert-path and --ssl-key-path must be set together")
	case o.RequireAuth && o.AuthPath == "":
		return errors.New("--ssl-require-auth needs --ssl-auth-path, the authorities of client certificates")
	}
	return nil
}

// config returns the configuration of HTTPS, or nil for HTTP. The options are valid.
func (o *tlsOptions) config() (*tls.Config, error) {
	if o.CertPath == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.CertPath, o.KeyPath)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate %s: %w", o.CertPath, err)
	}
	if o.OCSPPath != "" {
		if cert.OCSPStaple, err = os.ReadFile(o.OCSPPath); err != nil {
			return nil, fmt.Errorf("cannot use the OCSP response: %w", err)
		}
		// OCSPResponse of RFC 6960, 4.2.1: what clients think of the rest is theirs to say.
		var response struct {
			Status asn1.Enumerated
			Bytes  asn1.RawValue `asn1:"explicit,tag:0"`
		}
		if rest, err := asn1.Unmarshal(cert.OCSPStaple, &response); err != nil || len(rest) > 0 || response.Status != 0 {
			return nil, fmt.Errorf("cannot use the OCSP response: %s holds no successful one in DER", o.OCSPPath)
		}
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{cert},
		NextProtos:   []string{"http/1.1"},
		// Go resumes sessions by tickets alone; either option asks for that.
		SessionTicketsDisabled: !o.Resumption && !o.Tickets,
	}
	if o.AuthPath != "" {
		pem, err := os.ReadFile(o.AuthPath)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client authorities: %w", err)
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use the client authorities: %s holds no certificate", o.AuthPath)
		}
		c.ClientAuth = tls.VerifyClientCertIfGiven
		if o.RequireAuth {
			c.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return c, nil
}
