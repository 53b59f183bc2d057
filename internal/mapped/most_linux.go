package mapped

import (
	"bytes"
	"os"
	"strconv"
	"sync"
)

// mostMappings is from how many mappings on small files are read. The runtime ends the process when it is refused a mapping for its heap,
// so a quarter of those that the kernel grants is left to it, and to large files.
var mostMappings = sync.OnceValue(func() int64 {
	const usual = 65530
	b, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return usual / 4 * 3
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		n = usual
	}
	return n / 4 * 3
})
