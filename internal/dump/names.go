package dump

import (
	"path"
	"strings"
)

// The names in a dump.
const (
	metadataName = "metadata.json" // of the dump, and of each index
	keysName     = "keys.jsonl"
	tasksDir     = "tasks"
	tasksName    = "tasks/queue.jsonl"
	payloadsDir  = "tasks/update_files"
	batchesName  = "batches/queue.jsonl"
	featuresName = "experimental-features.json"
	networkName  = "network.json"
	aliasesName  = "aliases.json" // svc's own: other readers pass over it
	webhooksName = "webhooks.json"
	chatDir      = "chat-completions-settings"
	rulesDir     = "dynamic-search-rules"
	instanceName = "instance_uid.uuid"

	indexesDir    = "indexes"
	settingsName  = "settings.json"
	documentsName = "documents.jsonl"
)

// keeps reports whether svc stores an entry for a feature that it does not have yet.
func keeps(name string) bool {
	return path.Dir(name) == rulesDir && strings.HasSuffix(name, ".json")
}

// isChat reports whether an entry is a chat workspace.
func isChat(name string) bool { return path.Dir(name) == chatDir && strings.HasSuffix(name, ".json") }
