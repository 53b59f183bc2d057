package main

import (
	"fmt"
	"runtime/debug"
	"time"

	"svc/fastapi"
)

// svcVersion is the version of the program, and apiVersion that of the API, as clients know it.
const (
	svcVersion = "0.2.0"
	apiVersion = "1.42.1"

	// newestVersion is the version of the API with --api-version 1.54.
	newestVersion = "1.54.0"
)

// commit and commitDate (RFC 3339) are set by the linker where the go command does not look at the repository.
var commit, commitDate string

// versionText is a version for people.
func versionText(v fastapi.Version) string {
	return fmt.Sprintf("svc %s, speaks v%s (commit %s)", v.Program, v.Package, v.Commit)
}

// versionNotice returns the output of --version, including what is not under svc's own licence.
func versionNotice() string {
	return versionText(buildVersion()) + "\nwith the word list of german-decompounder under the LGPL 3.0 (SVC_GERMAN_WORDS replaces it), and other dictionaries: svc licenses"
}

// buildVersion returns the version with the commit that the program was built from.
func buildVersion() fastapi.Version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info, commit, commitDate)
}

// versionOf returns the version of a build. The commit and its date are set by the linker, or else recorded by the go command. info
// may be nil.
func versionOf(info *debug.BuildInfo, revision, moment string) fastapi.Version {
	if info != nil && revision == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.time":
				moment = s.Value
			}
		}
	}
	v := fastapi.Version{Commit: "unknown", Date: "unknown", Package: apiVersion, Program: svcVersion}
	if revision != "" {
		v.Commit = revision
	}
	if t, err := time.Parse(time.RFC3339, moment); err == nil {
		v.Date = t.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return v
}

// versionCommand prints the version.
type versionCommand struct{}

func (versionCommand) Run(p program) error {
	_, err := fmt.Fprintln(p.out, versionNotice())
	return err
}
