#include "models/networks/layers.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/layer_kinds.h"

namespace trainyard::networks {

namespace {

struct Kind {
  std::string_view name;
  Layer (*make)(const models::Layer&, const Initialisation&);
};

constexpr std::array kinds{
    Kind{"batch_norm2d", batch_norm2d},
    Kind{"conv2d", conv2d},
    Kind{"conv_transpose2d", conv_transpose2d},
    Kind{"decoder_lstm", decoder_lstm},
    Kind{"dropout", dropout},
    Kind{"encoder_lstm", encoder_lstm},
    Kind{"flatten", flatten},
    Kind{"linear", linear},
    Kind{"max_pool2d", max_pool2d},
    Kind{"mean_embedding", mean_embedding},
    Kind{"relu", relu},
    Kind{"sigmoid", sigmoid},
    Kind{"source_embedding", source_embedding},
    Kind{"target_embedding", target_embedding},
};

}  // namespace

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  return values;
}

bool has_single_reader(const at::Tensor& value) {
  return value.use_count() == 1 && value.has_storage() && value.storage().use_count() == 1 &&
         value.is_non_overlapping_and_dense();
}

Layer make_layer(const models::Layer& row, const Initialisation& start) {
  const Kind* kind = models::row_or_null(kinds, &Kind::name, row.kind);
  if (kind == nullptr) throw InternalError("there is no layer of kind " + row.kind);
  return kind->make(row, start);
}

}  // namespace trainyard::networks
