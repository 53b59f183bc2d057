package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"svc/internal/apierr"
	"svc/internal/outbound"
)

// maxRounds is how often the provider is called in one conversation.
const maxRounds = 20

// maxSpokenBytes limits how much of the model's text before a search is kept.
const maxSpokenBytes = 1 << 20

// maxFoundBytes limits the search results that a model gets in one conversation; each round sends them all again. Later searches find
// nothing.
const maxFoundBytes = 4 << 20

// Searcher searches for the model, with the rights of the client.
type Searcher interface {
	// Search runs a search. If the index refuses it, for example because of a field that is not filterable, the text of Found says
	// so. The client also gets the errors.
	Search(ctx context.Context, q Query) (*Found, error)
}

// Found is what a search found.
type Found struct {
	Text      string // for the model
	Documents []byte // for the client: a JSON array
}

// Report says how a conversation went.
type Report struct {
	Rounds   int // calls of the provider
	Searches int
	Usage    Usage // of all rounds, as far as the provider tells
	Err      error // what ended it early; nil: the model was done
}

// conversation is one conversation on its way.
type conversation struct {
	*Providers
	ctx      context.Context
	settings *Settings
	request  *Request
	searcher Searcher
	send     func(event []byte) error

	endpoint *endpoint
	tool     json.RawMessage
	messages []json.RawMessage
	found    int // bytes of what searches found
	report   Report
}

// Converse holds a conversation: it streams the text of the workspace's model to the client, and runs the searches in indexes that
// the model requests. It ends when the model is done, when something fails, or with ctx, whose cause then is the report's error. The
// last event is always [DONE]. send gets the data of an event, on one line. After an error of send, nothing more is sent.
func (p *Providers) Converse(ctx context.Context, w *Settings, r *Request, indexes []Index, searcher Searcher, send func(event []byte) error) Report {
	limited, cancel := context.WithTimeoutCause(ctx, p.conversation, errTooLong)
	defer cancel()
	c := &conversation{Providers: p, ctx: limited, settings: w, request: r, searcher: searcher, send: send}
	err := c.clean(c.run(indexes))
	c.report.Err = err
	if errors.Is(err, errNotSent) {
		return c.report
	}
	if err != nil && c.fail(err) != nil {
		return c.report
	}
	c.emit([]byte("[DONE]")) // nothing comes after it
	return c.report
}

// errNotSent wraps the error of a client that cannot be sent to any more.
var errNotSent = errors.New("the client has disconnected")

func (c *conversation) emit(event []byte) error {
	if err := c.send(event); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	return nil
}

// fail tells the client of a failure.
func (c *conversation) fail(err error) error {
	f := new(failure)
	if !errors.As(err, &f) {
		f = &failure{kind: searchKind, message: "The conversation ended: " + err.Error() + "."}
	}
	return c.emit(f.event())
}

// clean removes the secrets of the workspace from a failure, because providers quote requests. It also removes the address of the
// provider from the client's version.
func (c *conversation) clean(err error) error {
	if f := new(failure); errors.As(err, &f) && c.endpoint != nil {
		f.detail = outbound.HideSecrets(f.detail, c.endpoint.secrets)
		for _, text := range []*string{&f.kind, f.code, &f.message, f.param} {
			if text != nil {
				*text = outbound.HideSecrets(*text, slices.Concat(c.endpoint.secrets, c.endpoint.places()))
			}
		}
	}
	return err
}

func (c *conversation) run(indexes []Index) error {
	prompts := c.settings.Prompts.complete()
	c.tool = searchDefinition(c.request.declared.prefix+searchTool, prompts, indexes)
	if *prompts.System != "" {
		c.messages = append(c.messages, c.request.systemMessage(c.settings, *prompts.System))
	}
	c.messages = append(c.messages, c.request.messages...)
	var failed *failure
	if c.endpoint, failed = c.settings.endpoint(); failed != nil {
		return failed
	}
	for c.report.Rounds < maxRounds {
		c.report.Rounds++
		a, err := c.round()
		if err != nil {
			return err
		}
		if len(a.calls) == 0 {
			return nil
		}
		if c.report.Rounds == maxRounds {
			break
		}
		if err := c.answerCalls(a); err != nil {
			return err
		}
	}
	return &failure{kind: searchKind, message: fmt.Sprintf("The model still wants to search after %d requests, so the conversation ends here.", maxRounds)}
}

// spoken is an answer of the model.
type spoken struct {
	text  strings.Builder // what the client got of it, if calls follow
	calls []call          // that are to be answered
	last  *chunk
}

