#include "models/samples/byte_pairs.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

constexpr std::int32_t byte_tokens = 256;

enum class Kind { letter, number, space, other };

Kind kind_of(std::uint32_t code) {
  if ((code >= '\t' && code <= '\r') || code == 0x85) return Kind::space;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Kind::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Kind::number;
  if (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP) return Kind::space;
  return Kind::other;
}

// A run of characters of one kind.
struct Run {
  Kind kind = Kind::other;
  std::size_t bytes = 0;
  std::size_t last = 0;  // bytes of its last character
};

Run first_run(std::string_view text) {
  Run run;
  while (run.bytes < text.size()) {
    const Character character = first_character(text.substr(run.bytes));
    if (!character.valid) throw InternalError("the text to split into byte pairs is not UTF-8");
    const Kind kind = kind_of(character.code);
    if (run.bytes > 0 && kind != run.kind) break;
    run = {kind, run.bytes + character.bytes, character.bytes};
  }
  return run;
}

// GPT-2 writes each byte as a visible character: itself, or one of U+0100 and later.
struct VisibleByte {
  std::int32_t token = 0;
  std::uint32_t code = 0;
};

std::array<VisibleByte, byte_tokens> visible_bytes() {
  std::array<VisibleByte, byte_tokens> table{};
  const auto is_visible = [](std::uint32_t byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
  };
  std::int32_t token = 0;
  std::uint32_t invisible = byte_tokens;
  for (const bool visible : {true, false})
    for (std::uint32_t byte = 0; byte < table.size(); ++byte)
      if (is_visible(byte) == visible) table.at(byte) = {token++, visible ? byte : invisible++};
  return table;
}

using TokenNumbers = std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>>;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint64_t>(right);
}

}  // namespace

std::size_t first_piece(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(end)) return end.size();
  if (const std::size_t space = text.size() > 1 && text.front() == ' ' ? 1 : 0; space > 0)
    if (const Run run = first_run(text.substr(space)); run.kind != Kind::space) return space + run.bytes;
  const Run run = first_run(text);
  // the last white space belongs to the piece after it
  if (run.kind == Kind::space && run.bytes < text.size() && run.bytes > run.last) return run.bytes - run.last;
  return run.bytes;
}

BytePairs::BytePairs(std::string_view merges, const std::string& file) : size_(byte_tokens) {
  TokenNumbers numbers;
  for (const VisibleByte& byte : visible_bytes()) numbers.emplace(utf8_of(byte.code), byte.token);
  int line = 0;
  const auto fail = [&](const std::string& what) {
    throw UserError(what, "use the merges.txt of a byte-level encoding, as GPT-2 has it",
                    {.file = file, .line = line});
  };
  const auto number_of = [&](std::string_view token) {
    const auto known = numbers.find(token);
    if (known == numbers.end())
      fail(fmt::format("the token \"{}\" is neither a byte nor the result of an earlier line",
                       printable_line(token)));
    return known->second;
  };
  while (!merges.empty()) {
    ++line;
    std::string_view text = merges.substr(0, merges.find('\n'));
    merges.remove_prefix(std::min(merges.size(), text.size() + 1));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || (line == 1 && text.starts_with("#version"))) continue;
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      fail("a merge is two tokens with one space between them");
    const std::string_view left = text.substr(0, space), right = text.substr(space + 1);
    const std::uint64_t pair = pair_of(number_of(left), number_of(right));
    // two pairs can make the same token
    const auto [made, is_new] = numbers.emplace(std::string(left) + std::string(right), size_);
    if (is_new) ++size_;
    if (!merges_.emplace(pair, Merge{.rank = merges_.size(), .token = made->second}).second)
      fail("an earlier line has the same merge");
  }
  if (merges_.empty()) throw UserError(file + " has no merges", "use a merges.txt as GPT-2 has it");
}

const BytePairs::Merge* BytePairs::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

BytePairs::Piece BytePairs::encoded(std::string_view piece) const {
  static const std::array<VisibleByte, byte_tokens> table = visible_bytes();
  Piece tokens;
  for (const char byte : piece) tokens.push_back(table.at(static_cast<unsigned char>(byte)).token);
  for (;;) {
    const Merge* first = nullptr;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const Merge* merge = merge_of(tokens[i], tokens[i + 1]);
          merge != nullptr && (first == nullptr || merge->rank < first->rank))
        first = merge;
    if (first == nullptr) return tokens;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i, ++kept) {
      const bool merged = i + 1 < tokens.size() && merge_of(tokens[i], tokens[i + 1]) == first;
      tokens[kept] = merged ? first->token : tokens[i];
      if (merged) ++i;
    }
    tokens.resize(kept);
  }
}

std::vector<std::int32_t> BytePairs::numbers(std::string_view text) const {
  std::unordered_map<std::string_view, Piece> known;
  std::vector<std::int32_t> all;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, first_piece(text));
    text.remove_prefix(piece.size());
    auto found = known.find(piece);
    if (found == known.end()) found = known.emplace(piece, encoded(piece)).first;
    all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

}  // namespace trainyard::models
