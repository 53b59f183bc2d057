// Package publish keeps the history of a data directory in a bucket, and restores a directory of its positions.
//
// # Publishing
//
// A publisher follows the log of a writer (group.Feed) or of the leader of a group (group.VoterFeed). It uploads the
// files that an entry names before the entry itself, so the bucket has all files of a published position. From time to
// time it uploads an image of the directory: after 64 MiB of entries, after a day if there are any, and when it starts.
// A leader of a group that goes on behind what is published uploads none when it starts. archive.go has the names of
// objects. Objects are named by content or by position, and never change.
//
// Entries that name large new files rest (entries.go): later ones are published with them as one object, combined, so
// that files which they replace are not sent. A position among combined entries is not restored: see group.Combine.
//
// # Restoring
//
// A restore starts with the last image before a position and applies the entries after it (restore.go). It works on a
// list of names first (content.go): a file that one entry adds and a later one removes is never fetched.
//
// # Removing
//
// Retention removes what only positions need that are older than Options.Keep (retain.go). It reads one image, the
// newest that is old enough, and removes the images and entries before it, and then the files that it does not have and
// that were uploaded before it was started. This is right because of an invariant of objects.go: a file that the image,
// or an entry behind it, needs is in the image, or was uploaded after the image was started.
//
// References go before what they refer to, the oldest first. So an interrupted removal leaves only positions that can
// be restored.
//
// # Damage
//
// A scrubber lists the objects of the last image, and reads their contents over time if it is asked to (scrub.go). What
// is missing or damaged is sent again with a new image, as long as the directory has it. Verify checks everything on
// request.
//
// # What the store must do
//
// One publisher writes to a bucket, and any number of readers use it. The store must support create-if-absent: a run is
// claimed by an object under runs/, and a publisher that finds its run taken, or a later one, stops. The leader of a
// group claims the log for its reign. The next leader goes on behind what is published (Publisher.goOn). One that was
// cut off may publish the same entries meanwhile, as it has only entries that the group has accepted. It looks for a
// later claim before it uploads an image and before it removes files, and stops then. The store must return an object
// once it is written. Its lists may be stale, and its clock may be up to an hour behind that of the publisher
// (clockMargin).
//
// # Secrets
//
// With a master key every object but svc.json is sealed by DARE 2.0 with AES-256-GCM, each under a key of its own. A
// damaged object is then also one that does not decrypt. Names of objects tell positions, times, sizes and checksums.
package publish
