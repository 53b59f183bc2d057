// Package transformer runs sentence embedding models on this machine: the encoders BERT, XLM-RoBERTa and ModernBERT. A
// model is a directory as the Hugging Face hub has it: config.json, tokenizer.json, model.safetensors, and perhaps
// 1_Pooling/config.json. It uses no library but the product's own kernels (package simd).
//
// # From text to vector
//
// The tokenizer normalises the text, splits it into pieces, and cuts each piece into tokens of the vocabulary (words.go has the three
// kinds of vocabularies). The encoder computes a vector for each token, and pooling combines them into one. Tokens beyond the maximum
// length of the model are dropped.
//
// Matrices are rows of float32. A layer processes its weights in blocks that fit into the cache of a core, and multiplies all tokens
// by a block (linear.apply). Threads take blocks, and heads of the attention.
//
// # Caveats
//
//   - A model whose tokenizer.json needs an unimplemented part is refused, because its vectors would be silently wrong.
//   - Vectors are not normalised.
//   - Files come from users. Sizes are checked before memory is allocated.
//
// # Sources
//
// Devlin et al., BERT (arXiv:1810.04805). Conneau et al., XLM-R (arXiv:1911.02116). Warner et al., ModernBERT
// (arXiv:2412.13663). The formats of the safetensors and tokenizers projects.
package transformer
