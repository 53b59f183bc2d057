package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this program delay the syncs of another one, like main.
func TestMain(m *testing.M) {
	if ok, err := delaysSyncs(os.Args[1:]); ok {
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "--sync-times" {
		all, err := syncTimes(os.Args[2])
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(all)
		}
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSyncsAreDelayed checks that each sync takes at least its delay.
func TestSyncsAreDelayed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("syncs can be delayed only on Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const delay = 5 * time.Millisecond
	command, err := delaying(delay)
	if err != nil {
		t.Fatal(err)
	}
	var times, failure bytes.Buffer
	program := exec.CommandContext(ctx, command[0], append(command[1:], self, "--sync-times", t.TempDir())...)
	program.Stdout, program.Stderr = &times, &failure
	if err := program.Run(); err != nil {
		refusals := []syscall.Errno{syscall.ENOSYS, syscall.EPERM, syscall.EACCES}
		// A kernel without notifications, such as one before Linux 5.0 or of a sandbox, reports their flag as invalid. It lists the
		// actions that it has. Elsewhere EINVAL means that the filter is wrong.
		if known, _ := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail"); !slices.Contains(strings.Fields(string(known)), "user_notif") {
			refusals = append(refusals, syscall.EINVAL)
		}
		for _, refusal := range refusals {
			if strings.Contains(failure.String(), "cannot install the seccomp filter: "+refusal.Error()) {
				t.Skipf("the kernel cannot notify of syncs here: %v", refusal)
			}
		}
		t.Fatalf("%v\n%s", err, &failure)
	}
	var all latencies
	if err := json.Unmarshal(times.Bytes(), &all); err != nil || len(all) != 100 {
		t.Fatalf("%d syncs, %v", len(all), err)
	}
	if shortest := slices.Min(all); shortest < delay {
		t.Errorf("a sync took %v, want at least %v", shortest, delay)
	}
	for _, args := range [][]string{{delaySyncs, "soon"}, {delaySyncs, "1ms"}, {delaySyncs, "1ms", t.TempDir()}} {
		if err := exec.CommandContext(ctx, self, args...).Run(); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
