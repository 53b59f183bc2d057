package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"svc/fastapi"
	"svc/internal/group"
	"svc/internal/publish"
	"svc/internal/vfs"
)

// reads reports whether the server follows another one: the writer of its group, or a publication.
func (o *options) reads() bool { return o.Group.reads() || o.Publish.Follow != "" }

// upstream is what a server that reads follows.
type upstream struct {
	reader    *group.Reader
	forwarder *fastapi.Forwarder
	opened
}

// openUpstream opens the group of a reader, or the publication that it follows. The data directory is locked.
func (o *options) openUpstream(log *slog.Logger) (_ *upstream, err error) {
	u := &upstream{}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.Close())
		}
	}()
	settings := group.ReaderOptions{FS: vfs.OS, Dir: o.DBPath, Name: o.Group.Name, Join: o.Group.Join, MasterKey: o.MasterKey, TLS: o.Group.certificates(), Format: formatVersion, Version: svcVersion, Logger: log}
	if o.Publish.Follow != "" {
		transport := o.AllowedNetworks.Transport()
		u.add("the connections to the bucket", closerFunc(transport.CloseIdleConnections))
		store, err := o.Publish.store(o.Publish.Follow, transport)
		if err != nil {
			return nil, err
		}
		settings.From = publish.NewFollower(publish.FollowOptions{Store: store, MasterKey: o.MasterKey, Interval: o.Publish.Interval, Logger: log})
	}
	if u.reader, err = group.OpenReader(settings); err != nil {
		return nil, err
	}
	u.add("the group", u.reader)
	switch {
	case o.Publish.Follow == "":
		u.forwarder = fastapi.NewForwarder(u.reader.DialAPI)
	case o.Publish.Writer == "":
		u.forwarder = fastapi.NewRefuser()
	default:
		w, err := o.Publish.writer()
		if err != nil {
			return nil, err
		}
		u.forwarder = fastapi.NewForwarderTo(w.Host, dialerTo(w))
	}
	u.add("the connections to the writer", u.forwarder)
	return u, nil
}

// what describes the followed server or publication, for the log.
func (u *upstream) what(o *options) string {
	if o.Group.Name != "" {
		return "the group " + o.Group.Name
	}
	return u.reader.Status().Reader.Writer
}

// writer returns the URL of the server that publishes; nil when it is not known.
func (o *publishOptions) writer() (*url.URL, error) {
	if o.Writer == "" {
		return nil, nil
	}
	u, err := url.Parse(o.Writer)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("use the URL of a server, such as http://10.0.0.1:7700")
	}
	return u, nil
}

// dialerTo returns what connects to the host of a URL.
func dialerTo(u *url.URL) func(ctx context.Context) (net.Conn, error) {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	address := net.JoinHostPort(u.Hostname(), port)
	if u.Scheme == "https" {
		return func(ctx context.Context) (net.Conn, error) { return new(tls.Dialer).DialContext(ctx, "tcp", address) }
	}
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
}
