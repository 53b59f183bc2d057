package transformer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/transformer/transformertest"
)

const (
	hidden = transformertest.Hidden
	inner  = transformertest.Intermediate
	heads  = transformertest.Heads
)

// twin is the reference implementation of a model, in float64, number by number as in the papers.
type twin struct{ transformertest.Weights }

func (w twin) linear(x []float64, name string, out int) []float64 {
	y := make([]float64, out)
	weight, bias := w.Values[name+".weight"], w.Values[name+".bias"]
	for o := range out {
		for i, v := range x {
			y[o] += v * float64(weight[o*len(x)+i])
		}
		if bias != nil {
			y[o] += float64(bias[o])
		}
	}
	return y
}

func (w twin) norm(x []float64, name string, epsilon float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(variance+epsilon) * float64(w.Values[name+".weight"][i])
		if bias := w.Values[name+".bias"]; bias != nil {
			y[i] += float64(bias[i])
		}
	}
	return y
}

func plus(a, b []float64) []float64 {
	c := slices.Clone(a)
	for i, v := range b {
		c[i] += v
	}
	return c
}

func gelu(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }

func (w twin) row(name string, i int) []float64 {
	var row []float64
	for _, v := range w.Values[name][i*hidden : (i+1)*hidden] {
		row = append(row, float64(v))
	}
	return row
}

// attend computes the attention of all tokens; near says which tokens see each other.
func attend(q, k, v [][]float64, near func(i, j int) bool) [][]float64 {
	size := hidden / heads
	out := make([][]float64, len(q))
	for i := range q {
		out[i] = make([]float64, hidden)
		for h := range heads {
			weights, sum := make([]float64, len(k)), 0.0
			for j := range k {
				if !near(i, j) {
					continue
				}
				dot := 0.0
				for n := h * size; n < (h+1)*size; n++ {
					dot += q[i][n] * k[j][n]
				}
				weights[j] = math.Exp(dot / math.Sqrt(float64(size)))
				sum += weights[j]
			}
			for j := range v {
				for n := h * size; n < (h+1)*size; n++ {
					out[i][n] += weights[j] / sum * v[j][n]
				}
			}
		}
	}
	return out
}

func (w twin) bert(ids []int, offset int) [][]float64 {
	var x [][]float64
	for i, id := range ids {
		sum := plus(plus(w.row("embeddings.word_embeddings.weight", id), w.row("embeddings.position_embeddings.weight", i+offset)), w.row("embeddings.token_type_embeddings.weight", 0))
		x = append(x, w.norm(sum, "embeddings.LayerNorm", 1e-12))
	}
	for l := range transformertest.Layers {
		name := fmt.Sprintf("encoder.layer.%d.", l)
		var q, k, v [][]float64
		for _, row := range x {
			q = append(q, w.linear(row, name+"attention.self.query", hidden))
			k = append(k, w.linear(row, name+"attention.self.key", hidden))
			v = append(v, w.linear(row, name+"attention.self.value", hidden))
		}
		for i, seen := range attend(q, k, v, func(int, int) bool { return true }) {
			row := w.norm(plus(x[i], w.linear(seen, name+"attention.output.dense", hidden)), name+"attention.output.LayerNorm", 1e-12)
			up := w.linear(row, name+"intermediate.dense", inner)
			for n, u := range up {
				up[n] = gelu(u)
			}
			x[i] = w.norm(plus(row, w.linear(up, name+"output.dense", hidden)), name+"output.LayerNorm", 1e-12)
		}
	}
	return x
}

