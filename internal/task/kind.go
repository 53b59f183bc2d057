package task

import (
	"strings"

	"svc/internal/apierr"
)

// Status of a task. Its numbers are stored: they never change.
type Status uint8

const (
	Enqueued Status = iota
	Processing
	Succeeded
	Failed
	Canceled
)

var statusNames = [...]string{"enqueued", "processing", "succeeded", "failed", "canceled"}

func (s Status) String() string { return statusNames[s] }

// Finished reports whether the task will not change any more.
func (s Status) Finished() bool { return s >= Succeeded }

// StatusNames returns the statuses as filters name them.
func StatusNames() []string { return statusNames[:] }

// ParseStatus reads a status of a filter, in any case; invalid_task_statuses.
func ParseStatus(text string) (Status, error) {
	for i, name := range statusNames {
		if strings.EqualFold(name, text) {
			return Status(i), nil
		}
	}
	return 0, apierr.New("invalid_task_statuses", "`%s` is not a status of tasks. Use one of %s.", text, strings.Join(statusNames[:], ", "))
}

// Kind is the type of a task. String gives the name on the wire. Its numbers
// are stored: they never change.
type Kind uint8

const (
	DocumentAdditionOrUpdate Kind = iota
	DocumentEdition
	DocumentDeletion
	SettingsUpdate
	IndexCreation
	IndexDeletion
	IndexUpdate
	IndexSwap
	TaskCancelation
	TaskDeletion
	DumpCreation
	SnapshotCreation
	Export
	UpgradeDatabase
	IndexCompaction
	NetworkTopologyChange
	RuleUpdate
	RuleClear
)

var kindNames = [...]string{
	"documentAdditionOrUpdate", "documentEdition", "documentDeletion", "settingsUpdate",
	"indexCreation", "indexDeletion", "indexUpdate", "indexSwap", "taskCancelation", "taskDeletion",
	"dumpCreation", "snapshotCreation", "export", "upgradeDatabase", "indexCompaction", "networkTopologyChange",
	"dsrUpdate", "dsrClear",
}

func (k Kind) String() string { return kindNames[k] }

// Global reports whether tasks of this kind are not of one index.
func (k Kind) Global() bool {
	switch k {
	case IndexSwap, TaskCancelation, TaskDeletion, DumpCreation, SnapshotCreation, Export, UpgradeDatabase, NetworkTopologyChange:
		return true
	}
	return false
}

// RulesIndex stands for the search rules where tasks have an index. No index has this uid.
const RulesIndex = ".meili_dsr"

// ofRules reports whether tasks of this kind change search rules.
func (k Kind) ofRules() bool { return k == RuleUpdate || k == RuleClear }

// KindNames returns the types as filters name them.
func KindNames() []string { return kindNames[:] }

// ParseKind reads a type of a filter, in any case; invalid_task_types.
func ParseKind(text string) (Kind, error) {
	for i, name := range kindNames {
		if strings.EqualFold(name, text) {
			return Kind(i), nil
		}
	}
	return 0, apierr.New("invalid_task_types", "`%s` is not a type of tasks. Use one of %s.", text, strings.Join(kindNames[:], ", "))
}
