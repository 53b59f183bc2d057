package transformer

import (
	"context"
	"fmt"
	"math"

	"svc/simd"
)

// modern is ModernBERT: norms before the layers, rotary positions, gated units, and attention that sees only
// near tokens in most layers.
type modern struct {
	width, heads int
	words        []float32
	norm, final  layerNorm
	layers       []modernLayer
	activation   func(float32) float32
}

type modernLayer struct {
	norm       *layerNorm // nil in the first layer, whose input is normalised
	qkv, out   linear
	second     layerNorm
	gated      linear // the unit's input and its gate
	down       linear
	window     int // how far a token sees; 0 for all
	theta      float64
	outputSize int
}

func loadModern(t *tensors, c *config) (*modern, error) {
	if err := t.findPrefix("embeddings.tok_embeddings.weight", "model.", "modernbert."); err != nil {
		return nil, err
	}
	name := c.ModernActivation
	m := &modern{width: c.Hidden, heads: c.Heads, activation: activation(name)}
	if m.activation == nil || c.Hidden/c.Heads%2 != 0 {
		return nil, fmt.Errorf("unknown activation %q, or heads have an odd size", name)
	}
	defaults := func(x *float64, usual float64) {
		if *x == 0 {
			*x = usual
		}
	}
	defaults(&c.NormEpsilon, 1e-5)
	defaults(&c.GlobalTheta, 160000)
	defaults(&c.LocalTheta, 10000)
	if c.GlobalEvery <= 0 {
		c.GlobalEvery = 3
	}
	if c.LocalWindow <= 0 {
		c.LocalWindow = 128
	}
	var err error
	if m.words, err = t.read("embeddings.tok_embeddings.weight", c.Vocabulary, c.Hidden); err != nil {
		return nil, err
	}
	if m.norm, err = loadNorm(t, "embeddings.norm", c.Hidden, false, c.NormEpsilon); err != nil {
		return nil, err
	}
	if m.final, err = loadNorm(t, "final_norm", c.Hidden, false, c.NormEpsilon); err != nil {
		return nil, err
	}
	for i := range c.Layers {
		l, err := loadModernLayer(t, i, c)
		if err != nil {
			return nil, err
		}
		m.layers = append(m.layers, l)
	}
	return m, nil
}

// loadModernLayer reads layer i. If GlobalEvery divides the number of a layer, it attends to all tokens, otherwise to near ones.
func loadModernLayer(t *tensors, i int, c *config) (l modernLayer, err error) {
	name := fmt.Sprintf("layers.%d.", i)
	l = modernLayer{theta: c.GlobalTheta, outputSize: c.Intermediate}
	if i%c.GlobalEvery != 0 {
		l.window, l.theta = c.LocalWindow/2, c.LocalTheta
	}
	if i > 0 {
		n, err := loadNorm(t, name+"attn_norm", c.Hidden, false, c.NormEpsilon)
		if err != nil {
			return l, err
		}
		l.norm = &n
	}
	if l.qkv, err = loadLinear(t, name+"attn.Wqkv", c.Hidden, 3*c.Hidden, false); err != nil {
		return l, err
	}
	if l.out, err = loadLinear(t, name+"attn.Wo", c.Hidden, c.Hidden, false); err != nil {
		return l, err
	}
	if l.second, err = loadNorm(t, name+"mlp_norm", c.Hidden, false, c.NormEpsilon); err != nil {
		return l, err
	}
	if l.gated, err = loadLinear(t, name+"mlp.Wi", c.Hidden, 2*c.Intermediate, false); err != nil {
		return l, err
	}
	l.down, err = loadLinear(t, name+"mlp.Wo", c.Intermediate, c.Hidden, false)
	return l, err
}

// encode runs the layers. Positions are rotations of queries and keys. Each layer normalises its input.
func (m *modern) encode(ctx context.Context, ids []int, threads int) ([]float32, error) {
	x := make([]float32, len(ids)*m.width)
	for i, id := range ids {
		copy(x[i*m.width:(i+1)*m.width], m.words[id*m.width:])
	}
	m.norm.apply(x)
	normed := make([]float32, len(x))
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := &m.layers[i]
		copy(normed, x)
		if l.norm != nil {
			l.norm.apply(normed)
		}
		q, k, v := split3(l.qkv.apply(normed, threads), m.width)
		rotate(q, m.width, m.heads, l.theta)
		rotate(k, m.width, m.heads, l.theta)
		simd.Add(x, l.out.apply(attention(q, k, v, m.width, m.heads, l.window, threads), threads))
		copy(normed, x)
		l.second.apply(normed)
		simd.Add(x, l.down.apply(m.gate(l.gated.apply(normed, threads), l.outputSize), threads))
	}
	m.final.apply(x)
	return x, nil
}

// split3 cuts rows of three parts into the parts.
func split3(rows []float32, width int) (a, b, c []float32) {
	n := len(rows) / (3 * width)
	a, b, c = make([]float32, n*width), make([]float32, n*width), make([]float32, n*width)
	for i := range n {
		row := rows[i*3*width:]
		copy(a[i*width:(i+1)*width], row)
		copy(b[i*width:(i+1)*width], row[width:])
		copy(c[i*width:(i+1)*width], row[2*width:])
	}
	return a, b, c
}

// gate multiplies the activated first half of each row by its second half.
func (m *modern) gate(rows []float32, size int) []float32 {
	out := make([]float32, len(rows)/2)
	for i := range out {
		at := i/size*2*size + i%size
		out[i] = m.activation(rows[at]) * rows[at+size]
	}
	return out
}

// rotate turns pairs of numbers of each head by angles that grow with the position (Su et al., RoFormer, arXiv:2104.09864).
// The numbers of a pair lie half a head apart.
func rotate(x []float32, width, heads int, theta float64) {
	size := width / heads
	half := size / 2
	for i := range half {
		frequency := math.Pow(theta, -float64(2*i)/float64(size))
		for t := range len(x) / width {
			sin, cos := math.Sincos(float64(t) * frequency)
			for h := range heads {
				at := t*width + h*size + i
				a, b := float64(x[at]), float64(x[at+half])
				x[at] = float32(a*cos - b*sin)
				x[at+half] = float32(b*cos + a*sin)
			}
		}
	}
}
