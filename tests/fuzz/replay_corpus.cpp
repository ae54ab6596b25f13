// Feeds every file of a folder to a fuzz target, without libFuzzer. Every test run, with any compiler, tries
// past findings and difficult inputs this way.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      // After a crash, the last printed name is that of the input.
      std::cout << entry.path().filename().string() << std::endl;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++inputs;
    }
  std::cout << inputs << " inputs" << std::endl;
  return inputs > 0 ? 0 : 1;
}
