package network

// A Message is a kind of request that one instance makes to another. Tests range over Messages: each has a row that says what its answer
// may cost, and one that says which keys it is tried with.
type Message struct {
	Name   string
	Method string
	Path   string // with its query string
	Search bool   // it is authorized by the searchApiKey of a remote, and not by the writeApiKey
}

// The messages. A write has the method and the path that the leader's client sent.
var (
	searchMessage       = &Message{Name: "search", Method: "POST", Path: "/multi-search", Search: true}
	writeMessage        = &Message{Name: "write"}
	announcementMessage = &Message{Name: "announcement", Method: "PATCH", Path: "/network"}
	networkMessage      = &Message{Name: "network", Method: "GET", Path: "/network"}
	changeMessage       = &Message{Name: "change", Method: "POST", Path: "/network/change"}
	transferMessage     = &Message{Name: "transfer", Method: "POST", Path: "/network/transfer"}
	featuresMessage     = &Message{Name: "features", Method: "GET", Path: "/experimental-features"}
	tasksMessage        = &Message{Name: "tasks", Method: "GET", Path: "/tasks?types=networkTopologyChange&statuses=enqueued,processing&limit=1"}
)

// Messages are all of them.
var Messages = []*Message{searchMessage, writeMessage, announcementMessage, networkMessage, changeMessage, transferMessage, featuresMessage, tasksMessage}
