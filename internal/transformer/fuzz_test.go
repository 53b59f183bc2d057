package transformer

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/transformer/transformertest"
)

// FuzzTensors opens any file as tensors and reads each: never more than the file has.
func FuzzTensors(f *testing.F) {
	for _, header := range []string{
		`{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}`, `{"bert.b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}}`,
		`{"c":{"dtype":"F16","shape":[4],"data_offsets":[-8,0]}}`, `{"d":{"dtype":"F32","shape":[1,-1],"data_offsets":[8,0]}}`, `{"e":{"dtype":"F32","shape":[2305843009213693952,8],"data_offsets":[0,0]}}`,
	} {
		f.Add(append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0, 0, 0x80, 0x3f, 1, 2, 3, 4))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		name := filepath.Join(t.TempDir(), "model.safetensors")
		transformertest.Write(t, name, file)
		open, err := openTensors(name)
		if err != nil {
			return
		}
		defer open.close()
		for key, i := range open.header {
			values, err := open.read(key, i.Shape...)
			if err == nil && 2*len(values) > len(file) {
				t.Errorf("%s: %d numbers out of %d bytes", key, len(values), len(file))
			}
		}
		_ = open.findPrefix("a", "bert.")
	})
}

// FuzzConfig checks any configuration of a model: an accepted one must keep all derived sizes within bounds.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		`{"model_type":"bert","hidden_size":8,"intermediate_size":16,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":100,"max_position_embeddings":64}`,
		`{"architectures":["XLMRobertaModel"],"hidden_size":8,"num_attention_heads":0}`, `{"model_type":"modernbert","pad_token_id":-1}`, `{}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var c config
		if json.Unmarshal(file, &c) != nil || c.check() != nil {
			return
		}
		if c.Hidden < 1 || c.Hidden > maxWidth || c.Heads < 1 || c.Hidden%c.Heads != 0 || c.Layers > maxLayers || c.Vocabulary > maxTokens || c.Positions < 4 || c.Positions > maxTokens {
			t.Errorf("%s is accepted as %+v", file, c)
		}
		// The weights are missing: every model must report it, and allocate nothing for them.
		empty := &tensors{header: map[string]tensorInfo{}}
		var err error
		if c.Type == "modernbert" {
			_, err = loadModern(empty, &c)
		} else {
			_, err = loadBERT(empty, &c, 0)
		}
		if err == nil || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: a model without weights: %v", file, err)
		}
	})
}
