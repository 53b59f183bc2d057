package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// healthCommand asks a running server for GET /health. Supervisors of containers that have no shell and no curl run it.
type healthCommand struct {
	URL string `name:"url" placeholder:"URL" help:"Address of the server (default: the address in this environment and configuration file)."`
}

// healthTime is how long the server may take to answer.
const healthTime = 5 * time.Second

// Run fails when the server does not answer that it is available.
func (c *healthCommand) Run(p program) error {
	address, own := c.URL, false
	if address == "" {
		ctx, err := p.parse([]string{serveName})
		if err != nil {
			return err
		}
		if address, err = serverOptions(ctx).ownURL(); err != nil {
			return err
		}
		own = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	if err := askHealth(ctx, address, own); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.out, "available")
	return err
}

// askHealth sends a health request to the server at a URL. own says that it is this machine's server, requested by its address. The
// certificate of such a server may only have its host name.
func askHealth(ctx context.Context, address string, own bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--url must be an absolute URL, such as http://localhost:7700")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("health").String(), nil)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: own}, DisableKeepAlives: true}, // and no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server at %s answered %s", u.Host, response.Status)
	}
	return nil
}

// ownURL is where programs of the same machine reach a server with these options.
func (o *options) ownURL() (string, error) {
	host, port, err := net.SplitHostPort(o.HTTPAddr)
	if err != nil {
		return "", fmt.Errorf("--http-addr: %w", err)
	}
	switch host { // every address of the machine: there may be no name for it
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	scheme := "http"
	if o.TLS.CertPath != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}
