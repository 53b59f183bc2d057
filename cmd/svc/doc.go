// Command svc is the search engine: it serves the HTTP API on a data directory. Its other commands inspect, verify and rescue the
// files of a directory, and call a running server.
//
// This package connects the others and has little logic of its own. main.go parses the command line; options.go has the
// options of the server. Each command is a type with a method Run. help.go and generate.go make help, manual page and
// completions from the same definition.
//
// # Start
//
// serve (serve.go) first listens, so that nothing starts if another program uses the address. Then it decides the role of the server:
// a writer, which may publish and may have readers, a member that follows another one (follow.go), or a voter of a group (voter.go).
// A writer locks the directory (datadir.go, which lists its files) and checks that no store is missing (stores.go). open opens all
// stores, through the interface of package vfs that a group or a publication observes. lead starts what only a writer does, such as
// deliveries to webhooks and scheduled snapshots. Requests are answered last.
//
// # Stop
//
// After a signal, requests get some seconds to finish. A running batch is abandoned, and runs again at the next start. What was
// opened is closed in the opposite order (type opened). The error of run becomes the exit code (main.go).
//
// # Followers
//
// Stores of a follower are opened with Follow: they apply the changes of the leader and make none of their own. When the member takes
// over, the same stores lead, without being reopened (following.go, data.reign). Meanwhile the server continues to answer searches.
//
// # Caveats
//
//   - An error that a user sees says what to do, and names options of the command that ran (inOptions).
//   - Secrets of options appear in no help, log or error.
//   - A test brings its own program (type program): commands use its output and its environment, not those of the
//     process.
package main
