package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"svc/internal/apierr"
)

// advised returns the message of an error that ends the program. If the machine caused the error, the message ends with what to do.
func advised(err error) string {
	message := err.Error()
	switch e := apierr.From(err); {
	case errors.Is(err, fs.ErrPermission):
		if advice := permissionAdvice(pathOf(err)); advice != "" {
			message += ". " + advice
		}
	case e.HasCause():
		message += ". " + e.Message
	}
	return message
}

// pathOf returns the path whose access failed; "": the error names none.
func pathOf(err error) string {
	var one *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &one):
		return one.Path
	case errors.As(err, &two):
		return two.New
	}
	return ""
}

// deniedAt returns the file or directory that denies access to a path: the lowest one on the way to it that can be looked at. "": none.
func deniedAt(path string) (string, fs.FileInfo) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil
	}
	for {
		info, err := os.Stat(path)
		if err == nil {
			return path, info
		}
		above := filepath.Dir(path)
		if above == path {
			return "", nil
		}
		path = above
	}
}

// listenError says why svc cannot listen on the address that an option gives, and what to do.
func listenError(option, address string, err error) error {
	host, port, bad := net.SplitHostPort(address)
	n, noNumber := strconv.Atoi(port)
	var lookup *net.DNSError
	switch {
	case bad != nil:
		return fmt.Errorf("%s must be a host and a port, such as localhost:7700 or 0.0.0.0:7700, got %q", option, address)
	case noNumber == nil && (n < 0 || n > 65535):
		return fmt.Errorf("the port of %s must be between 0 and 65535, got %q", option, address)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program listens there. Stop it, or choose another address with %s", address, option)
	case errors.Is(err, syscall.EACCES) && n > 0 && n < 1024:
		return fmt.Errorf("cannot listen on %s: ports below 1024 need a privilege. Choose a higher port with %s, or give svc the capability CAP_NET_BIND_SERVICE", address, option)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("cannot listen on %s: this machine has no such address. Choose one of its addresses with %s, or 0.0.0.0 for all", address, option)
	case errors.As(err, &lookup):
		return fmt.Errorf("cannot listen on %s: the host %q has no address. Choose another address with %s", address, host, option)
	}
	return fmt.Errorf("cannot listen on %s: %w. Choose another address with %s", address, err, option)
}
