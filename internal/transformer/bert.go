package transformer

import (
	"context"
	"fmt"

	"svc/simd"
)

// bert is BERT and, with its positions moved, XLM-RoBERTa.
type bert struct {
	width, heads int
	words        []float32 // a row for each token of the vocabulary
	positions    []float32 // a row for each position, the token type's row added
	norm         layerNorm
	layers       []bertLayer
	activation   func(float32) float32
}

type bertLayer struct {
	query, key, value, output linear
	attentionNorm             layerNorm
	up, down                  linear
	norm                      layerNorm
}

// loadBERT reads the weights. Positions begin at an offset. The only token type that is used is the first:
// its row is added to all positions.
func loadBERT(t *tensors, c *config, offset int) (*bert, error) {
	if err := t.findPrefix("embeddings.word_embeddings.weight", "bert.", "roberta.", "model."); err != nil {
		return nil, err
	}
	b := &bert{width: c.Hidden, heads: c.Heads, activation: activation(c.Activation)}
	if b.activation == nil {
		return nil, fmt.Errorf("unknown activation %q", c.Activation)
	}
	if c.Epsilon == 0 {
		c.Epsilon = 1e-12
	}
	var err error
	if b.words, err = t.read("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden); err != nil {
		return nil, err
	}
	if b.positions, err = t.read("embeddings.position_embeddings.weight", c.Positions, c.Hidden); err != nil {
		return nil, err
	}
	b.positions = b.positions[offset*c.Hidden:]
	if c.TokenTypes > 0 {
		types, err := t.read("embeddings.token_type_embeddings.weight", c.TokenTypes, c.Hidden)
		if err != nil {
			return nil, err
		}
		for from := 0; from < len(b.positions); from += c.Hidden {
			simd.Add(b.positions[from:from+c.Hidden], types[:c.Hidden])
		}
	}
	if b.norm, err = loadNorm(t, "embeddings.LayerNorm", c.Hidden, true, c.Epsilon); err != nil {
		return nil, err
	}
	for i := range c.Layers {
		l, err := loadBERTLayer(t, fmt.Sprintf("encoder.layer.%d.", i), c)
		if err != nil {
			return nil, err
		}
		b.layers = append(b.layers, l)
	}
	return b, nil
}

func loadBERTLayer(t *tensors, name string, c *config) (l bertLayer, err error) {
	for _, part := range []struct {
		dst     *linear
		name    string
		in, out int
	}{
		{&l.query, "attention.self.query", c.Hidden, c.Hidden},
		{&l.key, "attention.self.key", c.Hidden, c.Hidden},
		{&l.value, "attention.self.value", c.Hidden, c.Hidden},
		{&l.output, "attention.output.dense", c.Hidden, c.Hidden},
		{&l.up, "intermediate.dense", c.Hidden, c.Intermediate},
		{&l.down, "output.dense", c.Intermediate, c.Hidden},
	} {
		if *part.dst, err = loadLinear(t, name+part.name, part.in, part.out, true); err != nil {
			return l, err
		}
	}
	if l.attentionNorm, err = loadNorm(t, name+"attention.output.LayerNorm", c.Hidden, true, c.Epsilon); err != nil {
		return l, err
	}
	l.norm, err = loadNorm(t, name+"output.LayerNorm", c.Hidden, true, c.Epsilon)
	return l, err
}

// encode runs the layers: attention over all tokens, then two linear layers. The input of each is added to its output.
func (b *bert) encode(ctx context.Context, ids []int, threads int) ([]float32, error) {
	x := make([]float32, len(ids)*b.width)
	for i, id := range ids {
		row := x[i*b.width : (i+1)*b.width]
		copy(row, b.words[id*b.width:])
		simd.Add(row, b.positions[i*b.width:(i+1)*b.width])
	}
	b.norm.apply(x)
	for i := range b.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := &b.layers[i]
		seen := attention(l.query.apply(x, threads), l.key.apply(x, threads), l.value.apply(x, threads), b.width, b.heads, 0, threads)
		simd.Add(x, l.output.apply(seen, threads))
		l.attentionNorm.apply(x)
		up := l.up.apply(x, threads)
		for j, v := range up {
			up[j] = b.activation(v)
		}
		simd.Add(x, l.down.apply(up, threads))
		l.norm.apply(x)
	}
	return x, nil
}
