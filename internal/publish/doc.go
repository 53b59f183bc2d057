// Package publish keeps the history of a data directory in a bucket, and restores the directory at one of its positions.
//
// # Publishing
//
// A publisher follows the log of a writer (group.Feed) or of the leader of a group (group.VoterFeed). It uploads the files that an
// entry names before the entry itself, so the bucket has all files of a published position. It uploads an image of the directory
// after 64 MiB of entries, after a day if there are any, and when it starts. A leader of a group that continues a published log
// uploads no image when it starts. archive.go has the names of objects. Objects are named by content or by position, and never
// change.
//
// Entries that name large new files are held back (entries.go). Later entries are combined with them into one object, so that files
// which the later ones replace are not uploaded. A position among combined entries cannot be restored: see group.Combine.
//
// # Restoring
//
// A restore starts with the last image before a position and applies the later entries (restore.go). It first works on a list of
// names (content.go), so a file that one entry adds and a later one removes is never fetched.
//
// # Removing
//
// Retention removes objects that only positions older than Options.Keep need (retain.go). It reads the newest image that is old
// enough, and removes the images and entries before it. Then it removes the files that this image does not have and that were
// uploaded before the image was started. This is safe because of an invariant of objects.go: a file that the image or a later entry
// needs is in the image, or was uploaded after the image was started.
//
// References are removed before the objects they refer to, oldest first. So an interrupted removal leaves only positions that can be
// restored.
//
// # Damage
//
// A scrubber lists the objects of the last image, and reads their contents over time if it is configured to (scrub.go). Missing or
// damaged objects are uploaded again with a new image, as long as the directory has them. Verify checks everything on request.
//
// # What the store must do
//
// One publisher writes to a bucket, and any number of readers use it. The store must support create-if-absent: an object under runs/
// claims a run, and a publisher that finds its run claimed by another, or a later run, stops. The leader of a group claims the log
// for its reign. The next leader continues the published log (Publisher.goOn). A leader that was cut off may publish the same entries
// at the same time, because it has only entries that the group has accepted. It looks for a later claim before it uploads an image
// and before it removes files, and stops if there is one. The store must return an object once it is written. Its lists may be stale,
// and its clock may be up to an hour behind that of the publisher (clockMargin).
//
// # Secrets
//
// With a master key every object except svc.json is sealed by DARE 2.0 with AES-256-GCM, each under a key of its own. An object that
// does not decrypt then also counts as damaged. Names of objects reveal positions, times, sizes and checksums.
package publish
