#include "experiments/protocol/checkpoint.h"

#include <cerrno>
#include <regex>

#include <fmt/format.h>
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

std::optional<CheckpointFile> named(const fs::path& path) {
  static const std::regex form(R"(epoch-(\d{1,18})(?:\.weights\.safetensors|\.stage-(\d{1,9})\.checkpoint))");
  const std::string name = path.filename();
  std::smatch parts;
  if (!std::regex_match(name, parts, form)) return std::nullopt;
  CheckpointFile file{path, std::stoll(parts[1]), std::nullopt};
  if (parts[2].matched) file.stage = std::stoi(parts[2]);
  return file;
}

[[noreturn]] void refuse_damaged(const fs::path& file, const std::string& what) {
  throw UserError("the checkpoint is damaged: " + what,
                  "the run resumes from the previous checkpoint, or starts from the beginning",
                  {.file = file.string()});
}

// Reads the file once, from beginning to end. Appends the values to `values`, unless it is null.
Checkpoint checked_content(const fs::path& file, std::string* values) try {
  const auto fail = [&](const std::string& what) { refuse_damaged(file, what); };
  PlainFileReader in(file);
  if (!in) fail("it cannot be read: " + in.problem());
  std::string line, block, seal(seal_bytes, ' ');
  std::getline(in, line);
  if (in.eof()) fail("its first line is incomplete");
  nlohmann::json object = nlohmann::json::parse(line);
  if (object.at("v") != checkpoint_version) fail("it has another version");
  if (!object.at("value_bytes").is_number_unsigned()) fail("its first line is not a header");
  const auto value_bytes = read_as<std::uintmax_t>(object.at("value_bytes"));
  const std::uintmax_t others = line.size() + 1 + seal_bytes;
  if (const auto size = fs::file_size(file); size < others || size - others != value_bytes)
    fail(std::to_string(size) + " bytes, should be " + std::to_string(others) + " bytes and " +
         std::to_string(value_bytes) + " bytes of values");
  std::uint32_t crc = crc32c("\n", crc32c(line));
  if (values != nullptr) values->reserve(value_bytes);
  for (std::size_t left = value_bytes; left > 0 && in; left -= block.size()) {
    block.resize(std::min(left, block_bytes));
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    crc = crc32c(block, crc);
    if (values != nullptr) *values += block;
  }
  in.read(seal.data(), static_cast<std::streamsize>(seal.size()));
  if (!in || seal != hexadecimal(crc)) fail("CRC is " + seal + ", should be " + hexadecimal(crc));
  return checkpoint_from_json(std::move(object));
} catch (const nlohmann::json::exception&) {
  refuse_damaged(file, "its first line is not a header");
}

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
  return folder / fmt::format("epoch-{}.stage-{}.checkpoint", epoch, stage);
}

fs::path kept_weights_file(const fs::path& folder, std::int64_t epoch) {
  return folder / fmt::format("epoch-{}.weights.safetensors", epoch);
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
  std::size_t bytes = 0;
  for (const std::string_view part : values) bytes += part.size();
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
  return checked_content(checkpoint_file(folder, epoch, stage), nullptr);
}

CheckpointContent read_checkpoint(const fs::path& folder, std::int64_t epoch, int stage) {
  CheckpointContent content;
  content.checkpoint = checked_content(checkpoint_file(folder, epoch, stage), &content.values);
  return content;
}

}  // namespace trainyard::experiments
