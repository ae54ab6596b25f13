#include "tests/runner/device/pretend_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

namespace trainyard::runner::testing {

namespace {

constexpr auto pretended = c10::DeviceType::PrivateUse1;
std::atomic<int> askers_away{0};  // number of NoQuestions objects

struct HostMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = c10::alloc_cpu(bytes);
    return {memory, memory, &c10::free_cpu, c10::Device(pretended, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &c10::free_cpu; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};
HostMemory memory;

struct Guard final : c10::impl::NoOpDeviceGuardImpl<pretended> {
  c10::Device exchangeDevice(c10::Device) const override { return {pretended, 0}; }
  c10::Device getDevice() const override { return {pretended, 0}; }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, {pretended, 0});
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, {pretended, 0});
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// Answers for autograd, which checks a device before it computes there.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};
Hooks hooks;

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == pretended;
}

// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::Tensor(
      at::detail::empty_strided_generic(sizes, strides, &memory, keys, c10::dtype_or_default(dtype)));
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(sizes, &memory, keys, c10::dtype_or_default(dtype), format));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  (is_ours(to) ? on_cpu(to) : to).copy_(is_ours(from) ? on_cpu(from) : from);
  return to;
}

const at::Tensor& take_size(const at::Tensor& tensor, at::IntArrayRef sizes,
                            std::optional<at::MemoryFormat>) {
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) *
                     static_cast<std::size_t>(tensor.element_size());
  const c10::Storage& storage = tensor.storage();
  if (storage.nbytes() < bytes) {
    storage.set_data_ptr_noswap(memory.allocate(bytes));
    storage.set_nbytes(bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor reshape_alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, std::nullopt);
}

// Operations with a result that the host has to wait for.
constexpr std::array questions{"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select",
                               "aten::equal", "aten::is_nonzero"};

// Calls the operation of the CPU on the same memory.
class Call {
 public:
  Call(c10::OperatorHandle op, torch::jit::Stack* stack) : op_(std::move(op)), stack_(stack) {}

  void make() {
    const std::string& name = op_.schema().name();
    if (askers_away > 0 && std::find(questions.begin(), questions.end(), name) != questions.end())
      throw std::runtime_error(name + " asks a device for a value");
    const std::size_t arguments = op_.schema().arguments().size();
    for (std::size_t i = 0; i < arguments; ++i)
      take((*stack_)[stack_->size() - arguments + i], op_.schema().arguments()[i].is_out());
    if (ours_ && others_) throw std::runtime_error(name + " mixes tensors of two devices");
    op_.callBoxed(stack_);
    const std::size_t results = op_.schema().returns().size();
    for (std::size_t i = stack_->size() - results; i < stack_->size(); ++i) give_back((*stack_)[i]);
  }

 private:
  at::Tensor taken(const at::Tensor& tensor, bool output) {
    if (!tensor.defined()) return tensor;
    if (!is_ours(tensor)) {
      others_ |= tensor.dim() > 0;  // a scalar may be on the host, as with a GPU
      return tensor;
    }
    ours_ = true;
    pairs_.push_back({tensor, output ? on_cpu(tensor).clone() : on_cpu(tensor), output});
    return pairs_.back().cpu;
  }
  at::Tensor given_back(const at::Tensor& tensor) const {
    if (!tensor.defined()) return tensor;
    for (const Taken& each : pairs_) {
      if (!each.cpu.is_same(tensor)) continue;
      if (each.output) {
        if (each.cpu.sizes() != each.own.sizes()) take_size(each.own, each.cpu.sizes(), {});
        on_cpu(each.own).copy_(each.cpu);
      }
      return each.own;
    }
    at::Tensor own =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(pretended, 0));
    on_cpu(own).copy_(tensor);
    return own;
  }
  template <class Change>
  static void change(c10::IValue& value, const Change& changed) {
    if (value.isTensor()) {
      value = changed(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(changed(tensor));
      value = c10::List<at::Tensor>(tensors);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        tensors.push_back(tensor ? std::optional(changed(*tensor)) : tensor);
      value = tensors;
    } else if (value.isDevice()) {
      value = c10::Device(c10::DeviceType::CPU);
    }
  }
  void take(c10::IValue& value, bool output) {
    change(value, [&](const at::Tensor& tensor) { return taken(tensor, output); });
  }
  void give_back(c10::IValue& value) const {
    change(value, [this](const at::Tensor& tensor) { return given_back(tensor); });
  }

  c10::OperatorHandle op_;
  torch::jit::Stack* stack_;
  struct Taken {
    at::Tensor own, cpu;
    bool output;  // an output may have to grow, so the CPU gets a copy
  };
  std::vector<Taken> pairs_;
  bool ours_ = false, others_ = false;
};

void by_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call(op, stack).make();
}

c10::OperatorHandle named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// Convolutions of a device have their own names. They have the same arguments, but without the size of the
// bias.
void convolution(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  Call(named("aten::convolution"), stack).make();
}

void convolution_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr std::ptrdiff_t weight = 2, transposed = 6;
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const std::int64_t outputs = first[weight].toTensor().size(first[transposed].toBool() ? 1 : 0);
  stack->insert(first + weight + 1, c10::IValue(std::vector<std::int64_t>{outputs}));
  Call(named("aten::convolution_backward"), stack).make();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&by_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("resize_", take_size);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("view", at::native::view);
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward_overrideable",
               torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace

at::Device pretend_device() {
  static const bool registered = [] {
    c10::SetAllocator(pretended, &memory);
    at::RegisterPrivateUse1HooksInterface(&hooks);
    c10::register_privateuse1_backend("pretended");
    return true;
  }();
  if (!registered) throw std::logic_error("a device that is not registered");
  return {pretended, 0};
}

NoQuestions::NoQuestions() {
  ++askers_away;
}

NoQuestions::~NoQuestions() {
  --askers_away;
}

}  // namespace trainyard::runner::testing
