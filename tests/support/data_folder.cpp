#include "tests/support/data_folder.h"

#include <fstream>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include <zlib.h>

namespace trainyard::tests {

namespace {

std::string numbered_pixels(std::uint32_t number, std::size_t size) {
  std::string pixels(size, '\x55');
  pixels[0] = static_cast<char>(number >> 8U & 255U);
  pixels[1] = static_cast<char>(number & 255U);
  return pixels;
}

}  // namespace

std::filesystem::path DataFolder::write(const std::string& name, const std::string& bytes) const {
  std::filesystem::path file = *this / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << (name.ends_with(".gz") ? gzipped(bytes) : bytes);
  return file;
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 255U);
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string tar(const std::vector<TarEntry>& entries) {
  std::string archive;
  for (const TarEntry& entry : entries) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
    std::ostringstream size;
    size << std::setfill('0') << std::setw(11) << std::oct << entry.bytes.size();
    put(0, entry.name);
    put(100, "0000644");
    put(124, size.str());
    put(136, "00000000000");
    put(148, "        ");  // the checksum field counts as blanks
    put(156, "0");
    put(257, std::string("ustar\0"
                         "00",
                         8));
    std::ostringstream checksum;
    checksum << std::setfill('0') << std::setw(6) << std::oct
             << std::accumulate(header.begin(), header.end(), 0U, [](unsigned sum, char byte) {
                  return sum + static_cast<unsigned char>(byte);
                });
    put(148, checksum.str() + '\0');
    archive += header + entry.bytes + std::string((512 - entry.bytes.size() % 512) % 512, '\0');
  }
  return archive + std::string(1024, '\0');
}

std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width);
  for (std::uint32_t i = 0; i < count; ++i) bytes += numbered_pixels(i, std::size_t{height} * width);
  return bytes;
}

std::string idx_labels(std::uint32_t count) {
  std::string bytes = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

std::string cifar10_records(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i % 10) + numbered_pixels(static_cast<std::uint32_t>(i), 3072);
  }
  return bytes;
}

std::string fingerprint(const models::Dataset& source, const std::filesystem::path& folder,
                        std::uint64_t data_seed) {
  models::DataChoice choice;
  choice.split_seed = data_seed;
  return models::facts(source, folder, choice).fingerprint;
}

ImageSplits read_images(const models::DataChoice& choice) {
  models::Splits splits = models::read(choice);
  return {.train = std::get<models::Images>(std::move(splits.train)),
          .validation = std::get<models::Images>(std::move(splits.validation)),
          .test = std::get<models::Images>(std::move(splits.test))};
}

std::vector<int> sample_numbers(const models::Images& images) {
  const auto size = static_cast<std::size_t>(images.shape.pixels());
  std::vector<int> numbers;
  for (std::size_t at = 0; at < images.pixels.size(); at += size) {
    numbers.push_back(images.pixels[at] * 256 + images.pixels[at + 1]);
  }
  return numbers;
}

}  // namespace trainyard::tests
