package fastapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

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
			if member.null() {
				m.id = nil
			} else if _, text := member.text(); text || wholeNumber(member) {
				m.id = member
			} else {
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

// unknown reports whether the SDK would refuse m because of its method. It returns the answer: an error of JSON-RPC to a request,
// nothing to a notification.
func (m *rpcMessage) unknown() (answer []byte, unknown bool) {
	switch {
	case m.method == "":
		return nil, false
	case m.id != nil && !slices.Contains(offeredMethods, m.method) && !strings.HasPrefix(m.method, "notifications/"):
		return m.appendError(nil, notOffered(m.method)), true
	case m.id == nil && strings.HasPrefix(m.method, "notifications/") && !slices.Contains(knownNotifications, m.method):
		return nil, true
	}
	return nil, false
}

// appendError appends the answer to m that is an error.
func (m *rpcMessage) appendError(b []byte, e *jsonrpc.Error) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if m.id == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, m.id...)
	}
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), e.Code, 10)
	return append(appendString(append(b, `,"message":`...), e.Message), "}}"...)
}

// notOffered is the error for a method of which svc knows nothing.
func notOffered(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: shorten([]byte(method)) + " is not supported: this server offers only tools"}
}
