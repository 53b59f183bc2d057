package transformer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/simd"
)

// Pooling says how the vectors of a text's tokens become one.
type Pooling string

const (
	UseModel  Pooling = "useModel"  // as the model's own file says, or else the mean
	ForceCLS  Pooling = "forceCls"  // that of the first token
	ForceMean Pooling = "forceMean" // the mean
)

// The poolings of a model's own file, by precedence.
const (
	poolCLS      = "cls"
	poolMean     = "mean"
	poolLast     = "lasttoken"
	poolMeanSqrt = "mean_sqrt"
	poolMax      = "max"
)

// config has the used members of config.json.
type config struct {
	Type         string   `json:"model_type"`
	Architecture []string `json:"architectures"`
	Vocabulary   int      `json:"vocab_size"`
	Hidden       int      `json:"hidden_size"`
	Layers       int      `json:"num_hidden_layers"`
	Heads        int      `json:"num_attention_heads"`
	Intermediate int      `json:"intermediate_size"`
	Positions    int      `json:"max_position_embeddings"`
	TokenTypes   int      `json:"type_vocab_size"`
	Padding      *int     `json:"pad_token_id"`
	Activation   string   `json:"hidden_act"`
	Epsilon      float64  `json:"layer_norm_eps"`
	Position     string   `json:"position_embedding_type"`

	// Of ModernBERT:
	ModernActivation string  `json:"hidden_activation"`
	NormEpsilon      float64 `json:"norm_eps"`
	GlobalEvery      int     `json:"global_attn_every_n_layers"`
	GlobalTheta      float64 `json:"global_rope_theta"`
	LocalTheta       float64 `json:"local_rope_theta"`
	LocalWindow      int     `json:"local_attention"`
}

// encoder turns token ids into a vector of each.
type encoder interface {
	// encode returns the hidden state of each token, rows one behind another. It uses up to some threads.
	encode(ctx context.Context, ids []int, threads int) ([]float32, error)
}

// Model is a loaded model. It is safe for concurrent use.
type Model struct {
	encoder   encoder
	tokenizer *tokenizer
	hidden    int
	positions int // tokens of a text, special ones included
	pooling   string
}

// Files lists the files in a model's directory. The last ones may be missing.
var (
	Files         = []string{"config.json", "tokenizer.json", "model.safetensors"}
	OptionalFiles = []string{"1_Pooling/config.json"}
)

// usualPositions is the longest text of a model that does not say how long it is, in tokens.
const usualPositions = 512

// Load reads a model from its directory. Errors name the file.
func Load(dir string) (*Model, error) {
	var c config
	if err := readJSON(filepath.Join(dir, "config.json"), &c); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", filepath.Join(dir, "config.json"), err)
	}
	m := &Model{hidden: c.Hidden, positions: c.Positions}
	var err error
	if m.tokenizer, err = loadTokenizer(filepath.Join(dir, "tokenizer.json"), c.Vocabulary); err != nil {
		return nil, err
	}
	if m.pooling, err = readPooling(filepath.Join(dir, "1_Pooling", "config.json")); err != nil {
		return nil, err
	}
	weights := filepath.Join(dir, "model.safetensors")
	t, err := openTensors(weights)
	if err != nil {
		return nil, err
	}
	switch c.Type {
	case "modernbert":
		m.encoder, err = loadModern(t, &c)
	default:
		offset := 0
		if c.Type == "xlm-roberta" {
			// Positions count from behind that of the padding.
			offset = 2
			if c.Padding != nil {
				offset = *c.Padding + 1
			}
			m.positions -= offset
		}
		m.encoder, err = loadBERT(t, &c, offset)
	}
	if err = errors.Join(err, t.close()); err != nil {
		return nil, fmt.Errorf("cannot read the model in %s: %w", weights, err)
	}
	if n := len(m.tokenizer.before) + len(m.tokenizer.after); n > m.positions {
		return nil, fmt.Errorf("cannot use %s: it puts %d tokens around each text, and the model takes %d tokens at most", filepath.Join(dir, "tokenizer.json"), n, m.positions)
	}
	return m, nil
}

func readJSON(name string, dst any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, dst); err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	return nil
}