// round calls the provider and passes on what the model says.
func (c *conversation) round() (*spoken, error) {
	messages := c.messages
	if messages == nil {
		messages = []json.RawMessage{}
	}
	stream, err := c.call(c.ctx, c.endpoint, c.request.body(c.settings, messages, c.tool, c.report.Rounds))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var (
		a      spoken
		asked  gathering
		finish string
		usage  *Usage
		events = newEventReader(stream)
	)
	for {
		data, failed, err := events.next()
		if err == io.EOF {
			if finish == "" && !asked.complete() {
				return nil, transportFailure("The provider ended its answer before the model was done.").at(c.endpoint)
			}
			break
		}
		if err != nil {
			if err == errLongEvent {
				return nil, unparsable("The provider cannot be followed: %v.", err).at(c.endpoint)
			}
			if err = c.broken(stream.ctx, c.endpoint, err); finish != "" && c.ctx.Err() == nil {
				break // all was said
			}
			return nil, err
		}
		if string(data) == "[DONE]" {
			break
		}
		k, err := parseChunk(data)
		if f := new(failure); errors.As(err, &f) {
			return nil, f
		}
		if err != nil || failed {
			return nil, unparsable("The provider sent an event that is no piece of an answer.").at(c.endpoint).because("%v: %s", err, quote(data))
		}
		a.last = k
		if k.usage != nil {
			usage = k.usage
		}
		pass, err := a.take(k, &asked, &finish)
		if err != nil {
			return nil, unparsable("The provider cannot be followed: %v.", err).at(c.endpoint)
		}
		if finish != "" {
			stream.silence = c.linger
		}
		if pass {
			c.complete(k)
			if err := c.emit(k.appendJSON(nil)); err != nil {
				return nil, err
			}
		}
	}
	if usage != nil {
		c.report.Usage.add(usage)
	}
	if finish == "" || finish == "tool_calls" || finish == "stop" {
		a.calls = asked.whole()
	}
	return &a, nil
}

// take processes a chunk. It reports whether the rest of the chunk, without the parts of tool calls, is for the client.
func (a *spoken) take(k *chunk, asked *gathering, finish *string) (pass bool, err error) {
	pass = true
	for i := range k.choices {
		ch := &k.choices[i]
		for j := range ch.calls {
			if err := asked.add(&ch.calls[j]); err != nil {
				return false, err
			}
		}
		if ch.finish != "" {
			*finish = ch.finish
		}
		if a.text.Len()+len(ch.content) <= maxSpokenBytes {
			a.text.WriteString(ch.content)
		}
		searches := ch.finish == "tool_calls" || ch.finish == "stop" && len(asked.calls) > 0
		if len(ch.calls) == 0 && !searches {
			continue
		}
		delete(ch.delta, "tool_calls")
		if searches {
			ch.members["finish_reason"] = json.RawMessage("null")
		}
		pass = ch.speaks
	}
	return pass, nil
}

// complete gives a chunk what clients rely on, where a provider leaves it out.
func (c *conversation) complete(k *chunk) {
	for name, make := range map[string]func() json.RawMessage{
		"id":      func() json.RawMessage { return marshal("chatcmpl-" + newEventID()) },
		"object":  func() json.RawMessage { return marshal("chat.completion.chunk") },
		"created": func() json.RawMessage { return marshal(c.now().Unix()) },
		"model":   func() json.RawMessage { return marshal(c.request.Model) },
	} {
		if v := k.members[name]; v == nil || string(v) == "null" {
			k.members[name] = make()
		}
	}
}

// answerCalls runs the searches that the model asks for, and adds them to the messages.
func (c *conversation) answerCalls(a *spoken) error {
	c.complete(a.last)
	list := []byte{'['}
	for i := range a.calls {
		if i > 0 {
			list = append(list, ',')
		}
		list = appendCall(list, &a.calls[i])
	}
	c.messages = append(c.messages, arguments{}.text("role", "assistant").text("content", a.text.String()).json("tool_calls", append(list, ']')).end())
	for i := range a.calls {
		text, err := c.answerCall(a.last, &a.calls[i])
		if err != nil {
			return err
		}
		c.messages = append(c.messages, arguments{}.text("role", "tool").text("tool_call_id", a.calls[i].ID).text("content", text).end())
	}
	return nil
}

// errFound is the text for a model that has received as many results as it may.
var errFound = errors.New("no more searches are possible in this conversation: answer with the documents found so far")

// answerCall runs a search, reports it to the client, and returns the text for the model.
func (c *conversation) answerCall(about *chunk, asked *call) (text string, err error) {
	d := &c.request.declared
	tell := func(tool *declaredTool, arguments func() []byte) {
		if tool != nil && err == nil {
			err = c.emit(toolEvent(about, tool.Name, arguments()))
		}
	}
	tell(d.progress, func() []byte { return d.progressArguments(asked) })
	tell(d.message, func() []byte { return askedArguments(asked) })
	if err != nil {
		return "", err
	}
	var failed *failure
	query, unreadable := parseQuery(asked.Arguments)
	if _, name, ours := cutPrefix(asked.Name); !ours || name != searchTool {
		unreadable = fmt.Errorf("there is no tool %q: the only one is %s", asked.Name, d.prefix+searchTool)
	}
	if unreadable == nil && c.found >= maxFoundBytes {
		unreadable = errFound
	}
	if unreadable != nil {
		text = unreadable.Error()
	} else {
		c.report.Searches++
		found, refused := c.searcher.Search(c.ctx, query)
		if c.ctx.Err() != nil {
			return "", context.Cause(c.ctx)
		}
		if refused != nil {
			e := apierr.From(refused)
			status := strconv.Itoa(e.Status())
			failed = &failure{kind: searchKind, code: &status, message: e.Message}
			text = "The search failed: " + e.Message
		} else {
			text = found.Text
			c.found += len(text)
			tell(d.sources, func() []byte { return d.sourcesArguments(asked, found.Documents) })
		}
	}
	tell(d.message, func() []byte { return answeredArguments(asked, text) })
	if failed != nil && err == nil {
		err = c.fail(failed)
	}
	return text, err
}
