package transformer

import (
	"math"
	"sync"

	"svc/simd"
)

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// linear is y = W·x + b for each row x.
type linear struct {
	in, out int
	weight  []float32 // a row for each output
	bias    []float32 // nil for none
}

// loadLinear reads a layer. It reads its bias if there is one, or if it must have one.
func loadLinear(t *tensors, name string, in, out int, bias bool) (l linear, err error) {
	l = linear{in: in, out: out}
	if l.weight, err = t.read(name+".weight", out, in); err != nil {
		return l, err
	}
	if bias || t.has(name+".bias") {
		l.bias, err = t.read(name+".bias", out)
	}
	return l, err
}

// blockBytes of weights stay in a core's cache while all rows pass by.
const blockBytes = 128 << 10

// apply computes all rows of x, several blocks of weights at a time.
func (l *linear) apply(x []float32, threads int) []float32 {
	rows := len(x) / l.in
	y := make([]float32, rows*l.out)
	block := max(blockBytes/4/l.in, 1)
	run(threads, (l.out+block-1)/block, func(n int) {
		from, to := n*block, min((n+1)*block, l.out)
		weight := l.weight[from*l.in : to*l.in]
		for r := range rows {
			out := y[r*l.out+from : r*l.out+to]
			simd.DotRows(out, x[r*l.in:(r+1)*l.in], weight)
			if l.bias != nil {
				simd.Add(out, l.bias[from:to])
			}
		}
	})
	return y
}

// run calls work for each number below n, from up to some goroutines, and waits for all.
func run(threads, n int, work func(n int)) {
	threads = min(threads, n)
	if threads <= 1 {
		for i := range n {
			work(i)
		}
		return
	}
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			for i := t; i < n; i += threads {
				work(i)
			}
		})
	}
	wg.Wait()
}

// layerNorm is layer normalisation.
type layerNorm struct {
	weight, bias []float32 // bias nil for none
	epsilon      float64
}

// loadNorm reads a normalisation. It reads the bias if there is one, or if there must be one.
func loadNorm(t *tensors, name string, width int, bias bool, epsilon float64) (n layerNorm, err error) {
	n.epsilon = epsilon
	weight, offset := name+".weight", name+".bias"
	if !t.has(weight) && t.has(name+".gamma") { // as old files call them
		weight, offset = name+".gamma", name+".beta"
	}
	if n.weight, err = t.read(weight, width); err != nil {
		return n, err
	}
	if bias || t.has(offset) {
		n.bias, err = t.read(offset, width)
	}
	return n, err
}

// apply normalises rows in place.
func (n *layerNorm) apply(x []float32) {
	width := len(n.weight)
	for ; len(x) > 0; x = x[width:] {
		row := x[:width]
		var sum, squares float64
		for _, v := range row {
			sum += float64(v)
		}
		mean := sum / float64(width)
		for _, v := range row {
			d := float64(v) - mean
			squares += d * d
		}
		scale := 1 / math.Sqrt(squares/float64(width)+n.epsilon)
		for i, v := range row {
			row[i] = float32((float64(v)-mean)*scale) * n.weight[i]
		}
		if n.bias != nil {
			simd.Add(row, n.bias)
		}
	}
}

// activation returns the function of a name in config.json; nil if it is unknown.
func activation(name string) func(float32) float32 {
	switch name {
	case "", "gelu":
		return func(x float32) float32 { return float32(0.5 * float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2))) }
	case "gelu_new", "gelu_pytorch_tanh":
		return func(v float32) float32 {
			x := float64(v)
			return float32(0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))))
		}
	case "relu":
		return func(x float32) float32 { return max(x, 0) }
	case "silu", "swish":
		return func(x float32) float32 { return float32(float64(x) / (1 + math.Exp(-float64(x)))) }
	}
	return nil
}

// attention computes softmax(q·kᵀ/√d)·v head by head. q, k and v have a row for each token, and a head's numbers one
// behind another in it. A token sees those at most window away, all when window is 0.
func attention(q, k, v []float32, width, heads, window, threads int) []float32 {
	tokens, size := len(q)/width, width/heads
	out := make([]float32, len(q))
	scale := 1 / sqrt(float32(size))
	run(threads, heads, func(h int) {
		// The keys of a head are contiguous, so that a kernel scores a query against all of them. Values are stored by column.
		keys, values := make([]float32, tokens*size), make([]float32, tokens*size)
		for t := range tokens {
			at := t*width + h*size
			copy(keys[t*size:], k[at:at+size])
			for i, x := range v[at : at+size] {
				values[i*tokens+t] = x
			}
		}
		scores := make([]float32, tokens)
		for t := range tokens {
			from, to := 0, tokens
			if window > 0 {
				from, to = max(t-window, 0), min(t+window+1, tokens)
			}
			at := t*width + h*size
			s := scores[:to-from]
			simd.DotRows(s, q[at:at+size], keys[from*size:to*size])
			softmax(s, scale)
			for i := range size {
				out[at+i] = simd.Dot(s, values[i*tokens+from:i*tokens+to])
			}
		}
	})
	return out
}

// softmax turns scores into shares that add up to 1. The largest score is subtracted first, so that nothing
// overflows.
func softmax(s []float32, scale float32) {
	most := s[0]
	for _, x := range s {
		most = max(most, x)
	}
	var sum float64
	for i, x := range s {
		e := math.Exp(float64((x - most) * scale))
		s[i] = float32(e)
		sum += e
	}
	for i := range s {
		s[i] = float32(float64(s[i]) / sum)
	}
}
