package main

import (
	"runtime/debug"
	"time"

	"svc/fastapi"
)

// apiVersion is the version of the API that svc speaks, as clients know it.
const apiVersion = "1.42.1"

// buildVersion tells which commit the program was built from.
func buildVersion() fastapi.Version {
	v := fastapi.Version{Commit: "unknown", Date: "unknown", Package: apiVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				v.Date = t.UTC().Format("2006-01-02T15:04:05.000000000Z")
			}
		}
	}
	return v
}
