package fastapi

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/group"
)

// answerer says which member of a group answers a request that a reader receives.
type answerer uint8

const (
	byReader          answerer = iota + 1 // the reader, from its own data
	byWriter                              // the writer
	byWriterIfMissing                     // the writer, if the reader lacks it: another member may have just created it
)

// answerers says for each action which member answers: the writer, if the action changes something or only the writer knows the
// answer. Each member has its own log and its own counts of searches.
var answerers = map[action]answerer{
	public: byReader, actionVersion: byReader, actionSearch: byReader, actionTools: byReader, actionAll: byReader,
	actionDocumentsGet: byReader, actionDocumentsAdd: byWriter, actionDocumentsDelete: byWriter, actionDocumentsAll: byWriter,
	actionIndexesGet: byReader, actionIndexesCreate: byWriter, actionIndexesUpdate: byWriter, actionIndexesDelete: byWriter,
	actionIndexesSwap: byWriter, actionIndexesCompact: byWriter,
	actionFieldsPost: byReader, actionStatsGet: byReader,
	actionSettingsGet: byReader, actionSettingsUpdate: byWriter,
	actionTasksGet: byReader, actionTasksCancel: byWriter, actionTasksDelete: byWriter, actionTasksCompact: byWriter,
	actionDumpsCreate: byWriter, actionSnapshotsCreate: byWriter, actionExport: byWriter,
	actionMetricsGet: byReader, actionMetricsAll: byReader,
	actionAnalyticsGet: byReader, actionAnalyticsDelete: byReader,
	actionKeysGet: byReader, actionKeysCreate: byWriter, actionKeysUpdate: byWriter, actionKeysDelete: byWriter,
	actionFeaturesGet: byReader, actionFeaturesUpdate: byWriter,
	actionGroupGet: byReader, actionGroupUpdate: byReader,
	actionNetworkGet: byWriter, actionNetworkUpdate: byWriter,
	actionWebhooksGet: byReader, actionWebhooksCreate: byWriter, actionWebhooksUpdate: byWriter, actionWebhooksDelete: byWriter,
	actionChatsGet: byReader, actionChatsDelete: byWriter, actionChatCompletions: byReader,
	actionChatsSettingsGet: byReader, actionChatsSettingsUpdate: byWriter,
	actionRulesGet: byReader, actionRulesUpdate: byWriter, actionRulesDelete: byWriter,
}

// answerersOfPaths are the routes with another answerer than their action. Instances of a network ask each other's writers. The
// leader of a group of voters changes it.
var answerersOfPaths = map[string]answerer{
	"/group/transfer": byWriter, "/group/members/{member}": byWriter,
	"/downloads/dumps": byWriter, "/downloads/snapshots": byWriter, "/downloads/dumps/{dump}": byWriter, "/downloads/snapshots/{snapshot}": byWriter, "/dumps": byWriter, "/snapshots": byWriter, // the writer makes them
	"/network/documents": byWriter, "/network/facets": byWriter, "/network/foreign": byWriter, "/network/words": byWriter,
	"/tasks/{task_id}": byWriterIfMissing, "/tasks/{task_id}/documents": byWriterIfMissing, "/batches/{batch_id}": byWriterIfMissing,
}

func (r *route) answerer() answerer {
	if p, ok := answerersOfPaths[r.path]; ok && (p != byWriterIfMissing || r.method == methodGet) {
		return p
	}
	return answerers[r.action]
}

// forPeer reports whether another instance of a network asks. The writer answers these requests: a change of the network waits until
// all writers have switched, and not for readers.
func (s *Server) forPeer(ctx *fasthttp.RequestCtx) bool {
	return string(headerProxySearch.in(&ctx.Request.Header)) == "true"
}

// seenTime is how long a reader waits, before it answers a write, until it has the change itself.
const seenTime = time.Second

// pass forwards a request from a reader to the writer. A client that then reads here sees its own writes.
func (s *Server) pass(ctx *fasthttp.RequestCtx) error {
	if err := checkForwarded(ctx); err != nil {
		return err
	}
	s.forwarded.Add(1)
	if err := s.forward(ctx); err != nil || ctx.IsGet() || ctx.IsHead() {
		return err
	}
	if at, err := group.ParsePosition(string(ctx.Response.Header.Peek(headerPosition))); err == nil && s.member != nil {
		wait, cancel := context.WithTimeout(ctx, seenTime)
		defer cancel()
		_ = s.member.Wait(wait, at) // or the client asks with headerMinPosition
	}
	return nil
}

// passMissing forwards a request for something that this reader lacks. If the writer is unreachable, the reader answers.
func (s *Server) passMissing(ctx *fasthttp.RequestCtx, missing error) error {
	if checkForwarded(ctx) != nil {
		return missing
	}
	s.forwarded.Add(1)
	if s.forward(ctx) != nil {
		return missing
	}
	return nil
}
