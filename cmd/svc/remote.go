package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"svc/internal/client"
)

// remoteOptions say which running server a command speaks to.
type remoteOptions struct {
	URL string `name:"url" placeholder:"URL" help:"Address of the server (default: the address in this environment and configuration file)."`
	Key string `name:"key" placeholder:"KEY" help:"API key (default: SVC_API_KEY, or the master key in this environment and configuration file)."`
}

// keyVariable is the key for commands that speak to a server: a command line can be seen by others.
const keyVariable = "SVC_API_KEY"

// connect returns a client of the server. Nothing is sent yet.
func (o *remoteOptions) connect(p program) (*client.Client, error) {
	address, key, own := o.URL, o.Key, false
	if key == "" {
		key, _ = p.getenv(keyVariable)
	}
	if address == "" {
		ctx, err := p.parse([]string{serveName})
		if err != nil {
			return nil, err
		}
		server := serverOptions(ctx)
		if address, err = server.ownURL(); err != nil {
			return nil, err
		}
		if own = true; key == "" {
			key = server.MasterKey
		}
	}
	c, err := client.New(address, key, own)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	said := "" // a reason is printed once, not once per retry
	c.Waiting = func(reason error, _ time.Duration) {
		if text := reason.Error(); text != said {
			said = text
			fmt.Fprintf(p.err, "retrying: %s\n", text)
		}
	}
	return c, nil
}

// untilStopped is a context that ends with a signal.
func untilStopped() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// printJSON prints a value, indented.
func printJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", b)
	}
	return err
}
