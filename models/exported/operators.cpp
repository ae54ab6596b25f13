#include "models/exported/operators.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace trainyard::models {

namespace {

// Operators by name, with spaces between. Those whose name ends with "_" overwrite `self`.
constexpr std::string_view to_new_memory =
    "_operator.add _operator.eq _operator.floordiv _operator.ge _operator.gt _operator.le _operator.lt "
    "_operator.mod _operator.mul _operator.ne _operator.neg _operator.sub aten.__and__.Tensor "
    "aten.__or__.Tensor aten._assert_scalar.default aten._assert_tensor_metadata.default "
    "aten._safe_softmax.default aten._to_copy.default aten._weight_norm.default aten.abs.default "
    "aten.abs_.default aten.absolute.default aten.acos.default aten.adaptive_avg_pool1d.default "
    "aten.adaptive_avg_pool2d.default aten.adaptive_avg_pool3d.default "
    "aten.adaptive_max_pool1d.default aten.adaptive_max_pool2d.default "
    "aten.adaptive_max_pool3d.default aten.add.Scalar aten.add.Tensor aten.add_.Scalar "
    "aten.add_.Tensor aten.addbmm.default aten.addcdiv.default aten.addcmul.default aten.addmm.default "
    "aten.addmv.default aten.affine_grid_generator.default aten.all.default aten.all.dim "
    "aten.amax.default aten.amin.default aten.aminmax.default aten.angle.default aten.any.default "
    "aten.any.dim aten.arange.default aten.arange.start aten.arange.start_step aten.argmax.default "
    "aten.argmin.default aten.argsort.default aten.asin.default aten.atan.default aten.atan2.default "
    "aten.avg_pool1d.default aten.avg_pool2d.default aten.avg_pool3d.default aten.baddbmm.default "
    "aten.bilinear.default aten.binary_cross_entropy.default "
    "aten.binary_cross_entropy_with_logits.default aten.bincount.default aten.bitwise_and.Scalar "
    "aten.bitwise_and.Tensor aten.bitwise_not.default aten.bitwise_or.Scalar aten.bitwise_or.Tensor "
    "aten.bitwise_xor.Tensor aten.bmm.default aten.bucketize.Tensor aten.cat.default "
    "aten.cdist.default aten.ceil.default aten.celu.default aten.celu_.default "
    "aten.channel_shuffle.default aten.clamp.Tensor aten.clamp.default aten.clamp_.default "
    "aten.clamp_max.default aten.clamp_max_.default aten.clamp_min.default aten.clamp_min_.default "
    "aten.clip.default aten.clone.default aten.col2im.default aten.column_stack.default "
    "aten.complex.default aten.concat.default aten.concatenate.default aten.constant_pad_nd.default "
    "aten.conv1d.default aten.conv1d.padding aten.conv2d.default aten.conv2d.padding "
    "aten.conv3d.default aten.conv3d.padding aten.conv_transpose1d.default aten.conv_transpose2d.input "
    "aten.conv_transpose3d.input aten.copy_.default aten.cos.default aten.cosh.default "
    "aten.cosine_embedding_loss.default aten.cosine_similarity.default aten.count_nonzero.default "
    "aten.cross.default aten.cross_entropy_loss.default aten.cummax.default aten.cumprod.default "
    "aten.cumsum.default aten.detach_.default aten.diag_embed.default aten.diff.default "
    "aten.dist.default aten.div.Scalar aten.div.Scalar_mode aten.div.Tensor aten.div.Tensor_mode "
    "aten.div_.Scalar aten.div_.Tensor aten.divide.Tensor aten.dot.default aten.dstack.default "
    "aten.elu.default aten.elu_.default aten.embedding.default aten.embedding_bag.default "
    "aten.embedding_bag.padding_idx aten.eq.Scalar aten.eq.Tensor aten.erf.default aten.erfc.default "
    "aten.exp.default aten.exp_.default aten.expm1.default aten.eye.default aten.eye.m "
    "aten.fake_quantize_per_tensor_affine.default aten.fft_fft.default aten.fft_fft2.default "
    "aten.fft_ifft.default aten.fft_ifft2.default aten.fft_irfft.default aten.fft_irfft2.default "
    "aten.fft_rfft.default aten.fft_rfft2.default aten.fill.Scalar aten.fill_.Scalar aten.fill_.Tensor "
    "aten.flip.default aten.floor.default aten.floor_divide.Scalar aten.floor_divide.default "
    "aten.fmod.Scalar aten.frac.default aten.full.default aten.full_like.default aten.gather.default "
    "aten.ge.Scalar aten.ge.Tensor aten.gelu.default aten.gelu_.default aten.ger.default "
    "aten.glu.default aten.greater.Scalar aten.grid_sampler.default aten.group_norm.default "
    "aten.gru_cell.default aten.gt.Scalar aten.gt.Tensor aten.hardshrink.default "
    "aten.hardsigmoid.default aten.hardsigmoid_.default aten.hardswish.default aten.hardswish_.default "
    "aten.hardtanh.default aten.hardtanh_.default aten.hinge_embedding_loss.default "
    "aten.hstack.default aten.huber_loss.default aten.im2col.default aten.index.Tensor "
    "aten.index_add.default aten.index_add_.default aten.index_copy.default aten.index_copy_.default "
    "aten.index_fill.int_Scalar aten.index_put.default aten.index_put_.default "
    "aten.index_select.default aten.isfinite.default aten.isinf.default aten.isnan.default "
    "aten.item.default aten.kl_div.default aten.kron.default aten.l1_loss.default "
    "aten.layer_norm.default aten.le.Scalar aten.le.Tensor aten.leaky_relu.default "
    "aten.leaky_relu_.default aten.lerp.Scalar aten.lerp.Tensor aten.less.Scalar "
    "aten.lift_fresh_copy.default aten.linalg_cross.default aten.linalg_matmul.default "
    "aten.linalg_norm.default aten.linalg_vector_norm.default aten.linear.default "
    "aten.linspace.default aten.log.default aten.log10.default aten.log1p.default aten.log2.default "
    "aten.log_sigmoid.default aten.log_softmax.int aten.logaddexp.default aten.logical_and.default "
    "aten.logical_not.default aten.logical_or.default aten.logical_xor.default aten.logit.default "
    "aten.logsumexp.default aten.lstm_cell.default aten.lt.Scalar aten.lt.Tensor "
    "aten.margin_ranking_loss.default aten.masked_fill.Scalar aten.masked_fill.Tensor "
    "aten.masked_fill_.Scalar aten.masked_fill_.Tensor aten.masked_select.default aten.matmul.default "
    "aten.max.default aten.max.dim aten.max.other aten.max_pool1d.default "
    "aten.max_pool1d_with_indices.default aten.max_pool2d.default aten.max_pool2d_with_indices.default "
    "aten.max_pool3d.default aten.maximum.default aten.mean.default aten.mean.dim aten.median.default "
    "aten.median.dim aten.min.default aten.min.dim aten.min.other aten.minimum.default "
    "aten.mish.default aten.mish_.default aten.mm.default aten.mse_loss.default aten.mul.Scalar "
    "aten.mul.Tensor aten.mul_.Scalar aten.mul_.Tensor aten.multi_margin_loss.default "
    "aten.multilabel_margin_loss.default aten.multiply.Tensor aten.mv.default aten.nan_to_num.default "
    "aten.nanmean.default aten.nansum.default aten.native_channel_shuffle.default aten.ne.Scalar "
    "aten.ne.Tensor aten.neg.default aten.neg_.default aten.negative.default aten.new_full.default "
    "aten.new_ones.default aten.new_zeros.default aten.nll_loss.default aten.nll_loss2d.default "
    "aten.nll_loss_nd.default aten.nonzero.default aten.norm.Scalar aten.norm.ScalarOpt_dim "
    "aten.one_hot.default aten.ones.default aten.ones_like.default aten.outer.default "
    "aten.pairwise_distance.default aten.pixel_shuffle.default aten.pixel_unshuffle.default "
    "aten.poisson_nll_loss.default aten.polar.default aten.pow.Scalar aten.pow.Tensor_Scalar "
    "aten.pow.Tensor_Tensor aten.pow_.Scalar aten.prelu.default aten.prod.default aten.prod.dim_int "
    "aten.reciprocal.default aten.reflection_pad1d.default aten.reflection_pad2d.default "
    "aten.relu.default aten.relu6.default aten.relu6_.default aten.relu_.default aten.remainder.Scalar "
    "aten.remainder.Tensor aten.repeat.default aten.replication_pad1d.default "
    "aten.replication_pad2d.default aten.rms_norm.default aten.rnn_relu_cell.default "
    "aten.rnn_tanh_cell.default aten.roll.default aten.round.default aten.rsqrt.default "
    "aten.rsub.Scalar aten.rsub.Tensor aten.scalar_tensor.default aten.scatter.src aten.scatter.value "
    "aten.scatter_.src aten.scatter_.value aten.scatter_add.default aten.scatter_add_.default "
    "aten.scatter_reduce.two aten.searchsorted.Tensor aten.select_scatter.default aten.selu.default "
    "aten.selu_.default aten.sgn.default aten.sigmoid.default aten.sigmoid_.default aten.sign.default "
    "aten.silu.default aten.silu_.default aten.sin.default aten.sinh.default "
    "aten.slice_scatter.default aten.smooth_l1_loss.default aten.soft_margin_loss.default "
    "aten.softmax.int aten.softplus.default aten.softshrink.default aten.sort.default "
    "aten.special_erf.default aten.sqrt.default aten.sqrt_.default aten.square.default "
    "aten.square_.default aten.stack.default aten.std.correction aten.std.default aten.std.dim "
    "aten.sub.Scalar aten.sub.Tensor aten.sub_.Scalar aten.sub_.Tensor aten.subtract.Tensor "
    "aten.sum.default aten.sum.dim_IntList aten.sym_constrain_range.default "
    "aten.sym_constrain_range_for_size.default aten.sym_numel.default aten.sym_size.int "
    "aten.take_along_dim.default aten.tan.default aten.tanh.default aten.tanh_.default "
    "aten.tensordot.default aten.threshold.default aten.threshold_.default aten.tile.default "
    "aten.topk.default aten.trace.default aten.tril.default aten.tril_.default "
    "aten.tril_indices.default aten.triplet_margin_loss.default aten.triu.default aten.triu_.default "
    "aten.triu_indices.default aten.true_divide.Tensor aten.trunc.default aten.upsample_bicubic2d.vec "
    "aten.upsample_bilinear2d.vec aten.upsample_linear1d.vec aten.upsample_nearest1d.vec "
    "aten.upsample_nearest2d.vec aten.upsample_nearest3d.vec aten.upsample_trilinear3d.vec "
    "aten.var.correction aten.var.default aten.var.dim aten.var_mean.correction aten.vdot.default "
    "aten.vstack.default aten.where.Scalar aten.where.ScalarOther aten.where.ScalarSelf "
    "aten.where.self aten.zero_.default aten.zeros.default aten.zeros_like.default torch.sym_max "
    "torch.sym_min";

constexpr std::string_view to_shared_memory =
    "aten.alias.default aten.broadcast_tensors.default aten.broadcast_to.default aten.chunk.default "
    "aten.contiguous.default aten.detach.default aten.diag.default aten.diagonal.default "
    "aten.einsum.default aten.expand.default aten.expand_as.default aten.flatten.using_ints "
    "aten.hsplit.int aten.imag.default aten.lift_fresh.default aten.mT.default aten.matrix_H.default "
    "aten.meshgrid.default aten.meshgrid.indexing aten.moveaxis.intlist aten.movedim.int "
    "aten.movedim.intlist aten.narrow.default aten.numpy_T.default aten.pad.default "
    "aten.permute.default aten.positive.default aten.ravel.default aten.real.default "
    "aten.repeat_interleave.self_int aten.reshape.default aten.reshape_as.default aten.select.int "
    "aten.slice.Tensor aten.split.Tensor aten.split.sizes aten.split_with_sizes.default "
    "aten.squeeze.default aten.squeeze.dim aten.squeeze.dims aten.swapaxes.default "
    "aten.swapdims.default aten.t.default aten.tensor_split.sections aten.to.device aten.to.dtype "
    "aten.to.dtype_layout aten.to.other aten.transpose.int aten.type_as.default aten.unbind.int "
    "aten.unflatten.int aten.unfold.default aten.unsafe_chunk.default aten.unsqueeze.default "
    "aten.view.default aten.view_as.default aten.view_as_complex.default aten.view_as_real.default";

constexpr std::string_view drawing =
    "aten.alpha_dropout_.default aten.bernoulli.default aten.bernoulli.p aten.bernoulli_.float "
    "aten.normal_.default aten.rand.default aten.rand_like.default aten.randint.default "
    "aten.randint.low aten.randint_like.default aten.randn.default aten.randn_like.default "
    "aten.randperm.default aten.uniform_.default";

// A result of `batch_norm` is always new memory, and its schema does not say that it writes statistics.
constexpr std::array<Operator, 15> others{
    {{.name = "aten.alpha_dropout.default", .may_share = true, .draws = Draws::always},
     {.name = "aten.batch_norm.default", .writes = "running_mean running_var"},
     {.name = "aten.div.out", .writes = "out"},
     {.name = "aten.dropout.default", .may_share = true, .draws = Draws::dropout},
     {.name = "aten.dropout_.default", .draws = Draws::dropout},
     {.name = "aten.feature_alpha_dropout.default", .may_share = true, .draws = Draws::always},
     {.name = "aten.feature_dropout.default", .may_share = true, .draws = Draws::dropout},
     {.name = "aten.feature_dropout_.default", .draws = Draws::dropout},
     {.name = "aten.gru.input", .draws = Draws::if_dropout},
     {.name = "aten.instance_norm.default", .writes = "running_mean running_var"},
     {.name = "aten.lstm.input", .draws = Draws::if_dropout},
     {.name = "aten.rnn_relu.input", .draws = Draws::if_dropout},
     {.name = "aten.rnn_tanh.input", .draws = Draws::if_dropout},
     {.name = "aten.rrelu.default", .draws = Draws::if_training},
     {.name = "aten.scaled_dot_product_attention.default", .draws = Draws::dropout}}};

// No std::views: clang 14 cannot compile them with the library of GCC 12.
std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Sorted by name.
std::vector<Operator> all_operators() {
  std::vector<Operator> all(others.begin(), others.end());
  const auto add = [&](std::string_view names, const Operator& like) {
    for (const std::string_view name : split_words(names)) {
      all.push_back(like);
      all.back().name = name;
    }
  };
  add(to_new_memory, {});
  add(to_shared_memory, {.may_share = true});
  add(drawing, {.draws = Draws::always});
  for (Operator& each : all)
    if (each.name.find("_.") != std::string_view::npos && each.name.find("__.") == std::string_view::npos)
      each.writes = "self";
  std::ranges::sort(all, {}, &Operator::name);
  return all;
}

bool is_positive(const Argument* argument) {
  if (argument == nullptr) return false;
  if (const auto* number = std::get_if<double>(&argument->value)) return *number > 0;
  if (const auto* number = std::get_if<std::int64_t>(&argument->value)) return *number > 0;
  return !std::holds_alternative<std::monostate>(argument->value);  // computed: it can be positive
}

bool is_false(const Argument* argument) {
  return argument != nullptr && argument->value == decltype(argument->value)(false);
}

}  // namespace

