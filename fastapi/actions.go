package fastapi

// action is the right that a key must have to use a route.
type action string

const (
	// public routes need no key.
	public action = "public"

	actionSearch          action = "search"
	actionDocumentsGet    action = "documents.get"
	actionDocumentsAdd    action = "documents.add"
	actionDocumentsDelete action = "documents.delete"
	actionDocumentsAll    action = "documents.*"
	actionIndexesGet      action = "indexes.get"
	actionIndexesCreate   action = "indexes.create"
	actionIndexesUpdate   action = "indexes.update"
	actionIndexesDelete   action = "indexes.delete"
	actionIndexesSwap     action = "indexes.swap"
	actionIndexesCompact  action = "indexes.compact"
	actionFieldsPost      action = "fields.post"
	actionSettingsGet     action = "settings.get"
	actionSettingsUpdate  action = "settings.update"
	actionTasksGet        action = "tasks.get"
	actionTasksCancel     action = "tasks.cancel"
	actionTasksDelete     action = "tasks.delete"
	actionTasksCompact    action = "tasks.compact"
	actionDumpsCreate     action = "dumps.create"
	actionSnapshotsCreate action = "snapshots.create"
	actionExport          action = "export"
	actionStatsGet        action = "stats.get"
	actionMetricsGet      action = "metrics.get"
	actionMetricsAll      action = "metrics.*"
	actionAnalyticsGet    action = "analytics.get"
	actionAnalyticsDelete action = "analytics.delete"
	actionVersion         action = "version"
	actionKeysGet         action = "keys.get"
	actionKeysCreate      action = "keys.create"
	actionKeysUpdate      action = "keys.update"
	actionKeysDelete      action = "keys.delete"
	actionFeaturesGet     action = "experimental.get"
	actionFeaturesUpdate  action = "experimental.update"
	actionGroupGet        action = "group.get"
	actionGroupUpdate     action = "group.update"
	actionNetworkGet      action = "network.get"
	actionNetworkUpdate   action = "network.update"
	actionWebhooksGet     action = "webhooks.get"
	actionWebhooksCreate  action = "webhooks.create"
	actionWebhooksUpdate  action = "webhooks.update"
	actionWebhooksDelete  action = "webhooks.delete"
	actionChatsGet        action = "chats.get"
	actionChatsDelete     action = "chats.delete"
	actionRulesGet        action = "dynamicSearchRules.get"
	actionRulesUpdate     action = "dynamicSearchRules.update"
	actionRulesDelete     action = "dynamicSearchRules.delete"

	actionChatCompletions     action = "chatCompletions"
	actionChatsSettingsGet    action = "chatsSettings.get"
	actionChatsSettingsUpdate action = "chatsSettings.update"
	// actionTools opens the route of the tools to every caller that may use one of them.
	actionTools action = "tools"
	// actionAll is for routes that need a key with every action. Routes of dumps and snapshots refuse even that (ownCopies).
	actionAll action = "*"
)
