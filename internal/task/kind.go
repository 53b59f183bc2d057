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
	return 0, apierr.New("invalid_task_statuses", "`%s` is not a task status. Use one of %s.", text, strings.Join(statusNames[:], ", "))
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

	kindCount // how many there are
)

// kindRow is what the queue knows of a kind before it reads the content of a task.
type kindRow struct {
	name   string // on the wire
	decode func(content []byte) (Content, error)

	global    bool // its tasks are not of one index
	alone     bool // its batches run when nothing else does: they read or change all indexes, or what the queue has of finished batches
	catalog   bool // it makes, removes or renames an index that it does not fill
	several   bool // a task may touch several indexes
	freesDisk bool // it may make room on the disk
	rules     bool // it changes search rules
	outside   bool // an executor of Options runs it; else its contents do, or the queue itself
}

// kinds has a row for each kind.
var kinds = [kindCount]kindRow{
	DocumentAdditionOrUpdate: {name: "documentAdditionOrUpdate", decode: decodeInto[AddDocuments]},
	DocumentEdition:          {name: "documentEdition", decode: decodeEdition},
	DocumentDeletion:         {name: "documentDeletion", decode: decodeDeletion, freesDisk: true},
	SettingsUpdate:           {name: "settingsUpdate", decode: decodeSettings},
	IndexCreation:            {name: "indexCreation", decode: decodeInto[CreateIndex], catalog: true},
	IndexDeletion:            {name: "indexDeletion", decode: decodeNothing[DeleteIndex], freesDisk: true},
	IndexUpdate:              {name: "indexUpdate", decode: decodeInto[UpdateIndex], catalog: true, several: true},
	IndexSwap:                {name: "indexSwap", decode: decodeInto[SwapIndexes], global: true, catalog: true, several: true},
	TaskCancelation:          {name: "taskCancelation", decode: decodeCancelation, global: true},
	TaskDeletion:             {name: "taskDeletion", decode: decodeTaskDeletion, global: true, alone: true, freesDisk: true},
	DumpCreation:             {name: "dumpCreation", decode: decodeInto[CreateDump], global: true, alone: true, outside: true},
	SnapshotCreation:         {name: "snapshotCreation", decode: decodeNothing[CreateSnapshot], global: true, alone: true, outside: true},
	Export:                   {name: "export", decode: decodeInto[ExportTo], global: true, alone: true, outside: true},
	UpgradeDatabase:          {name: "upgradeDatabase", decode: decodeInto[Upgrade], global: true, alone: true, outside: true},
	IndexCompaction:          {name: "indexCompaction", decode: decodeNothing[CompactIndex], freesDisk: true},
	NetworkTopologyChange:    {name: "networkTopologyChange", decode: decodeInto[ChangeTopology], global: true, alone: true, outside: true},
	RuleUpdate:               {name: "dsrUpdate", decode: decodeInto[UpdateRule], rules: true, outside: true},
	RuleClear:                {name: "dsrClear", decode: decodeNothing[ClearRules], rules: true, outside: true},
}

const _ uint = 32 - uint(kindCount) // sets of kinds are the bits of a uint32

// kindsWhere returns the kinds whose rows say so.
func kindsWhere(says func(r *kindRow) bool) (set uint32) {
	for k := range kinds {
		if says(&kinds[k]) {
			set |= 1 << k
		}
	}
	return set
}

// Sets of kinds that have something in common.
var (
	aloneKinds   = kindsWhere(func(r *kindRow) bool { return r.alone })
	catalogKinds = kindsWhere(func(r *kindRow) bool { return r.catalog })
	freeingKinds = kindsWhere(func(r *kindRow) bool { return r.freesDisk })
)

// kindNames has the names of all kinds.
var kindNames = func() (names [kindCount]string) {
	for k := range kinds {
		names[k] = kinds[k].name
	}
	return names
}()

func (k Kind) String() string { return kinds[k].name }

// Global reports whether tasks of this kind do not belong to one index.
func (k Kind) Global() bool { return kinds[k].global }

// RulesIndex stands for the search rules in the place of a task's index. No index has this uid.
const RulesIndex = ".meili_dsr"

// ofRules reports whether tasks of this kind change search rules.
func (k Kind) ofRules() bool { return kinds[k].rules }

// KindNames returns the types as filters name them.
func KindNames() []string { return kindNames[:] }

// ParseKind reads a type of a filter, in any case; invalid_task_types.
func ParseKind(text string) (Kind, error) {
	for i, name := range kindNames {
		if strings.EqualFold(name, text) {
			return Kind(i), nil
		}
	}
	return 0, apierr.New("invalid_task_types", "`%s` is not a task type. Use one of %s.", text, strings.Join(kindNames[:], ", "))
}
