package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"svc/bench/syncdelay"
)

// Directories in memory and delayed syncs simulate a disk per server: each server waits only for its own syncs, and the syncs of one
// server wait concurrently, as on a disk with a deep queue. This does not simulate bandwidth, or syncs that slow each other down.

// First arguments of this program when it runs another one, or supervises that. A time follows, and then the program with its arguments.
const (
	delaySyncs     = "delay-syncs"
	superviseSyncs = "supervise-syncs"
)

// delaysSyncs does what arguments of this program say about syncs. ok is false if they say nothing.
func delaysSyncs(args []string) (ok bool, err error) {
	if len(args) < 2 || args[0] != delaySyncs && args[0] != superviseSyncs {
		return false, nil
	}
	d, err := time.ParseDuration(args[1])
	switch {
	case err != nil:
		return true, err
	case args[0] == superviseSyncs:
		return true, syncdelay.Supervise(d)
	case len(args) < 3:
		return true, errors.New("delay-syncs needs a program to run after the time")
	}
	self, err := os.Executable()
	if err != nil {
		return true, fmt.Errorf("cannot find this program: %w", err)
	}
	return true, syncdelay.Run(exec.Command(self, superviseSyncs, args[1]), args[2], args[3:])
}

// delaying returns a command that delays each sync of the program it runs. The program replaces the command, so signals reach the
// server.
func delaying(d time.Duration) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	return []string{self, delaySyncs, d.String()}, nil
}

// syncs is how long a sync takes.
type syncs struct {
	plain, supervised, delayed latencies // of the directory, supervised without a delay, and with it
}

// measureSyncs measures syncs in a directory, with and without a delay.
func measureSyncs(ctx context.Context, dir string, d time.Duration) (*syncs, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	f := new(syncs)
	for _, run := range []struct {
		of    *latencies
		delay time.Duration // negative: without a supervisor
	}{{&f.plain, -1}, {&f.supervised, 0}, {&f.delayed, d}} {
		var command []string
		if run.delay >= 0 {
			if command, err = delaying(run.delay); err != nil {
				return nil, err
			}
		}
		command = append(command, self, "--sync-times", dir)
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err == nil {
			err = json.Unmarshal(out, run.of)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot measure syncs in %s: %w", dir, err)
		}
	}
	if got := f.delayed.quantile(.5); got < milliseconds(d) {
		return nil, fmt.Errorf("syncs are not delayed: one takes %.2f ms", got)
	}
	return f, nil
}

// syncTimes syncs a file in a directory again and again.
func syncTimes(dir string) (all latencies, err error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := bytes.Repeat([]byte{'x'}, 1<<10)
	for range 100 {
		if _, err := f.Write(block); err != nil {
			return nil, fmt.Errorf("cannot write a file: %w", err)
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return nil, fmt.Errorf("cannot sync a file: %w", err)
		}
		all = append(all, time.Since(began))
	}
	return all, nil
}

// sentence describes the measurement.
func (f *syncs) sentence(d time.Duration) string {
	return fmt.Sprintf("Each sync of a server starts %v later, by a supervisor that the kernel asks (seccomp): the sync of 1 KiB takes %.2f ms in its directory (median), %.2f ms with a supervisor that does not wait, and %.2f ms with the delay. "+
		"The syncs of one server do not wait for each other.", d, f.plain.quantile(.5), f.supervised.quantile(.5), f.delayed.quantile(.5))
}
