// Tensors of an exported file, made from their bytes.
#include "models/networks/stored_tensors.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "base/error.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::networks;
using models::Dtype;
using models::StoredTensor;

std::shared_ptr<const std::string> bytes_of(const at::Tensor& values) {
  return std::make_shared<const std::string>(static_cast<const char*>(values.const_data_ptr()),
                                             values.nbytes());
}

const at::Tensor numbers = at::arange(12, at::kFloat);

StoredTensor stored(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
                    std::int64_t offset = 0, StoredTensor::Role role = StoredTensor::Role::parameter) {
  StoredTensor one;
  one.name = "layer.weight";
  one.role = role;
  one.sizes = std::move(sizes);
  one.strides = std::move(strides);
  one.offset = offset;
  one.storage = bytes_of(numbers);
  return one;
}

at::Tensor made(const StoredTensor& tensor) {
  return make_tensor(tensor, at::kCPU);
}

}  // namespace

TEST_CASE("a stored tensor has its values, strides and role") {
  const at::Tensor weight = made(stored({2, 3}, {1, 2}, 4));
  CHECK(at::equal(weight, at::as_strided(numbers, {2, 3}, {1, 2}, 4)));
  CHECK(weight.strides() == at::IntArrayRef({1, 2}));
  CHECK(weight.storage_offset() == 0);
  CHECK(weight.nbytes() == weight.storage().nbytes());
  CHECK(weight.requires_grad());
  CHECK(weight.is_leaf());
  StoredTensor frozen = stored({12}, {1});
  frozen.requires_grad = false;
  CHECK_FALSE(made(frozen).requires_grad());
  CHECK_FALSE(made(stored({12}, {1}, 0, StoredTensor::Role::buffer)).requires_grad());
  CHECK(at::equal(made(stored({}, {}, 7)).detach(), at::scalar_tensor(7, at::kFloat)));
  CHECK(made(stored({0, 3}, {3, 1}, 12)).numel() == 0);
}

TEST_CASE("tensors of one storage are separate copies") {
  const StoredTensor one = stored({12}, {1}, 0, StoredTensor::Role::buffer);
  const at::Tensor first = made(one), second = made(one);
  first.zero_();
  CHECK(at::equal(second, numbers));
  CHECK(at::equal(made(one), numbers));
}

TEST_CASE("a parameter with gaps becomes contiguous, other tensors keep their strides") {
  const at::Tensor expected = at::as_strided(numbers, {3, 2}, {4, 1}, 1);
  const at::Tensor parameter = made(stored({3, 2}, {4, 1}, 1));
  CHECK(at::equal(parameter, expected));
  CHECK(parameter.is_contiguous());
  CHECK(parameter.is_leaf());
  const at::Tensor buffer = made(stored({3, 2}, {4, 1}, 1, StoredTensor::Role::buffer));
  CHECK(at::equal(buffer, expected));
  CHECK(buffer.strides() == expected.strides());
  const at::Tensor expanded = made(stored({5, 2}, {0, 1}, 3, StoredTensor::Role::constant));
  CHECK(at::equal(expanded, at::as_strided(numbers, {5, 2}, {0, 1}, 3)));
}

TEST_CASE("a tensor beyond its storage is refused") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK_NOTHROW(made(stored({3, 4}, {4, 1})));
  for (const StoredTensor& wrong : {stored({13}, {1}), stored({3, 4}, {4, 1}, 1), stored({3, 4}, {4, 1}, -1),
                                    stored({1}, {1}, most), stored({0}, {1}, 13)}) {
    CAPTURE(wrong.sizes.size());
    CHECK_THROWS_AS(made(wrong), InternalError);
  }
}

TEST_CASE("types of graphs are types of LibTorch") {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16, Dtype::int64,
                            Dtype::int32, Dtype::int16, Dtype::int8, Dtype::uint8, Dtype::boolean}) {
    const at::Tensor values = at::tensor({1, 0, 1}, at::kLong).to(scalar_type(dtype));
    StoredTensor one = stored({3}, {1}, 0, StoredTensor::Role::buffer);
    one.dtype = dtype;
    one.storage = bytes_of(values);
    CHECK(at::equal(made(one), values));
    CHECK((made(one).scalar_type() == values.scalar_type()));
  }
  CHECK((scalar_type(Dtype::bfloat16) == at::kBFloat16));
  CHECK((scalar_type(Dtype::int64) == at::kLong));

  // other bytes than 0 and 1 count as true
  StoredTensor truths = stored({2}, {1}, 0, StoredTensor::Role::buffer);
  truths.dtype = Dtype::boolean;
  truths.storage = std::make_shared<const std::string>("\x02\x00", 2);
  CHECK(at::equal(made(truths), at::tensor({1, 0}, at::kLong).to(at::kBool)));
}
