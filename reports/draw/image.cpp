#include "reports/draw/image.h"

#include <cmath>
#include <memory>

#include <cairo-pdf.h>
#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <librsvg/rsvg.h>

#include "base/error.h"
#include "base/loaded_library.h"

namespace trainyard::reports {

namespace {

constexpr double points_per_unit = 0.75;  // CSS: 72 points or 96 units per inch

// librsvg with cairo, GLib and fontconfig, which it loads. UserError if there is no font: text would be boxes.
struct Librsvg {
  Librsvg() {
    const FcFontSet* found = fonts(nullptr, FcSetSystem);
    if (found == nullptr || found->nfont == 0)
      throw UserError("PNG and PDF cannot be written, because no font was found",
                      "install the fonts DejaVu, in Debian fonts-dejavu-core");
  }

  LoadedLibrary library{"librsvg-2.so.2", "that writes PNG and PDF", "librsvg2-2"};

  decltype(&rsvg_handle_new_from_data) new_from_data = library.function("rsvg_handle_new_from_data");
  decltype(&rsvg_handle_get_intrinsic_size_in_pixels) size_in_pixels =
      library.function("rsvg_handle_get_intrinsic_size_in_pixels");
  decltype(&rsvg_handle_render_document) render = library.function("rsvg_handle_render_document");
  decltype(&FcConfigGetFonts) fonts = library.function("FcConfigGetFonts");
  decltype(&g_object_unref) unref = library.function("g_object_unref");
  decltype(&g_error_free) free_error = library.function("g_error_free");

  decltype(&cairo_create) create = library.function("cairo_create");
  decltype(&cairo_destroy) destroy = library.function("cairo_destroy");
  decltype(&cairo_scale) scale = library.function("cairo_scale");
  decltype(&cairo_surface_destroy) surface_destroy = library.function("cairo_surface_destroy");
  decltype(&cairo_surface_finish) surface_finish = library.function("cairo_surface_finish");
  decltype(&cairo_surface_status) surface_status = library.function("cairo_surface_status");
  decltype(&cairo_image_surface_create) image_surface = library.function("cairo_image_surface_create");
  decltype(&cairo_surface_write_to_png_stream) write_png =
      library.function("cairo_surface_write_to_png_stream");
  decltype(&cairo_pdf_surface_create_for_stream) pdf_surface =
      library.function("cairo_pdf_surface_create_for_stream");
  decltype(&cairo_pdf_surface_set_metadata) set_metadata = library.function("cairo_pdf_surface_set_metadata");
};

const Librsvg& librsvg() {
  static const Librsvg loaded;
  return loaded;
}

struct Release {
  void operator()(RsvgHandle* handle) const { librsvg().unref(handle); }
  void operator()(cairo_surface_t* surface) const { librsvg().surface_destroy(surface); }
  void operator()(cairo_t* context) const { librsvg().destroy(context); }
  void operator()(GError* error) const { librsvg().free_error(error); }
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
    handle_.reset(librsvg().new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
    if (!handle_) fail(error);
    if (librsvg().size_in_pixels(handle_.get(), &width_, &height_) == FALSE)
      throw InternalError("drawing a figure: the SVG has no size");
  }
  double width() const { return width_; }
  double height() const { return height_; }

  void draw_on(cairo_surface_t* surface, double scale) const {
    const Owned<cairo_t> context(librsvg().create(surface));
    librsvg().scale(context.get(), scale, scale);
    const RsvgRectangle viewport{0, 0, width_, height_};
    GError* error = nullptr;
    if (librsvg().render(handle_.get(), context.get(), &viewport, &error) == FALSE) fail(error);
  }

 private:
  Owned<RsvgHandle> handle_;
  double width_ = 0;
  double height_ = 0;
};

}  // namespace

bool can_write_pictures() {
  try {
    librsvg();
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::string png_of(const std::string& svg, double scale) {
  const Document document(svg);
  const Owned<cairo_surface_t> surface(
      librsvg().image_surface(CAIRO_FORMAT_ARGB32, static_cast<int>(std::ceil(document.width() * scale)),
                              static_cast<int>(std::ceil(document.height() * scale))));
  document.draw_on(surface.get(), scale);
  std::string bytes;
  if (librsvg().write_png(surface.get(), append, &bytes) != CAIRO_STATUS_SUCCESS)
    throw InternalError("drawing a figure: cairo could not write the PNG");
  return bytes;
}

std::string pdf_of(const std::string& svg, const std::string& created, const std::string& title) {
  const Document document(svg);
  std::string bytes;
  const Owned<cairo_surface_t> surface(librsvg().pdf_surface(
      append, &bytes, document.width() * points_per_unit, document.height() * points_per_unit));
  // By default a PDF has the current date, so no two would be equal. cairo does not accept fractions of a
  // second.
  const std::string date = created.substr(0, std::string("2026-11-20T09:30:12").size()) + "Z";
  librsvg().set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, date.c_str());
  librsvg().set_metadata(surface.get(), CAIRO_PDF_METADATA_MOD_DATE, date.c_str());
  librsvg().set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
  document.draw_on(surface.get(), points_per_unit);
  librsvg().surface_finish(surface.get());
  if (librsvg().surface_status(surface.get()) != CAIRO_STATUS_SUCCESS)
    throw InternalError("drawing a figure: cairo could not write the PDF");
  return bytes;
}

}  // namespace trainyard::reports
