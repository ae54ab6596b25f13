#include "models/readers/image_folder.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "models/readers/class_folders.h"
#include "models/readers/data_file.h"
#include "models/readers/image_decoder.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

bool is_picture_name(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

constexpr SampleFiles pictures{.is_name = is_picture_name, .kind = "PNG or JPEG file", .samples = "pictures"};

std::vector<std::uint8_t> bytes_of(const fs::path& path) {
  PlainFileReader file(path);
  if (!file) throw UserError(fmt::format("{}: cannot be read: {}", path.string(), file.problem()));
  const auto size = static_cast<std::uint64_t>(file.seekg(0, std::ios::end).tellg());
  if (size > most_unpacked)
    throw UserError(
        fmt::format("{}: has {} bytes, but a picture may have {}", path.string(), size, most_unpacked),
        "replace the picture or remove it from the folder");
  std::vector<std::uint8_t> bytes(size);
  file.seekg(0).read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) throw UserError(fmt::format("{}: cannot be read to its end", path.string()));
  return bytes;
}

// Calls `begin_picture` before each.
template <typename Begin>
Images read_pictures(const std::vector<LabelledFile>& files, std::int64_t size, Sha256& hash,
                     const Begin& begin_picture) {
  Images images{.shape = {.channels = 3, .height = size, .width = size}, .pixels = {}, .labels = {}};
  images.pixels.reserve(files.size() * static_cast<std::size_t>(images.shape.pixels()));
  for (const LabelledFile& file : files) {
    begin_picture();
    const std::vector<std::uint8_t> bytes = bytes_of(file.path);
    hash.update(file.name + '\n' + std::to_string(bytes.size()) + '\n');
    hash.update(std::span<const unsigned char>(bytes));
    const auto square = middle_square(decode_picture(bytes, file.path), size);
    images.pixels.insert(images.pixels.end(), square.begin(), square.end());
    images.labels.push_back(file.label);
  }
  return images;
}

ReadImages read_picture_folders(const ClassFolders& found, std::int64_t size, Sha256& hash,
                                const DecodingProgress& progress) {
  hash.update("pictures " + std::to_string(size) + '\n');
  const std::int64_t all =
      std::ssize(found.files.train) + std::ssize(found.files.validation) + std::ssize(found.files.test);
  std::int64_t done = 0;
  const auto part = [&](const char* name, const std::vector<LabelledFile>& files) {
    hash.update(std::string("part ") + name + '\n');
    return read_pictures(files, size, hash, [&] {
      if (progress) progress(done++, all);
    });
  };
  ReadImages images{.parts = {}, .classes = std::ssize(found.classes)};
  images.parts.train = part("train", found.files.train);
  if (!found.in_parts) return images;
  images.parts.validation = part("validation", found.files.validation);
  images.parts.test = part("test", found.files.test);
  return images;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string shape_text(const ImageShape& shape) {
  return shape_text(std::vector{shape.channels, shape.height, shape.width});
}

// The order of the dimensions of an array of images.
struct Layout {
  ImageShape shape;
  bool channels_last = false;
};

// UserError if the shape is not [N, H, W], [N, H, W, C] or [N, C, H, W].
Layout layout_of(const std::vector<std::int64_t>& shape, const fs::path& file) {
  const auto channels = [](std::int64_t count) { return count == 1 || count == 3; };
  if (shape.size() == 3) return {.shape = {.channels = 1, .height = shape[1], .width = shape[2]}};
  if (shape.size() == 4 && channels(shape[3]))
    return {.shape = {.channels = shape[3], .height = shape[1], .width = shape[2]}, .channels_last = true};
  if (shape.size() == 4 && channels(shape[1]))
    return {.shape = {.channels = shape[1], .height = shape[2], .width = shape[3]}};
  throw UserError(fmt::format("{}: the array has shape {}", file.string(), shape_text(shape)),
                  "use [N, H, W], [N, H, W, C] or [N, C, H, W] with C = 1 or 3");
}

// [N, H, W, C] to [N, C, H, W].
std::vector<std::uint8_t> channels_first(const std::vector<std::uint8_t>& pixels, const ImageShape& shape) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const auto area = static_cast<std::size_t>(shape.height * shape.width);
  std::vector<std::uint8_t> moved(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t image = i / (area * channels);
    const std::size_t place = i / channels % area;
    moved[(image * channels + i % channels) * area + place] = pixels[i];
  }
  return moved;
}