func (w twin) modern(ids []int) [][]float64 {
	var x [][]float64
	for _, id := range ids {
		x = append(x, w.norm(w.row("model.embeddings.tok_embeddings.weight", id), "model.embeddings.norm", 1e-5))
	}
	for l := range transformertest.Layers {
		name := fmt.Sprintf("model.layers.%d.", l)
		theta, window := 160000.0, len(ids)
		if l%3 != 0 {
			theta, window = 10000, 2
		}
		var q, k, v [][]float64
		for t, row := range x {
			if l > 0 {
				row = w.norm(row, name+"attn_norm", 1e-5)
			}
			qkv := w.linear(row, name+"attn.Wqkv", 3*hidden)
			for _, part := range [][]float64{qkv[:hidden], qkv[hidden : 2*hidden]} {
				size := hidden / heads
				for h := range heads {
					before := slices.Clone(part[h*size : (h+1)*size])
					for n := range size {
						angle := float64(t) / math.Pow(theta, float64(2*(n%(size/2)))/float64(size))
						turned := -before[(n+size/2)%size]
						if n >= size/2 {
							turned = before[n-size/2]
						}
						part[h*size+n] = before[n]*math.Cos(angle) + turned*math.Sin(angle)
					}
				}
			}
			q, k, v = append(q, qkv[:hidden]), append(k, qkv[hidden:2*hidden]), append(v, qkv[2*hidden:])
		}
		for i, seen := range attend(q, k, v, func(i, j int) bool { return i-j <= window && j-i <= window }) {
			x[i] = plus(x[i], w.linear(seen, name+"attn.Wo", hidden))
			both := w.linear(w.norm(x[i], name+"mlp_norm", 1e-5), name+"mlp.Wi", 2*inner)
			unit := make([]float64, inner)
			for n := range unit {
				unit[n] = gelu(both[n]) * both[inner+n]
			}
			x[i] = plus(x[i], w.linear(unit, name+"mlp.Wo", hidden))
		}
	}
	for i := range x {
		x[i] = w.norm(x[i], "model.final_norm", 1e-5)
	}
	return x
}

