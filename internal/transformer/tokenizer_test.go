package transformer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTokenizers compares with the output of the tokenizers library of Hugging Face (0.23). Its three small tokenizers were trained on a
// few sentences; the SentencePiece one has a table of normalisations.
func TestTokenizers(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Wordpiece, Unigram, Bpe []struct {
			Text string
			IDs  []int
		}
		Vocabulary map[string]int
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][]struct {
		Text string
		IDs  []int
	}{"wordpiece": golden.Wordpiece, "unigram": golden.Unigram, "bpe": golden.Bpe} {
		tk, err := loadTokenizer(filepath.Join("testdata", name+".json"), golden.Vocabulary[name])
		if err != nil {
			t.Fatal(err)
		}
		if len(texts) < 20 {
			t.Fatalf("%s: %d texts", name, len(texts))
		}
		for _, tt := range texts {
			got := tk.encode(tt.Text, 1000)
			if !slices.Equal(got, tt.IDs) {
				t.Errorf("%s: %q\n got %v\nwant %v", name, tt.Text, got, tt.IDs)
			}
			if len(tt.IDs) > 6 {
				want := append(slices.Clone(tt.IDs[:5]), tt.IDs[len(tt.IDs)-1])
				if got := tk.encode(tt.Text, 6); !slices.Equal(got, want) {
					t.Errorf("%s: %q cut: %v, want %v", name, tt.Text, got, want)
				}
			}
		}
		if _, err := loadTokenizer(filepath.Join("testdata", name+".json"), 50); err == nil {
			t.Errorf("%s: ids beyond the vocabulary are accepted", name)
		}
	}
}
