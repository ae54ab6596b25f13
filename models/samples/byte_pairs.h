// Byte pair encoding of texts, as GPT-2 has it: Radford et al., "Language models are unsupervised multitask
// learners", 2019, section 2.2, after Sennrich et al., "Neural machine translation of rare words with subword
// units", ACL 2016, section 3.2.
//
// - Letters, digits, other characters and white space are separate pieces of a text, by the pattern of GPT-2. A
//   space before a piece belongs to it.
// - A piece is a sequence of bytes. The pair of tokens whose merge is first in the file is merged everywhere in
//   the piece, again and again.
// - Every text has tokens: no token is unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/samples/tokenizer.h"

namespace trainyard::models {

// The length in bytes of the first piece of `text`, which must not be empty and must be UTF-8.
std::size_t first_piece(std::string_view text);

// The merges of a file merges.txt of GPT-2 or of Hugging Face's byte-level tokenizers: one per line, two tokens
// with a space between them. A first line "#version: …" is ignored.
class BytePairs {
 public:
  // `file` names the file in errors.
  // UserError with the line: other than two tokens, a token that no earlier line makes, a merge that is there
  // twice.
  BytePairs(std::string_view merges, const std::string& file);

  // The tokens 0 – 255 are bytes in GPT-2's order, and the others are in the order of the merges. So the numbers
  // are those of GPT-2's vocabulary.
  std::int64_t size() const { return size_; }
  std::vector<std::int32_t> numbers(std::string_view text) const;

 private:
  struct Merge {
    std::size_t rank = 0;
    std::int32_t token = 0;
  };
  using Piece = std::vector<std::int32_t>;
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  Piece encoded(std::string_view piece) const;

  std::unordered_map<std::uint64_t, Merge> merges_;  // by both tokens
  std::int32_t size_ = 0;
};

}  // namespace trainyard::models
