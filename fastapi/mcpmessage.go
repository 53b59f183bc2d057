package fastapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
)

// The methods of MCP that svc offers, and the notifications of clients that the SDK knows. The SDK refuses other methods by the status
// of HTTP, which clients take for a broken connection.
var (
	offeredMethods     = []string{"initialize", "server/discover", "ping", "tools/list", "tools/call"}
	knownNotifications = []string{"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"}
)

// rpcMessage is a message of JSON-RPC.
type rpcMessage struct {
	id     value  // as sent; nil: none, or null
	method string // "": none, as in an answer
}

// readMessage reads a message as far as svc itself looks at it. The SDK reads the rest, but its errors name types of Go.
func readMessage(v value) (m rpcMessage, err error) {
	if !v.object() {
		return m, apierr.New("bad_request", "A message must be a JSON object, but it is %s.", v.kind())
	}
	for name, member := range v.members() {
		switch string(name) {
		case "id":
			if m.id = member; member.null() {
				m.id = nil
			} else if _, text := member.text(); !text && !wholeNumber(member) {
				return m, apierr.New("bad_request", "`id` of a message must be a string or a whole number, but it is %s.", shorten(member))
			}
		case "method":
			ok := false
			if m.method, ok = member.text(); !ok {
				return m, apierr.New("bad_request", "`method` of a message must be a string, but it is %s.", shorten(member))
			}
		case "params":
			if !member.object() && !member.null() {
				return m, apierr.New("bad_request", "`params` of a message must be a JSON object, but they are %s.", member.kind())
			}
		}
	}
	return m, nil
}

// wholeNumber reports whether v is a number without a fraction or exponent.
func wholeNumber(v value) bool {
	digits := strings.TrimPrefix(string(v), "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// answerUnknown answers a message whose method the SDK would refuse: a request by an error of JSON-RPC, a notification by nothing.
func (m *rpcMessage) answerUnknown(ctx *fasthttp.RequestCtx) bool {
	switch {
	case m.method == "":
		return false
	case m.id != nil && !slices.Contains(offeredMethods, m.method) && !strings.HasPrefix(m.method, "notifications/"):
		e := notOffered(m.method)
		b := append(append([]byte(`{"jsonrpc":"2.0","id":`), m.id...), `,"error":{"code":`...)
		b = append(strconv.AppendInt(b, e.Code, 10), `,"message":`...)
		ctx.SetContentType(contentJSON)
		ctx.SetBody(append(appendString(b, e.Message), "}}"...))
		return true
	case m.id == nil && strings.HasPrefix(m.method, "notifications/") && !slices.Contains(knownNotifications, m.method):
		ctx.SetStatusCode(fasthttp.StatusAccepted)
		return true
	}
	return false
}

// notOffered is the error for a method of which svc knows nothing.
func notOffered(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: shorten([]byte(method)) + " is not supported: this server offers only tools"}
}