std::span<const Operator> operators() {
  static const std::vector<Operator> all = all_operators();
  return all;
}

const Operator* find_operator(std::string_view name) {
  const auto found = std::ranges::lower_bound(operators(), name, {}, &Operator::name);
  return found != operators().end() && found->name == name ? &*found : nullptr;
}

bool overwrites(const Operator& called, std::string_view argument) {
  const auto names = split_words(called.writes);
  return std::ranges::find(names, argument) != names.end();
}

const Argument* find_argument(const Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.arguments, name, &Argument::name);
  return found == node.arguments.end() ? nullptr : &*found;
}

std::vector<ValueId> reads_of(const Node& node, const Argument* argument) {
  std::vector<ValueId> values;
  if (argument == nullptr) return values;
  const auto add = [&](const Argument& one) {
    if (const auto* read = std::get_if<Argument::Read>(&one.value)) values.push_back(node.reads[read->index]);
  };
  add(*argument);
  if (const auto* items = std::get_if<Argument::List>(&argument->value))
    std::for_each(items->begin(), items->end(), add);
  return values;
}

bool draws_random_numbers(const Node& node) {
  const Operator* called = find_operator(node.kind);
  if (called == nullptr) throw InternalError("an exported graph has an operator that is not listed");
  switch (called->draws) {
    case Draws::nothing:
      return false;
    case Draws::always:
      return true;
    case Draws::dropout:
    case Draws::if_dropout:
      return !is_false(find_argument(node, "train")) &&
             (is_positive(find_argument(node, "p")) || is_positive(find_argument(node, "dropout")) ||
              is_positive(find_argument(node, "dropout_p")));
    case Draws::if_training: {
      const Argument* training = find_argument(node, "training");
      return training != nullptr && !is_false(training);
    }
  }
  return true;
}

bool draws_for_whole_batch(const Node& node) {
  return draws_random_numbers(node) && find_operator(node.kind)->draws != Draws::dropout;
}

}  // namespace trainyard::models