Images read_array_part(const fs::path& folder, const std::string& part, Sha256& hash) {
  const fs::path images_file = folder / (part + "-images.npy");
  const fs::path labels_file = folder / (part + "-labels.npy");
  if (!fs::exists(images_file) && !fs::exists(labels_file)) return {};
  for (const fs::path& file : {images_file, labels_file})
    if (!fs::exists(file))
      throw UserError(fmt::format("{} is missing", file.string()), "save images and labels");
  hash.update("part " + part + '\n');
  ByteArray images = read_npy(images_file, &hash);
  ByteArray labels = read_npy(labels_file, &hash);
  const Layout layout = layout_of(images.shape, images_file);
  if (labels.shape != std::vector<std::int64_t>{images.shape[0]})
    throw UserError(fmt::format("{}: the array has shape {}, but there are {}", labels_file.string(),
                                shape_text(labels.shape), counted(images.shape[0], "image")),
                    "save one label per image");
  if (layout.channels_last) images.bytes = channels_first(images.bytes, layout.shape);
  return {.shape = layout.shape,
          .pixels = std::move(images.bytes),
          .labels = {labels.bytes.begin(), labels.bytes.end()}};
}

ReadImages read_arrays(const fs::path& folder, Sha256& hash) {
  hash.update("arrays\n");
  ReadImages found;
  Parts<Images>& parts = found.parts;
  parts.train = read_array_part(folder, "train", hash);
  parts.validation = read_array_part(folder, "validation", hash);
  parts.test = read_array_part(folder, "test", hash);
  found.classes = 1 + *std::ranges::max_element(parts.train.labels);
  for (const Images* part : {&parts.validation, &parts.test}) {
    if (part->size() == 0) continue;
    if (!(part->shape == parts.train.shape))
      throw UserError(fmt::format("{}: images of train have shape {}, images of another part {}",
                                  folder.string(), shape_text(parts.train.shape), shape_text(part->shape)),
                      "save images of the same shape");
    if (*std::ranges::max_element(part->labels) >= found.classes)
      throw UserError(
          fmt::format("{}: validation or test has a label that is not in train", folder.string()));
  }
  return found;
}

bool holds_arrays(const fs::path& folder) {
  return fs::exists(folder / "train-images.npy") || fs::exists(folder / "train-labels.npy");
}

std::vector<fs::path> array_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* part : {"train", "validation", "test"})
    for (const char* kind : {"-images.npy", "-labels.npy"})
      if (fs::path file = folder / (std::string(part) + kind); fs::exists(file))
        files.push_back(std::move(file));
  return files;
}

std::vector<fs::path> picture_files(const ClassFolders& found) {
  std::vector<fs::path> files;
  for (const auto* part : found.files.all())
    for (const LabelledFile& file : *part) files.push_back(file.path);
  return files;
}

std::string read_bytes(DataFile& file, std::uint64_t count, const std::string& whole) {
  std::string text;
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

// The header, which is the text of a Python dictionary.
std::string read_header(DataFile& file) {
  const std::string start = read_bytes(file, 8, "its header");
  if (!start.starts_with("\x93NUMPY")) file.fail(0, "this is not a NumPy array (.npy)");
  const std::string size = read_bytes(file, start[6] == 1 ? 2 : 4, "its header");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < size.size(); ++i)
    count |= static_cast<std::uint64_t>(static_cast<unsigned char>(size[i])) << (8 * i);
  if (count > 65536) file.fail(8, fmt::format("the header has {} bytes, at most 65536 are allowed", count));
  return read_bytes(file, count, "its header");
}

// The text after `'name':` in the header. Empty if the header has no such key.
std::optional<std::string_view> value_of(std::string_view header, std::string_view name) {
  for (std::size_t at = header.find(name); at != std::string_view::npos; at = header.find(name, at + 1)) {
    const std::string_view rest = trimmed(header.substr(at + name.size()));
    if (rest.starts_with(':')) return trimmed(rest.substr(1));
  }
  return std::nullopt;
}

