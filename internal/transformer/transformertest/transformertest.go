// Package transformertest makes small models with random weights for tests.
package transformertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The sizes of the models.
const (
	Hidden       = 16
	Intermediate = 24
	Heads        = 2
	Layers       = 3
	Positions    = 12
)

// Weights are the tensors of a model by name, and their shapes.
type Weights struct {
	Values map[string][]float32
	Shapes map[string][]int
}

// Make writes the files of a model of a type (bert, xlm-roberta or modernbert) to dir, whose tokenizer.json is a file
// with a vocabulary of some size, and its tensors as F32, F16 or BF16. It returns the weights as they were written.
func Make(t *testing.T, dir, kind, tensorType, tokenizer string, vocabulary int, seed uint64) Weights {
	t.Helper()
	w := Weights{map[string][]float32{}, map[string][]int{}}
	random := rand.New(rand.NewPCG(seed, 1))
	add := func(name string, shape ...int) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = round(float32(random.NormFloat64()*0.4), tensorType)
		}
		w.Values[name], w.Shapes[name] = values, shape
	}
	both := func(name string, shape ...int) {
		add(name+".weight", shape...)
		add(name+".bias", shape[0])
	}
	config := map[string]any{"model_type": kind, "vocab_size": vocabulary, "hidden_size": Hidden, "num_hidden_layers": Layers,
		"num_attention_heads": Heads, "intermediate_size": Intermediate, "max_position_embeddings": Positions}
	if kind == "modernbert" {
		maps.Copy(config, map[string]any{"local_attention": 4, "global_attn_every_n_layers": 3})
		add("model.embeddings.tok_embeddings.weight", vocabulary, Hidden)
		add("model.embeddings.norm.weight", Hidden)
		add("model.final_norm.weight", Hidden)
		for i := range Layers {
			layer := fmt.Sprintf("model.layers.%d.", i)
			if i > 0 {
				add(layer+"attn_norm.weight", Hidden)
			}
			add(layer+"mlp_norm.weight", Hidden)
			add(layer+"attn.Wqkv.weight", 3*Hidden, Hidden)
			add(layer+"attn.Wo.weight", Hidden, Hidden)
			add(layer+"mlp.Wi.weight", 2*Intermediate, Hidden)
			add(layer+"mlp.Wo.weight", Hidden, Intermediate)
		}
	} else {
		types := 2
		positions := Positions
		if kind == "xlm-roberta" {
			types, positions = 1, Positions+2
			config["pad_token_id"], config["max_position_embeddings"] = 1, positions
		}
		config["type_vocab_size"] = types
		add("embeddings.word_embeddings.weight", vocabulary, Hidden)
		add("embeddings.position_embeddings.weight", positions, Hidden)
		add("embeddings.token_type_embeddings.weight", types, Hidden)
		both("embeddings.LayerNorm", Hidden)
		for i := range Layers {
			layer := fmt.Sprintf("encoder.layer.%d.", i)
			for _, part := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
				both(layer+part, Hidden, Hidden)
			}
			both(layer+"attention.output.LayerNorm", Hidden)
			both(layer+"intermediate.dense", Intermediate, Hidden)
			both(layer+"output.dense", Hidden, Intermediate)
			both(layer+"output.LayerNorm", Hidden)
		}
	}
	b, err := os.ReadFile(tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(dir, "tokenizer.json"), b)
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(dir, "config.json"), encoded)
	Write(t, filepath.Join(dir, "model.safetensors"), w.encode(t, tensorType))
	return w
}

// Write writes a file, and the directory that it is in.
func Write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func (w Weights) encode(t *testing.T, tensorType string) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(w.Values)) {
		start := len(data)
		for _, v := range w.Values[name] {
			switch tensorType {
			case "F32":
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, toHalf(v))
			}
		}
		header[name] = map[string]any{"dtype": tensorType, "shape": w.Shapes[name], "data_offsets": []int{start, len(data)}}
	}
	encoded, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(encoded))), encoded...), data...)
}

// round makes v a number that the type holds exactly.
func round(v float32, tensorType string) float32 {
	bits := math.Float32bits(v)
	switch tensorType {
	case "BF16":
		bits &^= 1<<16 - 1
	case "F16":
		if v > -1.0/(1<<13) && v < 1.0/(1<<13) { // no subnormal numbers
			return 0
		}
		bits &^= 1<<13 - 1
	}
	return math.Float32frombits(bits)
}

// toHalf writes a number that round made.
func toHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	if bits<<1 == 0 {
		return uint16(bits >> 16)
	}
	return uint16(bits>>16&0x8000) | uint16((bits>>23&255-112)<<10) | uint16(bits>>13&1023)
}
