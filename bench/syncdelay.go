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
)

// Directories in memory and syncs that take longer stand in for disks of their own: each server waits for its syncs alone, and those of
// one server wait beside each other, as at a disk with a deep queue. Bandwidth, and syncs that take longer because others run, are not
// part of that.

// delaying returns the program that has each sync of what it runs take longer. It is not the parent of that, so signals reach the server.
func delaying(d time.Duration) ([]string, error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return nil, fmt.Errorf("--sync-delay needs strace: %w", err)
	}
	const calls = "fsync,fdatasync"
	command := []string{strace, "-D", "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=" + calls}
	if d > 0 {
		command = append(command, "-e", fmt.Sprintf("inject=%s:delay_exit=%d", calls, d.Microseconds()))
	}
	return command, nil
}

// syncs is how long a sync takes.
type syncs struct {
	plain, traced, delayed latencies // of the directory, under strace, and under strace with the delay
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
		delay time.Duration // negative: without strace
	}{{&f.plain, -1}, {&f.traced, 0}, {&f.delayed, d}} {
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
		return nil, fmt.Errorf("strace does not delay syncs: one takes %.2f ms", got)
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

// sentence says what was measured.
func (f *syncs) sentence(d time.Duration) string {
	return fmt.Sprintf("Each sync of a server takes %v more than it does in its directory, by strace: the sync of 1 KiB takes %.2f ms there (median), %.2f ms under strace and %.2f ms with the delay. "+
		"The syncs of one server do not wait for each other.", d, f.plain.quantile(.5), f.traced.quantile(.5), f.delayed.quantile(.5))
}
