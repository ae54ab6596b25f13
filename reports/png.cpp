#include "reports/png.h"

#include <cmath>
#include <memory>

#include <cairo.h>
#include <librsvg/rsvg.h>

#include "models/error.h"

namespace trainyard::reports {

namespace {

struct Release {
  void operator()(RsvgHandle* handle) const { g_object_unref(handle); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(GError* error) const { g_error_free(error); }
};
template <typename Resource>
using Owned = std::unique_ptr<Resource, Release>;

[[noreturn]] void fail(GError* error) {
  const Owned<GError> owned(error);
  throw InternalError(std::string("drawing a figure: ") +
                      (error != nullptr ? error->message : "librsvg failed"));
}

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

std::string png_of(const std::string& svg, double scale) {
  GError* error = nullptr;
  const Owned<RsvgHandle> handle(
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
  if (!handle) fail(error);
  double width = 0;
  double height = 0;
  if (rsvg_handle_get_intrinsic_size_in_pixels(handle.get(), &width, &height) == FALSE) {
    throw InternalError("drawing a figure: the SVG has no size");
  }
  const Owned<cairo_surface_t> surface(
      cairo_image_surface_create(CAIRO_FORMAT_ARGB32, static_cast<int>(std::ceil(width * scale)),
                                 static_cast<int>(std::ceil(height * scale))));
  const Owned<cairo_t> context(cairo_create(surface.get()));
  cairo_scale(context.get(), scale, scale);
  const RsvgRectangle viewport{0, 0, width, height};
  if (rsvg_handle_render_document(handle.get(), context.get(), &viewport, &error) == FALSE) fail(error);
  std::string bytes;
  if (cairo_surface_write_to_png_stream(surface.get(), append, &bytes) != CAIRO_STATUS_SUCCESS) {
    throw InternalError("drawing a figure: cairo could not write the PNG");
  }
  return bytes;
}

}  // namespace trainyard::reports
