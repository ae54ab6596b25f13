#include "models/datasets/published_files.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

KnownDataset mnist() {
  return {.dataset = "mnist",
          .address = "https://ossci-datasets.s3.amazonaws.com/mnist",
          .folder = "mnist",
          .files = {{"train-images-idx3-ubyte.gz", 9912422,
                     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", "",
                     "6bbc9ace898e44ae57da46a324031adb"},
                    {"train-labels-idx1-ubyte.gz", 28881,
                     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", "",
                     "a25bea736e30d166cdddb491f175f624"},
                    {"t10k-images-idx3-ubyte.gz", 1648877,
                     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", "",
                     "2646ac647ad5339dbf082846283269ea"},
                    {"t10k-labels-idx1-ubyte.gz", 4542,
                     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", "",
                     "27ae3e4e09519cfbb04c329615203637"}}};
}

KnownDataset fashion_mnist() {
  return {.dataset = "fashion-mnist",
          .address = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
          .folder = "fashion-mnist",
          .files = {{"train-images-idx3-ubyte.gz", 26421880,
                     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                     "8d4fb7e6c68d591d4c3dfef9ec88bf0d", ""},
                    {"train-labels-idx1-ubyte.gz", 29515,
                     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                     "25c81989df183df01b3e8a0aad5dffbe", ""},
                    {"t10k-images-idx3-ubyte.gz", 4422102,
                     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                     "bef4ecab320f06d8554ea6380940ec79", ""},
                    {"t10k-labels-idx1-ubyte.gz", 5148,
                     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                     "bb300cfdad3c16e7a12a480ee83cd310", ""}}};
}

KnownDataset cifar10() {
  return {.dataset = "cifar10",
          .address = "https://www.cs.toronto.edu/~kriz",
          .folder = "",
          .files = {{"cifar-10-binary.tar.gz", 170052171,
                     "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", "", ""}},
          .unpacked = "cifar-10-batches-bin",
          .members = {{"data_batch_1.bin", 30730000,
                       "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", "", ""},
                      {"data_batch_2.bin", 30730000,
                       "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", "", ""},
                      {"data_batch_3.bin", 30730000,
                       "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", "", ""},
                      {"data_batch_4.bin", 30730000,
                       "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", "", ""},
                      {"data_batch_5.bin", 30730000,
                       "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", "", ""},
                      {"test_batch.bin", 30730000,
                       "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", "", ""}}};
}

KnownDataset imdb() {
  return {.dataset = "imdb",
          .address = "https://ai.stanford.edu/~amaas/data/sentiment",
          .folder = "",
          .files = {{"aclImdb_v1.tar.gz", 84125825,
                     "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe", "", ""}}};
}

KnownDataset multi30k() {
  return {
      .dataset = "multi30k",
      .address = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
      .folder = "multi30k",
      .files = {
          {"train.de.gz", 637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6", "", ""},
          {"train.en.gz", 568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f", "", ""},
          {"val.de.gz", 24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a", "", ""},
          {"val.en.gz", 21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28", "", ""},
          {"test_2016_flickr.de.gz", 22890,
           "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8", "", ""},
          {"test_2016_flickr.en.gz", 21077,
           "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9", "", ""}}};
}

KnownDataset tiny_shakespeare() {
  return {.dataset = "tiny-shakespeare",
          .address = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",
          .folder = "tiny-shakespeare",
          .files = {{"input.txt", 1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                     "", ""}}};
}

class Md5 {
 public:
  Md5() {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr) != 1)
      throw InternalError("OpenSSL has no MD5");
  }
  void update(std::span<const std::uint8_t> bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

// `next` fills a piece and returns the number of bytes, which is less than a piece at the end only.
template <typename Next>
Digests digests_of(const Next& next) {
  Sha256 sha256;
  Md5 md5;
  Digests found;
  std::vector<std::uint8_t> piece(1U << 20U);
  for (std::size_t got = piece.size(); got == piece.size();) {
    got = next(piece);
    const auto bytes = std::span<const std::uint8_t>(piece).first(got);
    sha256.update(bytes);
    md5.update(bytes);
    found.bytes += got;
  }
  found.sha256 = sha256.hex();
  found.md5 = md5.hex();
  return found;
}

}  // namespace

std::span<const KnownDataset> known_datasets() {
  static const std::array<KnownDataset, 6> rows{mnist(), fashion_mnist(), cifar10(),
                                                imdb(),  multi30k(),      tiny_shakespeare()};
  return rows;
}

const KnownDataset* find_known_dataset(const std::string& dataset) {
  return row_or_null(known_datasets(), &KnownDataset::dataset, dataset);
}

Digests digests_of_file(const std::filesystem::path& file) {
  PlainFileReader stream(file);
  if (!stream) throw UserError(fmt::format("{}: cannot be read: {}", file.string(), stream.problem()));
  return digests_of([&](std::vector<std::uint8_t>& piece) {
    stream.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    return static_cast<std::size_t>(stream.gcount());
  });
}

Digests digests_of_content(const std::filesystem::path& file) {
  DataFile stream(file);
  return digests_of([&](std::vector<std::uint8_t>& piece) { return stream.read(piece); });
}

bool fits(const KnownFile& known, const Digests& file) {
  return known.bytes == file.bytes && (known.sha256.empty() || known.sha256 == file.sha256) &&
         (known.md5.empty() || known.md5 == file.md5);
}

std::string digest_text(const KnownFile& known) {
  return known.sha256.empty() ? "MD5 " + known.md5 : "SHA-256 " + known.sha256;
}

}  // namespace trainyard::models