func TestModels(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, tt := range []struct{ kind, tensors, tokenizer, pooling string }{
		{"bert", "F32", "wordpiece", ""},
		{"bert", "F16", "wordpiece", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}`},
		{"xlm-roberta", "BF16", "unigram", `{"pooling_mode_max_tokens":true}`},
		{"xlm-roberta", "F32", "unigram", `{"pooling_mode_mean_sqrt_len_tokens":true,"pooling_mode_max_tokens":true}`},
		{"modernbert", "F32", "bpe", `{"pooling_mode_lasttoken":true}`},
		{"modernbert", "BF16", "bpe", `{}`},
	} {
		t.Run(tt.kind+tt.tensors, func(t *testing.T) {
			dir := t.TempDir()
			const vocabulary = 600
			w := twin{transformertest.Make(t, dir, tt.kind, tt.tensors, filepath.Join("testdata", tt.tokenizer+".json"), vocabulary, seed)}
			if tt.pooling != "" {
				transformertest.Write(t, filepath.Join(dir, "1_Pooling", "config.json"), []byte(tt.pooling))
			}
			m, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if m.Dimensions() != hidden || m.positions != transformertest.Positions {
				t.Fatalf("%d dimensions, %d positions", m.Dimensions(), m.positions)
			}
			for _, text := range []string{"", "hello", "The quick brown fox", "hello world 日本語", strings.Repeat("search engines ", 50)} {
				ids := m.tokenizer.encode(text, m.positions)
				if len(ids) > transformertest.Positions {
					t.Fatalf("%d tokens", len(ids))
				}
				var states [][]float64
				switch tt.kind {
				case "modernbert":
					states = w.modern(ids)
				case "xlm-roberta":
					states = w.bert(ids, 2)
				default:
					states = w.bert(ids, 0)
				}
				for how, want := range map[Pooling][]float64{ForceCLS: states[0], ForceMean: pooled(states, poolMean), UseModel: pooled(states, m.pooling)} {
					for _, threads := range []int{1, 3} {
						got, err := m.Embed(t.Context(), text, how, threads)
						if err != nil {
							t.Fatal(err)
						}
						for i := range want {
							if math.Abs(float64(got[i])-want[i]) > 1e-4*(1+math.Abs(want[i])) {
								t.Fatalf("%q, %s, %d threads: got %v\nwant %v", text, how, threads, got, want)
							}
						}
					}
				}
			}
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := m.Embed(cancelled, "x", UseModel, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func pooled(states [][]float64, how string) []float64 {
	v := make([]float64, hidden)
	switch how {
	case poolCLS:
		return states[0]
	case poolLast:
		return states[len(states)-1]
	case poolMax:
		for i := range v {
			v[i] = math.Inf(-1)
			for _, s := range states {
				v[i] = math.Max(v[i], s[i])
			}
		}
		return v
	}
	by := float64(len(states))
	if how == poolMeanSqrt {
		by = math.Sqrt(by)
	}
	for _, s := range states {
		for i := range v {
			v[i] += s[i] / by
		}
	}
	return v
}

func TestDamagedModels(t *testing.T) {
	dir := t.TempDir()
	transformertest.Make(t, dir, "bert", "F32", filepath.Join("testdata", "wordpiece.json"), 300, 1)
	read := func(file string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := map[string][]byte{}
	for _, file := range Files {
		whole[file] = read(file)
	}
	for _, tt := range []struct {
		file, old, new, words string
	}{
		{"config.json", `"bert"`, `"gpt2"`, "gpt2"},
		{"config.json", `"num_attention_heads":2`, `"num_attention_heads":3`, "num_attention_heads"},
		{"config.json", `"hidden_size":16`, `"hidden_size":18`, "shape"},
		{"config.json", `"num_hidden_layers":3`, `"num_hidden_layers":4`, "missing"},
		{"config.json", `"hidden_size":16`, `"hidden_size":1000000`, "hidden_size"},
		{"config.json", `"type_vocab_size":2`, `"type_vocab_size":1152921504606846976`, "type_vocab_size"},
		{"config.json", `{`, ``, "config.json"},
		{"tokenizer.json", `"WordPiece"`, `"Magic"`, "Magic"},
		{"tokenizer.json", `"BertNormalizer"`, `"Magic"`, "Magic"},
		{"tokenizer.json", `"BertPreTokenizer"`, `"Magic"`, "Magic"},
		{"tokenizer.json", `"TemplateProcessing"`, `"Magic"`, "Magic"},
		{"tokenizer.json", `"unk_token":"[UNK]"`, `"unk_token":"[NO]"`, "unk_token"},
		{"tokenizer.json", `"ids":[2]`, `"ids":[2` + strings.Repeat(",2", transformertest.Positions) + `]`, "tokens around each text"},
		{"model.safetensors", `"dtype":"F32"`, `"dtype":"I64"`, "I64"},
		{"model.safetensors", `"data_offsets":[0,`, `"data_offsets":[4,`, "bytes"},
		{"model.safetensors", `{`, `x`, "safetensors"},
	} {
		transformertest.Write(t, filepath.Join(dir, tt.file), []byte(strings.Replace(string(whole[tt.file]), tt.old, tt.new, 1)))
		if _, err := Load(dir); err == nil || tt.words != "bytes" && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s, %s: %v", tt.file, tt.new, err)
		}
		transformertest.Write(t, filepath.Join(dir, tt.file), whole[tt.file])
	}
	if _, err := Load(dir); err != nil {
		t.Fatalf("the undamaged model: %v", err)
	}
	for n := 0; n < len(whole["model.safetensors"]); n += 1009 {
		transformertest.Write(t, filepath.Join(dir, "model.safetensors"), whole["model.safetensors"][:n])
		if _, err := Load(dir); err == nil {
			t.Errorf("%d bytes of the tensors are accepted", n)
		}
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing model: %v", err)
	}
}

// FuzzTokenizer reads any tokenizer.json, and tokenizes texts with it.
func FuzzTokenizer(f *testing.F) {
	for _, name := range []string{"wordpiece", "unigram", "bpe"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "The quick\tété 日本 [MASK]\xff!")
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tk, err := readTokenizer(file, 1000)
		if err != nil {
			return
		}
		ids := tk.encode(text, 20)
		if len(ids) > max(20, len(tk.before)+len(tk.after)) || len(ids) == 0 {
			t.Fatalf("%d ids", len(ids))
		}
		for _, id := range ids {
			if id < 0 || id >= 1000 {
				t.Fatalf("id %d", id)
			}
		}
	})
}
