// Package transformer runs sentence embedding models on this machine: the
// encoders BERT, XLM-RoBERTa and ModernBERT, from a directory as the Hugging
// Face hub has it (config.json, tokenizer.json, model.safetensors and
// 1_Pooling/config.json), without any library but the product's own kernels.
//
// Sources: Devlin et al., BERT (arXiv:1810.04805); Conneau et al., XLM-R
// (arXiv:1911.02116); Warner et al., ModernBERT (arXiv:2412.13663); the formats
// of the safetensors and tokenizers projects.
package transformer
