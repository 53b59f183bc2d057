package embed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tiktoken-go/tokenizer/codec"

	"svc/internal/jsontext"
	"svc/internal/settings"
)

const (
	// openAITokens is how many tokens of a text the models read.
	openAITokens = 8191
)

var openAIForm = form(`{"data": [{"embedding": "{{embedding}}"}, "{{..}}"]}`)

// openAI is the API that others imitate.
type openAI struct {
	*endpoint
	head []byte // of each body, up to the input
	tail []byte
}

// openOpenAI prepares calls. The key of the command line is sent only to hosts that it is for.
func (p *Pool) openOpenAI(cfg *settings.Embedder) (source, error) {
	address, key := cfg.URL, cfg.APIKey
	if address == "" {
		address = settings.OpenAIURL
	}
	hint := ""
	if key == "" && p.o.OpenAIKey != "" {
		if p.trusts(address) {
			key = p.o.OpenAIKey
		} else {
			hint = " svc sends the key of the command line only to api.openai.com and the hosts of --openai-api-hosts."
		}
	}
	s := openAI{tail: []byte("}")}
	s.head = append(jsontext.AppendQuoted([]byte(`{"model":`), cfg.Model), `,"input":`...)
	if m, ok := settings.FindOpenAIModel(cfg.Model); ok && m.Fewer && cfg.Dimensions > 0 {
		s.tail = fmt.Appendf(nil, `,"dimensions":%d}`, cfg.Dimensions)
	}
	var err error
	if s.endpoint, err = p.caller.endpoint(address, key, nil); err == nil {
		s.endpoint.hint = hint
	}
	return s, err
}

// openAIDimensions returns the dimensions of a known model.
func openAIDimensions(cfg *settings.Embedder) int {
	m, _ := settings.FindOpenAIModel(cfg.Model)
	return m.Dimensions
}

func openAIDistribution(cfg *settings.Embedder) (d [2]float32, ok bool) {
	m, ok := settings.FindOpenAIModel(cfg.Model)
	return [2]float32{m.Mean, m.Sigma}, ok
}

// trusts reports whether the key of the command line may be sent to an address: the one that it is for, or a host that the operator
// lists. Users who change settings may name any other address.
func (p *Pool) trusts(address string) bool {
	if settings.Origin(address) == settings.Origin(settings.OpenAIURL) {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && slices.ContainsFunc(p.o.OpenAIHosts, func(host string) bool {
		return strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname())
	})
}

func (s openAI) local() bool { return false }
func (s openAI) group() int  { return textsInCall }

// embed sends texts together, and one by one after a refusal, because a text that is too long fails the whole call.
func (s openAI) embed(ctx context.Context, inputs []string, stats *Stats) ([][]float32, error) {
	vectors, err := s.send(ctx, jsontext.AppendStrings(nil, inputs), len(inputs), stats)
	if failed := new(callError); !errors.As(err, &failed) || failed.status != 400 {
		return vectors, err
	}
	// A text may be too long. One by one, only the calls with such a text fail.
	vectors = nil
	for _, text := range inputs {
		input := jsontext.AppendStrings(nil, []string{text})
		ids, err := firstTokens(text)
		if err != nil {
			return nil, &callError{final: true, party: userFault, reason: fmt.Sprintf("a text cannot be tokenized: %v.", err)}
		}
		if ids != nil {
			input = append(idList([]byte{'['}, ids), ']')
		}
		one, err := s.send(ctx, input, 1, stats)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, one...)
	}
	return vectors, nil
}

func (s openAI) send(ctx context.Context, input []byte, n int, stats *Stats) ([][]float32, error) {
	body := append(append(append([]byte(nil), s.head...), input...), s.tail...)
	answer, err := s.post(ctx, body, stats)
	if err != nil {
		return nil, err
	}
	vectors, err := openAIForm.Vectors(answer, n)
	if err != nil {
		return nil, badAnswer(s.endpoint, err)
	}
	return vectors, nil
}

// firstTokens returns the ids of the first tokens of a text that has as many as the models read or more, and nil
// for a shorter one. The vocabulary is loaded when it is first needed.
func firstTokens(text string) ([]uint, error) {
	if len(text) < openAITokens { // a token is at least a byte
		return nil, nil
	}
	ids, _, err := codec.NewCl100kBase().Encode(text)
	if err != nil || len(ids) < openAITokens {
		return nil, err
	}
	return ids[:openAITokens], nil
}

func idList(dst []byte, ids []uint) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(id), 10)
	}
	return append(dst, ']')
}
