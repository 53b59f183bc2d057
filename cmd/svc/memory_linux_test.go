package main

import (
	"testing"
	"testing/fstest"
)

// TestGroupMemory checks that the smallest limit counts, of the own control group and its parents, in both versions.
func TestGroupMemory(t *testing.T) {
	const total = 1000
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups":                 {nil, total},
		"no limit":                  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, total},
		"more than the machine has": {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, total},
		"a container of version 2":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "500\n"}, 500},
		"a container of version 1":  {map[string]string{"proc/self/cgroup": "4:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "400\n"}, 400},
		"a service": {map[string]string{"proc/self/cgroup": "0::/system.slice/svc.service\n",
			"sys/fs/cgroup/system.slice/memory.max": "max\n", "sys/fs/cgroup/system.slice/svc.service/memory.max": "300\n"}, 300},
		"a slice below its service": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "200\n", "sys/fs/cgroup/a/b/memory.max": "300\n"}, 200},
		"version 1 beside others": {map[string]string{"proc/self/cgroup": "8:pids:/p\n4:cpu,memory:/m\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "100\n",
			"sys/fs/cgroup/memory/p/memory.limit_in_bytes": "1\n"}, 100},
		"out of a namespace": {map[string]string{"proc/self/cgroup": "0::/../../other/m\n", "sys/fs/cgroup/memory.max": "600\n", "sys/fs/cgroup/other/m/memory.max": "1\n"}, 600},
		"the parent of one":  {map[string]string{"proc/self/cgroup": "0::/..\n", "sys/fs/cgroup/memory.max": "700\n"}, 700},
		"dots in a name":     {map[string]string{"proc/self/cgroup": "0::/..m\n", "sys/fs/cgroup/..m/memory.max": "70\n"}, 70},
		"damaged":            {map[string]string{"proc/self/cgroup": "memory\n:\n4:memory:../..\n", "sys/fs/cgroup/memory.max": "-5\n"}, total},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := groupMemory(root, total); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
