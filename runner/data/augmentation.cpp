#include "runner/data/augmentation.h"

#include <array>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include "base/named_row.h"
#include "models/networks/random_stream.h"

namespace trainyard::runner {

namespace {

struct Row {
  std::string_view kind;
  bool flips;
  bool crops;
};

constexpr std::array rows{Row{"none", false, false}, Row{"flip", true, false}, Row{"crop", false, true},
                          Row{"flip-crop", true, true}};

// How pixels lie in memory: [image, plane, line, column, depth].
struct Layout {
  std::int64_t planes, lines, columns, depth;
  Layout(const at::Tensor& images, bool channels_last)
      : planes(channels_last ? 1 : images.size(1)),
        lines(images.size(2)),
        columns(images.size(3)),
        depth(channels_last ? images.size(1) : 1) {}
  std::int64_t line() const { return columns * depth; }
  std::int64_t plane() const { return lines * line(); }
};

// What is done to one image: where its first line and column come from, in the image without padding.
struct Change {
  bool flipped;
  std::int64_t left, top;
};

// One line of an image from that of another; nullptr for a line of the padding.
template <class Number>
void change_line(const Number* from, const Number* fill, const Layout& layout, const Change& change,
                 Number* to) {
  for (std::int64_t x = 0; x < layout.columns; ++x, to += layout.depth) {
    const std::int64_t column = (change.flipped ? layout.columns - 1 - x : x) + change.left;
    const bool inside = from && column >= 0 && column < layout.columns;
    const Number* pixel = inside ? from + column * layout.depth : fill;
    for (std::int64_t d = 0; d < layout.depth; ++d) to[d] = pixel[d];
  }
}

template <class Number>
void change_image(const Number* from, const Number* fill, const Layout& layout, const Change& change,
                  Number* to) {
  for (std::int64_t plane = 0; plane < layout.planes; ++plane, from += layout.plane(), ++fill) {
    for (std::int64_t y = 0; y < layout.lines; ++y, to += layout.line()) {
      const std::int64_t line = y + change.top;
      const bool inside = line >= 0 && line < layout.lines;
      change_line(inside ? from + line * layout.line() : nullptr, fill, layout, change, to);
    }
  }
}

Change change_of(const AugmentationDraws& draws, std::int64_t sample) {
  const auto corner = [&](const at::Tensor& drawn) {
    return drawn.defined() ? drawn.const_data_ptr<std::int64_t>()[sample] - crop_padding : 0;
  };
  return {draws.flipped.defined() && draws.flipped.const_data_ptr<bool>()[sample], corner(draws.left),
          corner(draws.top)};
}

}  // namespace

AugmentationDraws draw_augmentation(std::string_view kind, std::int64_t samples, std::uint64_t seed,
                                    std::int64_t epoch) {
  const Row& row = models::named_row(rows, &Row::kind, "augmentation", kind);
  constexpr std::int64_t places = 2 * crop_padding + 1;
  const at::Tensor drawn =
      at::randint(2 * places * places, {samples},
                  networks::random_stream("augmentation", seed, std::to_string(epoch)), at::kLong);
  AugmentationDraws draws;
  if (row.flips) draws.flipped = drawn.remainder(2).to(at::kBool);
  if (row.crops) {
    const at::Tensor corner = drawn.floor_divide(2);
    draws.left = corner.remainder(places);
    draws.top = corner.floor_divide(places);
  }
  return draws;
}

AugmentationDraws AugmentationDraws::to(at::Device device) const {
  const auto moved = [&](const at::Tensor& drawn) { return drawn.defined() ? drawn.to(device) : drawn; };
  return {moved(flipped), moved(left), moved(top)};
}

at::Tensor augment_by_tensors(const at::Tensor& images, const at::Tensor& places,
                              const AugmentationDraws& draws, const at::Tensor& fill) {
  const std::int64_t batch = images.size(0), lines = images.size(2), columns = images.size(3);
  const auto of_batch = [&](const at::Tensor& drawn) { return drawn.index_select(0, places).unsqueeze(1); };
  const auto shifted = [&](const at::Tensor& along,
                           const at::Tensor& corner) {  // [batch, lines] or [batch, columns]
    return corner.defined() ? along.add(of_batch(corner)).sub_(crop_padding) : along.expand({batch, -1});
  };
  at::Tensor across = at::arange(columns, places.options()).unsqueeze(0);
  if (draws.flipped.defined()) across = at::where(of_batch(draws.flipped), columns - 1 - across, across);
  const at::Tensor x = shifted(across, draws.left);
  const at::Tensor y = shifted(at::arange(lines, places.options()).unsqueeze(0), draws.top);
  const auto inside = [](const at::Tensor& at, std::int64_t end) {
    return at.ge(0).logical_and_(at.lt(end));
  };
  const at::Tensor known = inside(y, lines).unsqueeze(2).logical_and(inside(x, columns).unsqueeze(1));
  const at::Tensor image = at::arange(batch, places.options()).view({-1, 1, 1});
  const at::Tensor pixels = images.permute({0, 2, 3, 1})
                                .index({image, y.clamp(0, lines - 1).unsqueeze(2),
                                        x.clamp(0, columns - 1).unsqueeze(1)});  // [batch, y, x, channel]
  return at::where(known.unsqueeze(3), pixels, fill)
      .permute({0, 3, 1, 2})
      .contiguous(images.suggest_memory_format());
}

at::Tensor augment(const at::Tensor& images, const at::Tensor& places, const AugmentationDraws& draws,
                   const at::Tensor& fill) {
  if (!draws.any()) return images;
  if (!images.is_cpu()) return augment_by_tensors(images, places, draws, fill);
  const bool channels_last = images.is_contiguous(at::MemoryFormat::ChannelsLast);
  const auto format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const Layout layout(images, channels_last);
  const at::Tensor from = images.contiguous(format);
  at::Tensor changed = at::empty_like(from);
  const at::Tensor samples = places.contiguous();
  AT_DISPATCH_ALL_TYPES(images.scalar_type(), "augment", [&] {
    const std::int64_t each = layout.planes * layout.plane();
    for (std::int64_t i = 0; i < places.size(0); ++i) {
      change_image(from.const_data_ptr<scalar_t>() + i * each, fill.const_data_ptr<scalar_t>(), layout,
                   change_of(draws, samples.const_data_ptr<std::int64_t>()[i]),
                   changed.data_ptr<scalar_t>() + i * each);
    }
  });
  return changed;
}

}  // namespace trainyard::runner