// The type in the header: "u1" for '|u1'.
std::string type_in(std::string_view header, const DataFile& file) {
  const auto type = value_of(header, "'descr'");
  if (!type) file.fail(10, "the header has no type");
  if (!type->starts_with('\'')) return "several fields";
  const std::string name(type->substr(1, std::min<std::size_t>(type->find('\'', 1) - 1, 20)));
  const bool ordered = !name.empty() && std::string_view("|<>=").find(name.front()) != std::string_view::npos;
  return ordered ? name.substr(1) : name;
}

// The numbers in the brackets of the shape.
std::vector<std::int64_t> shape_in(std::string_view header, const DataFile& file) {
  const auto value = value_of(header, "'shape'");
  if (!value || !value->starts_with('(') || value->find(')') == std::string_view::npos)
    file.fail(10, "the header has no shape");
  const std::string_view inside = value->substr(1, value->find(')') - 1);
  const auto impossible = [&] {
    file.fail(10, fmt::format("the header has an impossible shape ({})", inside.substr(0, 60)));
  };
  std::vector<std::int64_t> shape;
  double elements = 1;
  for (std::string_view rest = inside; !(rest = trimmed(rest)).empty();) {
    if (rest.front() == ',') {
      rest.remove_prefix(1);
      continue;
    }
    std::int64_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    if (error != std::errc() || length < 0) impossible();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    elements *= static_cast<double>(shape.emplace_back(length));
  }
  if (elements > 1e12) impossible();
  return shape;
}

// UserError for an array that NumPy can read, but this reader cannot.
void refuse_others(std::string_view header, const DataFile& file, const std::string& name) {
  if (const std::string type = type_in(header, file); type != "u1")
    throw UserError(
        fmt::format("{}: the array has type {}, and must be uint8 (u1)", name, type),
        "convert it with .astype('uint8') before numpy.save; scale images from 0 … 1 to 0 … 255 first");
  if (value_of(header, "'fortran_order'").value_or("").starts_with("True"))
    throw UserError(fmt::format("{}: the array is in Fortran order", name),
                    "save numpy.ascontiguousarray(array) with numpy.save");
}

}  // namespace

bool holds_images(const fs::path& folder) {
  return holds_arrays(folder) || holds_classes(folder, pictures);
}

std::vector<std::string> image_class_names(const fs::path& folder) {
  return holds_arrays(folder) ? std::vector<std::string>{} : find_class_folders(folder, pictures).classes;
}

ReadImages read_image_folder(const fs::path& folder, std::int64_t image_size, const Decoding& decoding) {
  if (!holds_images(folder))
    throw UserError(
        fmt::format("\"{}\" has no images", folder.string()),
        "add one folder per class with PNG or JPEG files, or train-images.npy and train-labels.npy");
  const bool arrays = holds_arrays(folder);
  const ClassFolders found = arrays ? ClassFolders() : find_class_folders(folder, pictures);
  const fs::path kept =
      decoding.folder.empty()
          ? fs::path()
          : decoded_file(decoding.folder, arrays ? "arrays" : fmt::format("pictures {}", image_size),
                         arrays ? array_files(folder) : picture_files(found));
  if (!kept.empty())
    if (auto mapped = mapped_images(kept)) return std::move(*mapped);
  Sha256 hash;
  ReadImages images =
      arrays ? read_arrays(folder, hash) : read_picture_folders(found, image_size, hash, decoding.progress);
  images.fingerprint = hash.hex();
  if (!kept.empty() && decoding.writes) write_decoded(kept, images);
  return images;
}

ByteArray read_npy(const std::filesystem::path& path, Sha256* hash) {
  DataFile file(path, hash, "write it again with numpy.save");
  const std::string header = read_header(file);
  refuse_others(header, file, path.string());
  ByteArray array{.shape = shape_in(header, file), .bytes = {}};
  std::uint64_t count = 1;
  for (const std::int64_t size : array.shape) count *= static_cast<std::uint64_t>(size);
  if (count == 0) throw UserError(fmt::format("{}: the array is empty", path.string()));
  const std::string whole = counted(count, "element");
  file.read_exactly(count, whole, [&](std::span<const std::uint8_t> bytes) {
    array.bytes.insert(array.bytes.end(), bytes.begin(), bytes.end());
  });
  file.expect_end(whole);
  return array;
}

}  // namespace trainyard::models
