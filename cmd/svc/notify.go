package main

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// notify tells the supervisor that started the program how it stands, where NOTIFY_SOCKET names a socket of one: systemd does
// for units of Type=notify (https://www.freedesktop.org/software/systemd/man/sd_notify.html). state is one or several lines of
// "READY=1", "STOPPING=1" and such.
func (p program) notify(state string) error {
	name, ok := p.getenv("NOTIFY_SOCKET")
	if !ok || name == "" {
		return nil
	}
	if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "@") { // "@": an abstract socket, which package net knows
		return fmt.Errorf("NOTIFY_SOCKET is %q: svc supports only Unix sockets", name)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot notify the supervisor %q: %w", state, err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("cannot notify the supervisor %q: %w", state, err)
	}
	return nil
}

// tell notifies the supervisor. That it hears nothing is no reason not to serve.
func (p program) tell(log *slog.Logger, state string) {
	if err := p.notify(state); err != nil {
		log.Warn("the supervisor was not notified", "error", err)
	}
}
