#include "experiments/protocol/checkpoint.h"

#include <cerrno>
#include <charconv>
#include <numeric>

#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/plain_file.h"
#include "experiments/protocol/crc32c.h"

namespace trainyard::experiments {

namespace fs = std::filesystem;

namespace {

constexpr int checkpoint_version = 1;
constexpr std::size_t seal_bytes = 8;
constexpr std::size_t block_bytes = 1 << 20;

constexpr std::string_view epoch_prefix = "epoch-";
constexpr std::string_view stage_infix = ".stage-";
constexpr std::string_view checkpoint_suffix = ".checkpoint";
constexpr std::string_view weights_suffix = ".weights.safetensors";

nlohmann::json to_json(const Checkpoint& checkpoint, std::size_t value_bytes) {
  nlohmann::json object{{"v", checkpoint_version},       {"run", checkpoint.run},
                        {"attempt", checkpoint.attempt}, {"epoch", checkpoint.epoch},
                        {"stage", checkpoint.stage},     {"value_bytes", value_bytes},
                        {"state", checkpoint.state}};
  if (checkpoint.weights)
    object["weights"] = {{"bytes", checkpoint.weights->bytes}, {"crc", checkpoint.weights->crc}};
  return object;
}

// Moves the state out of `object`, because a copy of deeply nested JSON may overflow the stack.
Checkpoint checkpoint_from_json(nlohmann::json object) {
  Checkpoint checkpoint;
  read(object.at("run"), checkpoint.run);
  read(object.at("attempt"), checkpoint.attempt);
  read(object.at("epoch"), checkpoint.epoch);
  read(object.at("stage"), checkpoint.stage);
  checkpoint.state = std::move(object.at("state"));
  if (const auto weights = object.find("weights"); weights != object.end())
    checkpoint.weights =
        FileSum{read_as<std::uintmax_t>(weights->at("bytes")), weights->at("crc").get<std::string>()};
  return checkpoint;
}

// Removes `prefix` and the number after it from `text`.
template <typename Number>
bool take_number(std::string_view& text, std::string_view prefix, Number& number) {
  if (!text.starts_with(prefix)) return false;
  const char* begin = text.data() + prefix.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<CheckpointFile> named(const fs::path& path) {
  const std::string name = path.filename();
  std::string_view rest = name;
  CheckpointFile file{path, 0, std::nullopt};
  if (!take_number(rest, epoch_prefix, file.epoch)) return std::nullopt;
  if (rest == weights_suffix) return file;
  int stage = 0;
  if (!take_number(rest, stage_infix, stage) || rest != checkpoint_suffix) return std::nullopt;
  file.stage = stage;
  return file;
}

// Reads a checkpoint file once, from beginning to end.
class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file), in_(file) {
    if (!in_) fail("it cannot be read: " + in_.problem());
  }

  // Appends the values to `values`, unless it is null.
  Checkpoint read(std::string* values) try {
    std::string line;
    std::getline(in_, line);
    if (in_.eof()) fail("its first line is incomplete");
    nlohmann::json object = nlohmann::json::parse(line);
    if (object.at("v") != checkpoint_version) fail("it has another version");
    if (!object.at("value_bytes").is_number_unsigned()) fail("its first line is not a header");
    const auto value_bytes = read_as<std::uintmax_t>(object.at("value_bytes"));
    const std::uintmax_t others = line.size() + 1 + seal_bytes;
    if (const auto size = fs::file_size(file_); size < others || size - others != value_bytes)
      fail(std::to_string(size) + " bytes, should be " + std::to_string(others) + " bytes and " +
           std::to_string(value_bytes) + " bytes of values");
    take_values(value_bytes, crc32c("\n", crc32c(line)), values);
    return checkpoint_from_json(std::move(object));
  } catch (const nlohmann::json::exception&) {
    fail("its first line is not a header");
  }

 private:
  void take_values(std::size_t bytes, std::uint32_t crc, std::string* values) {
    std::string block;
    if (values != nullptr) values->reserve(bytes);
    for (std::size_t left = bytes; left > 0 && in_; left -= block.size()) {
      block.resize(std::min(left, block_bytes));
      in_.read(block.data(), static_cast<std::streamsize>(block.size()));
      crc = crc32c(block, crc);
      if (values != nullptr) *values += block;
    }
    std::string seal(seal_bytes, ' ');
    in_.read(seal.data(), static_cast<std::streamsize>(seal.size()));
    if (!in_ || seal != hexadecimal(crc)) fail("CRC is " + seal + ", should be " + hexadecimal(crc));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("the checkpoint is damaged: " + what,
                    "the run resumes from the previous checkpoint, or starts from the beginning",
                    {.file = file_.string()});
  }

  fs::path file_;
  PlainFileReader in_;
};

}  // namespace

FileSum sum_of_file(const fs::path& file) {
  const OpenedFile opened = open_plain(file);
  if (!opened.fd) throw_file_error(file, opened.error == 0 ? EINVAL : opened.error);
  FileSum sum;
  std::uint32_t crc = 0;
  std::string block(block_bytes, '\0');
  for (ssize_t got = 0; (got = ::read(opened.fd.get(), block.data(), block.size())) != 0;) {
    if (got < 0) throw_file_error(file);
    const auto size = static_cast<std::size_t>(got);
    crc = crc32c(std::string_view(block).substr(0, size), crc);
    sum.bytes += size;
  }
  sum.crc = hexadecimal(crc);
  return sum;
}

fs::path checkpoint_file(const fs::path& folder, std::int64_t epoch, int stage) {
  std::string name(epoch_prefix);
  name.append(std::to_string(epoch)).append(stage_infix).append(std::to_string(stage));
  return folder / name.append(checkpoint_suffix);
}

fs::path kept_weights_file(const fs::path& folder, std::int64_t epoch) {
  return folder / std::string(epoch_prefix).append(std::to_string(epoch)).append(weights_suffix);
}

std::vector<CheckpointFile> checkpoint_files(const fs::path& folder) {
  std::vector<CheckpointFile> files;
  std::error_code missing;
  if (!fs::is_directory(fs::symlink_status(folder, missing))) return files;  // a link could point anywhere
  for (const std::string& name : names_in(folder, missing))
    if (fs::is_regular_file(fs::symlink_status(folder / name, missing)))
      if (auto file = named(folder / name)) files.push_back(std::move(*file));
  return files;
}

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                      std::span<const std::string_view> values) {
  const std::size_t bytes =
      std::accumulate(values.begin(), values.end(), std::size_t{0},
                      [](std::size_t sum, std::string_view part) { return sum + part.size(); });
  const std::string header = to_json(checkpoint, bytes).dump() + '\n';
  std::vector<std::string_view> parts{header};
  parts.insert(parts.end(), values.begin(), values.end());
  std::uint32_t crc = 0;
  for (const std::string_view part : parts) crc = crc32c(part, crc);
  const std::string seal = hexadecimal(crc);
  parts.emplace_back(seal);
  write_durably(checkpoint_file(folder, checkpoint.epoch, checkpoint.stage), parts);
}

Checkpoint check_checkpoint(const fs::path& folder, std::int64_t epoch, int stage) {
  return Reader(checkpoint_file(folder, epoch, stage)).read(nullptr);
}

CheckpointContent read_checkpoint(const fs::path& folder, std::int64_t epoch, int stage) {
  CheckpointContent content;
  content.checkpoint = Reader(checkpoint_file(folder, epoch, stage)).read(&content.values);
  return content;
}

}  // namespace trainyard::experiments
