package mapped

import (
	"math"
	"sync/atomic"
)

// When a page of a mapping is not in memory, the system also reads its surroundings, as much as the read-ahead of the disk: 128 KiB,
// on some machines 8 MiB. If all files fit into memory, this warms it quickly. If they do not, unneeded pages displace those that
// searches use. Then the mapped files are crowded, and parts that are read at scattered places (see Scatter) are read page by page.
// So are those of a cold file, whose pages are not in memory yet: searches would wait for the surroundings of each page, and for
// those of other searches' pages. A caller that reads several pages requests them first with WillNeed.

// Files become crowded above crowdedShare of the memory, and stay so until they fall to roomyShare. So the files of a merge, which
// come and go, do not toggle the state. The rest of the memory is for files that are being written, and for the program's code.
const (
	crowdedShare = 3.0 / 4
	roomyShare   = 2.0 / 3

	// Each scattered part splits a mapping in three, so a file may take a dozen of the mappings that the system allows. Files do not
	// count as crowded while more than a manyFiles-th of mostMappings are mapped, and until half of that are.
	manyFiles = 16
)

var (
	memory  atomic.Int64 // that files are to fit into
	crowded atomic.Bool  // changes while mappings is locked
	cold    atomic.Int64 // files, as SetCold said; changes while mappings is locked
)

func init() { memory.Store(math.MaxInt64) }

// FitIn sets the memory in bytes for the mapped files and the program's allocations together. Without a call, all files fit.
func FitIn(bytes int64) {
	memory.Store(bytes)
	mappings.Lock()
	defer mappings.Unlock()
	crowd()
}

// Crowded reports whether the mapped files do not fit into memory.
func Crowded() bool { return crowded.Load() }

// PageByPage reports whether pages that are missing in scattered parts are read alone, at least in one file.
func PageByPage() bool { return crowded.Load() || cold.Load() > 0 }

// mostCold is how many files are cold at the same time, as advice splits their mappings.
const mostCold = 64

// SetCold says whether the file is cold: call it when a file is found to be out of memory, and again when it has been read, or will
// not be. It returns whether the file is cold now. While files are crowded, or many are cold already, none becomes cold.
func (f *File) SetCold(now bool) bool {
	mappings.Lock()
	defer mappings.Unlock()
	if _, ok := mappings.files[f]; !ok || f.cold == now || now && (crowded.Load() || cold.Load() >= mostCold) {
		return f.cold
	}
	f.setCold(now)
	if !crowded.Load() {
		f.adviseScattered()
	}
	return now
}

// setCold notes whether the file is cold, which it was not, or was. mappings is locked.
func (f *File) setCold(now bool) {
	f.cold = now
	if now {
		cold.Add(1)
	} else {
		cold.Add(-1)
	}
}

// crowd sets crowded, and gives all files the advice for it. mappings is locked.
func crowd() {
	share, files := crowdedShare, mostMappings()/manyFiles/2
	if crowded.Load() {
		share, files = roomyShare, 2*files
	}
	now := float64(mappedBytes.Load()) > share*float64(memory.Load()) && mappedFiles.Load() <= files
	if crowded.Swap(now) == now {
		return
	}
	for f := range mappings.files {
		f.adviseScattered()
	}
}

// Part is a part of a file.
type Part struct{ At, Length int64 }

// Scatter sets the parts of the file that are read at scattered places. It replaces the previous parts. They ascend.
func (f *File) Scatter(parts []Part) {
	mappings.Lock()
	defer mappings.Unlock()
	if _, ok := mappings.files[f]; !ok { // it is closed, or no mapping
		return
	}
	f.scattered = parts
	if crowded.Load() || f.cold {
		f.adviseScattered()
	}
}

// adviseScattered advises the system about the parts that are read at scattered places. mappings is locked.
func (f *File) adviseScattered() {
	advice := Normal
	if crowded.Load() || f.cold {
		advice = Random
	}
	for _, p := range f.scattered {
		f.Advise(p.At, p.Length, advice)
	}
}