// The maximum numbers of a configuration. They are far above those of real models, and keep a damaged file from filling the memory.
const (
	maxWidth  = 1 << 16
	maxLayers = 1 << 10
	maxTokens = 1 << 24
)

// check refuses models of other kinds, and numbers that no such model has.
func (c *config) check() error {
	if c.Type == "" && len(c.Architecture) > 0 {
		c.Type = strings.ToLower(strings.TrimSuffix(c.Architecture[0], "Model"))
	}
	switch c.Type {
	case "bert", "xlm-roberta", "modernbert":
	default:
		return fmt.Errorf("unknown model type %q: use bert, xlm-roberta or modernbert", c.Type)
	}
	if c.Positions == 0 {
		c.Positions = usualPositions
	}
	switch {
	case c.Hidden < 1 || c.Hidden > maxWidth || c.Intermediate < 1 || c.Intermediate > maxWidth:
		return fmt.Errorf("hidden_size and intermediate_size must be from 1 to %d", maxWidth)
	case c.Layers < 1 || c.Layers > maxLayers:
		return fmt.Errorf("num_hidden_layers must be from 1 to %d", maxLayers)
	case c.Heads < 1 || c.Hidden%c.Heads != 0:
		return fmt.Errorf("num_attention_heads must divide hidden_size")
	case c.Vocabulary < 1 || c.Vocabulary > maxTokens || c.Positions < 4 || c.Positions > maxTokens:
		return fmt.Errorf("vocab_size must be from 1 to %d, and max_position_embeddings from 4", maxTokens)
	case c.TokenTypes > maxTokens:
		return fmt.Errorf("type_vocab_size must be at most %d", maxTokens)
	case c.Position != "" && c.Position != "absolute":
		return fmt.Errorf("unknown position_embedding_type %q: use absolute", c.Position)
	case c.Padding != nil && (*c.Padding < 0 || *c.Padding > c.Positions-4):
		if c.Type == "xlm-roberta" {
			return fmt.Errorf("pad_token_id %d leaves no positions", *c.Padding)
		}
	}
	return nil
}

// readPooling reads which pooling a model wants.
func readPooling(name string) (string, error) {
	var p struct {
		CLS      bool `json:"pooling_mode_cls_token"`
		Mean     bool `json:"pooling_mode_mean_tokens"`
		Last     bool `json:"pooling_mode_lasttoken"`
		MeanSqrt bool `json:"pooling_mode_mean_sqrt_len_tokens"`
		Max      bool `json:"pooling_mode_max_tokens"`
	}
	if err := readJSON(name, &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	switch {
	case p.CLS:
		return poolCLS, nil
	case p.Mean:
		return poolMean, nil
	case p.Last:
		return poolLast, nil
	case p.MeanSqrt:
		return poolMeanSqrt, nil
	case p.Max:
		return poolMax, nil
	}
	return poolMean, nil
}

// Dimensions is the length of the vectors.
func (m *Model) Dimensions() int { return m.hidden }

// Embed returns the vector of a text, not normalised. Text beyond the model's maximum length does not count. It uses up to threads
// threads; the error is that of ctx.
func (m *Model) Embed(ctx context.Context, text string, pooling Pooling, threads int) ([]float32, error) {
	ids := m.tokenizer.encode(text, m.positions)
	states, err := m.encoder.encode(ctx, ids, max(threads, 1))
	if err != nil {
		return nil, err
	}
	how := m.pooling
	switch pooling {
	case ForceCLS:
		how = poolCLS
	case ForceMean:
		how = poolMean
	}
	return pool(states, m.hidden, how), nil
}

// pool makes one vector of the vectors of the tokens.
func pool(states []float32, width int, how string) []float32 {
	rows := slices.Collect(slices.Chunk(states, width))
	switch how {
	case poolCLS:
		return slices.Clone(rows[0])
	case poolLast:
		return slices.Clone(rows[len(rows)-1])
	case poolMax:
		v := slices.Clone(rows[0])
		for _, row := range rows[1:] {
			for i, x := range row {
				v[i] = max(v[i], x)
			}
		}
		return v
	}
	v := make([]float32, width)
	for _, row := range rows {
		simd.Add(v, row)
	}
	by := float32(len(rows))
	if how == poolMeanSqrt {
		by = sqrt(by)
	}
	for i := range v {
		v[i] /= by
	}
	return v
}
