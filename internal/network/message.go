package network

// A Message is a kind of request that one instance sends to another. Tests range over Messages: each has a row with the maximum cost
// of its response, and one with the keys to test it with.
type Message struct {
	Name   string
	Method string
	Path   string // with its query string
	Search bool   // its key is the searchApiKey of a remote, not the writeApiKey
	Quick  bool   // a caller waits for the response: the request changes nothing, may be repeated, and its errors do not contain the address of the remote
	Most   int    // most bytes of a response. Decoded it may take a hundred times as much memory, unless that is charged
}

// key returns the key of a remote that a message is sent with, or nil if there is none.
func (m *Message) key(r *Remote) *string {
	if m.Search {
		return r.SearchAPIKey
	}
	return r.WriteAPIKey
}

const (
	maxReport = 256 << 10 // of a task, or how far a change is
	maxState  = 1 << 20   // of the network
)

// The messages. A write has the method and the path that the leader's client sent.
var (
	searchMessage       = &Message{Name: "search", Method: "POST", Path: "/multi-search", Search: true, Quick: true, Most: maxAnswer}
	documentsMessage    = &Message{Name: "documents", Method: "POST", Path: "/network/documents", Quick: true, Most: maxAnswer}
	facetsMessage       = &Message{Name: "facets", Method: "POST", Path: "/network/facets", Search: true, Quick: true, Most: maxAnswer}
	foreignMessage      = &Message{Name: "foreign", Method: "POST", Path: "/network/foreign", Search: true, Quick: true, Most: maxAnswer}
	wordsMessage        = &Message{Name: "words", Method: "POST", Path: "/network/words", Search: true, Quick: true, Most: maxReport}
	writeMessage        = &Message{Name: "write", Most: maxReport}
	announcementMessage = &Message{Name: "announcement", Method: "PATCH", Path: "/network", Most: maxReport}
	networkMessage      = &Message{Name: "network", Method: "GET", Path: "/network", Most: maxState}
	changeMessage       = &Message{Name: "change", Method: "POST", Path: "/network/change", Most: maxReport}
	transferMessage     = &Message{Name: "transfer", Method: "POST", Path: "/network/transfer", Most: maxAnswer}
	featuresMessage     = &Message{Name: "features", Method: "GET", Path: "/experimental-features", Most: maxReport}
	healthMessage       = &Message{Name: "health", Method: "GET", Path: "/health", Most: maxReport} // without a key
	tasksMessage        = &Message{Name: "tasks", Method: "GET", Path: "/tasks?types=networkTopologyChange&statuses=enqueued,processing&limit=1", Most: maxReport}
)

// Messages are all of them.
var Messages = []*Message{searchMessage, documentsMessage, facetsMessage, foreignMessage, wordsMessage, writeMessage, announcementMessage, networkMessage, changeMessage, transferMessage, featuresMessage, healthMessage, tasksMessage}
