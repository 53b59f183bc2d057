package fastapi

import (
	"bytes"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// batch answers the messages of a batch one after the other. Each message gets its own answer, as JSON-RPC requires. The SDK would
// refuse the whole batch for one message outside the protocol. If it refuses every message, the reason may be a header or the form of
// a batch, so the answer is the first refusal.
func (x *exchange) batch(messages value) error {
	var answers []byte
	var refused error // the first refusal
	accepted := false // a message was not refused
	for message := range messages.elements() {
		m, err := readMessage(message)
		var answer []byte
		if err == nil {
			answer, err = x.one(m, message)
		}
		var refusal *apierr.Error
		switch {
		case errors.As(err, &refusal):
			if refused == nil {
				refused = err
			}
			answer = m.appendError(nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refusal.Message})
		case err != nil:
			return err
		default:
			accepted = true
		}
		if len(answer) == 0 {
			continue
		}
		if err := requestOf(x.outer).bytes().Hold(int64(len(answer))); err != nil {
			return err
		}
		answers = append(append(answers, ','), answer...)
	}
	switch {
	case !accepted:
		return refused
	case answers == nil:
		x.outer.SetStatusCode(fasthttp.StatusAccepted)
		return nil
	}
	answers[0] = '['
	x.outer.SetContentType(contentJSON)
	x.outer.Response.SetBodyRaw(append(answers, ']'))
	return nil
}

// one answers one message of a batch; nil: there is no answer, as for a notification. A refusal is an *apierr.Error.
func (x *exchange) one(m rpcMessage, message value) ([]byte, error) {
	if answer, unknown := m.unknown(); unknown {
		return answer, nil
	}
	// The SDK gets a batch of one: it decides by the version of the protocol whether there may be batches.
	if err := x.forward(slices.Concat([]byte{'['}, message, []byte{']'})); err != nil {
		return nil, err
	}
	if err := requestOf(x.outer).context().Err(); err != nil { // timeout, disconnect or shutdown: drop the rest
		return nil, err
	}
	if refusal := x.refusal(); refusal != nil {
		return nil, refusal
	}
	answer := bytes.TrimSpace(x.body)
	if bytes.HasPrefix(answer, []byte{'['}) {
		answer = answer[1 : len(answer)-1]
	}
	return answer, nil
}
