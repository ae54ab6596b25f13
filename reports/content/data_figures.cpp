#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "models/datasets/class_names.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/document/report.h"

namespace trainyard::reports {

namespace {

// Query for the journal's data profiles. It can be run with `trainyard sql`.
std::string sql_of(const Report& report) {
  return "SELECT json_extract(j.extra, '$.data_profiles')\nFROM experiment e JOIN journal j ON j.id = "
         "e.journal_id\nWHERE e.name IN " +
         experiments_in_sql(report);
}

std::string subject_of(const experiments::ProfiledData& data) {
  return data.source == data.dataset ? data.dataset
                                     : fmt::format("{} (stand-in {})", data.dataset, data.source);
}

constexpr std::size_t most_bars = 40;  // more classes have bars without names

// Only the largest classes, if there are too many for one figure. Returns the sentence about that.
std::string keep_largest(std::vector<Series>& classes) {
  if (classes.size() <= most_bars) return "";
  const std::size_t all = classes.size();
  std::ranges::stable_sort(classes, std::greater<>(), [](const Series& one) { return one.final->mean; });
  classes.resize(most_bars);
  return fmt::format(" The figure has the {} largest of {} classes, and its data has all.", most_bars, all);
}

Figure class_figure(const experiments::ProfiledData& data, const std::string& slug) {
  Figure figure;
  figure.slug = slug + "-classes";
  figure.subject = subject_of(data);
  figure.title = "Training samples by class";
  const auto& [train, validation, test] = data.profile.classes;
  figure.data.columns = {"class", "train", "validation", "test"};
  Bars bars;
  const std::span<const std::string_view> known = models::class_names(data.source);
  const std::vector<std::string> names = data.profile.class_names.empty()
                                             ? std::vector<std::string>(known.begin(), known.end())
                                             : data.profile.class_names;
  for (std::size_t i = 0; i < train.size(); ++i) {
    const std::string name = i < names.size() ? names[i] : std::to_string(i);
    const Point count{0, static_cast<double>(train[i]), std::nan(""), std::nan(""), 1};
    const std::string label = "class " + name;
    std::string key = slug;
    key.append(" ").append(label);
    bars.series.push_back({key, label, name, "grey", 0, {}, count});
    figure.data.rows.push_back({name, train[i], validation[i], test[i]});
  }
  const std::string left_out = keep_largest(bars.series);
  figure.picture = std::move(bars);
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    return std::to_string(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  };
  figure.caption = fmt::format("{} training, {} validation and {} test samples.{}", sum(train),
                               sum(validation), sum(test), left_out);
  return figure;
}

Figure density_figure(const experiments::ProfiledData& data, const std::string& slug) {
  Figure figure;
  figure.slug = slug + "-density";
  figure.subject = subject_of(data);
  figure.title =
      data.profile.channels.size() > 1 ? "Density of the colour channels" : "Density of the pixel values";
  Lines lines;
  lines.x.title = "pixel value";
  lines.y.from_zero = true;
  figure.data.columns = {"channel", "pixel value", "density"};
  const double width = 256.0 / models::brightness_bins;
  for (const models::ChannelCounts& channel : data.profile.channels) {
    Series series{slug + " " + channel.name, channel.name, channel.name, channel.name, 0, {}, std::nullopt};
    if (channel.name.starts_with("channel")) series.colour = "grey";
    const auto all =
        static_cast<double>(std::accumulate(channel.counts.begin(), channel.counts.end(), std::int64_t{0}));
    for (std::size_t i = 0; i < channel.counts.size(); ++i) {
      const double middle = (static_cast<double>(i) + 0.5) * width - 0.5;
      const double density = static_cast<double>(channel.counts[i]) / (all * width);
      series.points.push_back({middle, density, std::nan(""), std::nan(""), 1});
      figure.data.rows.push_back({channel.name, middle, density});
    }
    lines.series.push_back(std::move(series));
  }
  figure.picture = std::move(lines);
  figure.own_legend = true;
  figure.caption = "Density of the pixel values in the training images (histogram with 64 bins).";
  return figure;
}

}  // namespace

std::vector<Figure> make_data_figures(const Report& report) {
  std::vector<Figure> figures;
  for (const experiments::ProfiledData& profiled : report.data_profiles) {
    const std::string slug = fmt::format("data-{}-{}", slug_of(profiled.dataset), slug_of(profiled.identity));
    if (!profiled.profile.classes[0].empty()) figures.push_back(class_figure(profiled, slug));
    if (!profiled.profile.channels.empty()) figures.push_back(density_figure(profiled, slug));
  }
  for (Figure& figure : figures) figure.sql = sql_of(report);
  return figures;
}

}  // namespace trainyard::reports
