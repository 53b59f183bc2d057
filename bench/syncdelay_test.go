package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestMain lets this program delay the syncs of another one, as main does.
func TestMain(m *testing.M) {
	if ok, err := delaysSyncs(os.Args[1:]); ok {
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "--sync-times" {
		if _, err := syncTimes(os.Args[2]); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSyncsAreDelayed: a program takes as long as the delays of its syncs, at least.
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
	command, err := delaying(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, command[0], append(command[1:], self, "--sync-times", t.TempDir())...).CombinedOutput(); err != nil {
		t.Skipf("the kernel does not tell of syncs here: %v\n%s", err, out)
	}
	if took := time.Since(began); took < 100*time.Millisecond { // 100 syncs
		t.Errorf("100 syncs took %v", took)
	}
	for _, args := range [][]string{{delaySyncs, "soon"}, {delaySyncs, "1ms"}, {delaySyncs, "1ms", t.TempDir()}} {
		if err := exec.CommandContext(ctx, self, args...).Run(); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
