package main

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// notify reports the state of the program to the supervisor that started it, if NOTIFY_SOCKET names its socket: systemd sets it for
// units of Type=notify (https://www.freedesktop.org/software/systemd/man/sd_notify.html). state is one or several lines such as
// "READY=1" and "STOPPING=1".
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

// tell notifies the supervisor. A failure is only logged.
func (p program) tell(log *slog.Logger, state string) {
	if err := p.notify(state); err != nil {
		log.Warn("the supervisor was not notified", "error", err)
	}
}
