package mapped

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

func TestProgramPages(t *testing.T) {
	const name = "/opt/a b/svc"
	for _, c := range []struct {
		line       string
		start, end uintptr
		ok         bool
	}{
		{"00400000-01a74000 r-xp 00001000 fe:00 9979366                            /opt/a b/svc\n", 0x400000, 0x1a74000, true},
		{"7f35a9477000-7f35a9619000 r--p 00000000 fe:00 9979366 /opt/a b/svc", 0x7f35a9477000, 0x7f35a9619000, true},
		{line: "03601000-05622000 rw-p 03201000 fe:00 9979366 /opt/a b/svc\n"},
		{line: "00400000-01a74000 r--s 00001000 fe:00 9979366 /opt/a b/svc\n"},
		{line: "00400000-01a74000 r-xp 00001000 fe:00 9979366 /opt/a b/svc (deleted)\n"},
		{line: "00400000-01a74000 r-xp 00001000 fe:00 9979366 /opt/a\n"},
		{line: "7f35f02dc000-7f35f033c000 r--p 00000000 00:00 0\n"},
		{line: "00400000 r-xp 00001000 fe:00 9979366 /opt/a b/svc\n"},
		{line: "xyz-01a74000 r-xp 00001000 fe:00 9979366 /opt/a b/svc\n"},
		{line: "01a74000-00400000 r-xp 00001000 fe:00 9979366 /opt/a b/svc\n"},
		{line: "\n"},
	} {
		start, end, ok := programPages([]byte(c.line), name)
		if ok != c.ok || ok && (start != c.start || end != c.end) {
			t.Errorf("%q: %#x to %#x, %v", c.line, start, end, ok)
		}
	}
}

func TestUnchanged(t *testing.T) {
	for line, want := range map[string]bool{"Anonymous:             0 kB\n": true, "Anonymous:             4 kB\n": false, "AnonHugePages:         0 kB\n": false, "Anonymous:\n": false, "\n": false} {
		if unchanged([]byte(line)) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}

// TestReleaseProgram counts the resident file pages before and after the release, and runs code of released pages again.
func TestReleaseProgram(t *testing.T) {
	before := residentOfFiles(t)
	ReleaseProgram()
	after := residentOfFiles(t)
	if after >= before {
		t.Errorf("%d KiB of files are resident, %d before", after, before)
	}
	t.Logf("%d KiB of files were resident, now %d", before, after)
}

func residentOfFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "RssFile:" {
			kib, err := strconv.Atoi(string(f[1]))
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Skip("the system does not report resident file pages")
	return 0
}
