#include "reports/draw/image.h"

#include <cmath>
#include <memory>

#include <cairo-pdf.h>
#include <cairo.h>
#include <librsvg/rsvg.h>

#include "base/error.h"

namespace trainyard::reports {

namespace {

constexpr double points_per_unit = 0.75;  // CSS: 72 points or 96 units per inch

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

// A parsed SVG document of a known size.
class Document {
 public:
  explicit Document(const std::string& svg) {
    GError* error = nullptr;
    handle_.reset(rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
    if (!handle_) fail(error);
    if (rsvg_handle_get_intrinsic_size_in_pixels(handle_.get(), &width_, &height_) == FALSE)
      throw InternalError("drawing a figure: the SVG has no size");
  }
  double width() const { return width_; }
  double height() const { return height_; }

  void draw_on(cairo_surface_t* surface, double scale) const {
    const Owned<cairo_t> context(cairo_create(surface));
    cairo_scale(context.get(), scale, scale);
    const RsvgRectangle viewport{0, 0, width_, height_};
    GError* error = nullptr;
    if (rsvg_handle_render_document(handle_.get(), context.get(), &viewport, &error) == FALSE) fail(error);
  }

 private:
  Owned<RsvgHandle> handle_;
  double width_ = 0;
  double height_ = 0;
};

}  // namespace

bool writes_pictures() {
  return true;
}

std::string png_of(const std::string& svg, double scale) {
  const Document document(svg);
  const Owned<cairo_surface_t> surface(
      cairo_image_surface_create(CAIRO_FORMAT_ARGB32, static_cast<int>(std::ceil(document.width() * scale)),
                                 static_cast<int>(std::ceil(document.height() * scale))));
  document.draw_on(surface.get(), scale);
  std::string bytes;
  if (cairo_surface_write_to_png_stream(surface.get(), append, &bytes) != CAIRO_STATUS_SUCCESS)
    throw InternalError("drawing a figure: cairo could not write the PNG");
  return bytes;
}

std::string pdf_of(const std::string& svg, const std::string& created, const std::string& title) {
  const Document document(svg);
  std::string bytes;
  const Owned<cairo_surface_t> surface(cairo_pdf_surface_create_for_stream(
      append, &bytes, document.width() * points_per_unit, document.height() * points_per_unit));
  // By default a PDF has the current date, so no two would be equal. cairo does not accept fractions of a
  // second.
  const std::string date = created.substr(0, std::string("2026-11-20T09:30:12").size()) + "Z";
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, date.c_str());
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_MOD_DATE, date.c_str());
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
  document.draw_on(surface.get(), points_per_unit);
  cairo_surface_finish(surface.get());
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS)
    throw InternalError("drawing a figure: cairo could not write the PDF");
  return bytes;
}

}  // namespace trainyard::reports
