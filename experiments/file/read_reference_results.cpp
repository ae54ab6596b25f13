#include "experiments/file/read_reference_results.h"

#include <algorithm>
#include <cmath>

#include "base/named_row.h"
#include "base/plain_file.h"
#include "experiments/config/key_lookup.h"
#include "experiments/config/toml_tree.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

namespace {

const std::vector<std::string> metrics_by_epoch{"train_accuracy", "validation_accuracy", "train_loss",
                                                "validation_loss"};
const std::vector<std::string> metrics_of_all{"train_seconds", "total_validation_seconds"};

const std::vector<std::string> metrics_of_tables{
    "train_accuracy", "train_loss",    "validation_accuracy", "validation_loss",         "test_accuracy",
    "test_loss",      "train_seconds", "total_train_seconds", "total_validation_seconds"};

std::vector<std::string> arm_keys() {
  std::vector<std::string> keys = metrics_of_all;
  for (const std::string& metric : metrics_by_epoch) {
    keys.push_back(metric);
    keys.push_back(metric + "_last");
  }
  keys.push_back("note");
  return keys;
}

std::optional<double> non_negative(const TomlNode& item) {
  double number = -1;
  if (const auto* integer = std::get_if<std::int64_t>(&item.content)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&item.content)) number = *real;
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

// The points of [first, last]: the first and the last epoch.
std::vector<PublishedPoint> pair_of(const TomlMember& member, double epochs, Diagnostics& problems) {
  const TomlNode::List* list = member.value.list();
  if (list == nullptr || list->size() != 2 || !non_negative(list->front()) || !non_negative(list->back())) {
    report_wrong(member.name, "[first, last], two numbers >= 0", member.value, problems);
    return {};
  }
  return {{1, *non_negative(list->front())}, {epochs, *non_negative(list->back())}};
}

// "vgg16" is a different network than "vgg11", not a typing error.
bool differ_in_digits(std::string a, std::string b) {
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  std::erase_if(a, is_digit);
  std::erase_if(b, is_digit);
  return a == b;
}

// Whether the table has numbers of an arm. Other tables are ignored.
bool is_like_a_model(const TomlNode::Table& table) {
  return std::ranges::any_of(table, [](const TomlMember& member) {
    const TomlNode::Table* arm = member.value.table();
    return arm != nullptr && std::ranges::any_of(*arm, [](const TomlMember& metric) {
             return contains(arm_keys(), metric.name);
           });
  });
}

// "mlp (mp-ddp)": a model, and an arm in brackets.
PublishedVerdict verdict_on(const std::string& text) {
  const std::size_t open = text.find(" (");
  if (open == std::string::npos || !text.ends_with(')')) return {"", "", text, ""};
  return {"", "", text.substr(0, open), text.substr(open + 2, text.size() - open - 3)};
}

// A list of numbers, or one number. Empty: it is neither.
std::vector<double> numbers_of(const TomlNode& item) {
  if (const auto number = non_negative(item)) return {*number};
  std::vector<double> numbers;
  for (const TomlNode& one : item.list() != nullptr ? *item.list() : TomlNode::List{})
    if (const auto number = non_negative(one)) numbers.push_back(*number);
  return item.list() != nullptr && numbers.size() == item.list()->size() ? numbers : std::vector<double>{};
}

// A member of the table `tables` of a source.
PublishedTable published_table(const TomlMember& section, const std::string& place, Diagnostics& problems) {
  PublishedTable table;
  table.title = section.name;
  const auto values = [&](const TomlMember& member) {
    const TomlNode::List* list = member.value.list();
    for (const TomlNode& item : list != nullptr ? *list : TomlNode::List{})
      if (const auto value = as_value(item)) table.values.push_back(plain_text(*value));
    if (list == nullptr || table.values.size() != list->size() || list->size() < 2)
      report_wrong("values", "a list of at least two values of the axis, the benchmark first", member.value,
                   problems);
  };
  const auto at = [&](const TomlMember& member) {
    const TomlNode::Table* settings = member.value.table();
    for (const TomlMember& setting : settings != nullptr ? *settings : TomlNode::Table{})
      if (const auto value = as_value(setting.value)) table.at[setting.name] = plain_text(*value);
    if (settings == nullptr || table.at.size() != settings->size())
      report_wrong("at", "a table of settings, as in { epochs = 1 }", member.value, problems);
  };
  const auto numbers = [&](const TomlMember& member) {
    table.numbers[member.name] = numbers_of(member.value);
    if (table.numbers[member.name].empty())
      report_wrong(member.name, "a number >= 0, or a list of them", member.value, problems);
  };
  std::vector<KeyReader> keys{
      {"axis", value_reader(choice("axis", {}), table.axis, problems)},
      {"note", value_reader(choice("note", {}), table.note, problems)},
      {"values", values},
      {"at", at},
      {"repeats", value_reader(bounded("repeats", ValueType::boolean), table.repeats, problems)}};
  for (const std::string& metric : metrics_of_tables) keys.push_back({metric, numbers});
  read_table(section, place, keys, problems);
  if (table.axis.empty() != table.values.empty())
    problems.error(section.at, "{} needs both `axis` and `values`, or neither", place);
  for (const auto& [metric, given] : table.numbers)
    if (!given.empty() && !table.axis.empty() &&
        (given.size() != table.values.size() || given.front() != 100))
      problems.error(section.at,
                     "{} of {} needs one percentage for each of `values`, and the first must be 100", metric,
                     place);
  return table;
}

// Reads the table of one source.
class SourceReader {
 public:
  SourceReader(const TomlMember& section, const PublishedNames& names, Diagnostics& problems)
      : table_(*section.value.table()),
        names_(names),
        problems_(problems),
        source_{section.name, {}, {}, {}},
        of_text_{names_of_text("models"), names_of_text("arms")} {}

  PublishedSource read() {
    for (const TomlMember& member : table_) {
      if (member.name == "dataset" && member.value.text() != nullptr) source_.dataset = *member.value.text();
      if (member.value.table() == nullptr) continue;
      if (member.name == "tables")
        for (const TomlMember& one : *member.value.table())
          source_.tables.push_back(
              published_table(one, fmt::format("[{}.tables.{}]", source_.name, one.name), problems_));
      else if (member.name == "verdict")
        read_verdicts(member);
      else if (contains(names_.models, member.name))
        read_model(member);
      else if (is_like_a_model(*member.value.table()))
        is_mistyped_model(member.name, member.at);
      if (member.name == "hardware") read_texts(member, source_.hardware);
      if (member.name == "sizes") read_texts(member, source_.sizes);
    }
    return std::move(source_);
  }

 private:
  static void read_texts(const TomlMember& section, std::map<std::string, std::string>& texts) {
    for (const TomlMember& member : *section.value.table()) {
      if (const auto* number = std::get_if<std::int64_t>(&member.value.content))
        texts[member.name] = std::to_string(*number);
      if (member.value.text() != nullptr) texts[member.name] = *member.value.text();
    }
  }

  // The list `models` or `arms` of the source.
  std::vector<std::string> names_of_text(const std::string& list) {
    std::vector<std::string> names;
    const auto* member = row_or_null(table_, &TomlMember::name, list);
    if (member == nullptr || member->value.table() != nullptr) return names;
    if (member->value.list() != nullptr)
      for (const TomlNode& item : *member->value.list())
        if (item.text() != nullptr) names.push_back(*item.text());
    if (names.empty() || names.size() != member->value.list()->size())
      report_wrong(list, "a list of names that only the publication has", member->value, problems_);
    return names;
  }

  // Reports a name that is probably mistyped: near to a known one, neither known nor listed in the source.
  bool is_mistyped(const std::string& name, const Location& at, const std::string& what,
                   std::vector<std::string> PublishedNames::*known, const std::string& list) {
    if (name.empty() || contains(names_.*known, name) || contains(of_text_.*known, name)) return false;
    const std::string near = nearest_name(name, names_.*known);
    if (near.empty() || differ_in_digits(near, name)) return false;
    problems_.error(
        at,
        "there is no {0} {1}; did you mean {2}? If only the publication has it, add {3} = [{1}] to "
        "[{4}]",
        what, in_quotes(name), in_quotes(near), list, source_.name);
    return true;
  }
  bool is_mistyped_model(const std::string& name, const Location& at) {
    return is_mistyped(name, at, "model", &PublishedNames::models, "models");
  }
  bool is_mistyped_arm(const std::string& name, const Location& at) {
    return is_mistyped(name, at, "strategy", &PublishedNames::arms, "arms");
  }

  // `epochs`: 0 if the file does not have it.
  void read_metric(const TomlMember& member, const std::string& model, double epochs,
                   const std::string& arm) {
    if (member.name == "note") return;
    const std::string table = fmt::format("[{}.{}]", source_.name, model);
    if (!contains(arm_keys(), member.name))
      return report_unknown(member, "an arm of " + table, arm_keys(), problems_);
    PublishedSeries series{model, arm, member.name, {}};
    const bool whole = contains(metrics_of_all, member.name);
    if (!whole && epochs < 1)
      return problems_.error(member.at, "{} needs the number of epochs: set `epochs` in {}", member.name,
                             table);
    if (contains(metrics_by_epoch, member.name)) {
      series.points = pair_of(member, epochs, problems_);
    } else if (const auto value = non_negative(member.value)) {
      if (!whole) series.metric.resize(series.metric.size() - std::string("_last").size());
      series.points = {{whole ? 0 : epochs, *value}};
    } else {
      report_wrong(member.name, "a number >= 0", member.value, problems_);
    }
    if (!series.points.empty()) source_.series.push_back(std::move(series));
  }

  void read_model(const TomlMember& section) {
    double epochs = 0;
    if (const auto* line = row_or_null(*section.value.table(), &TomlMember::name, "epochs")) {
      epochs = non_negative(line->value).value_or(0);
      if (epochs < 1) report_wrong("epochs", "an integer >= 1", line->value, problems_);
    }
    for (const TomlMember& member : *section.value.table()) {
      if (member.name == "epochs") continue;
      if (member.value.table() == nullptr)
        report_wrong(member.name, "a table of numbers of this arm", member.value, problems_);
      else if (!is_mistyped_arm(member.name, member.at))
        for (const TomlMember& metric : *member.value.table())
          read_metric(metric, section.name, epochs, member.name);
    }
  }

  void read_effect(const std::string& metric, const TomlMember& member) {
    const TomlNode::List* list = member.value.list();
    const auto is_text = [](const TomlNode& item) { return item.text() != nullptr; };
    if (list == nullptr || !std::ranges::all_of(*list, is_text))
      return report_wrong(member.name, R"x(a list of models, as in ["vgg11", "mlp (mp-ddp)"])x", member.value,
                          problems_);
    for (const TomlNode& item : *list) {
      PublishedVerdict verdict = verdict_on(*item.text());
      verdict.metric = metric;
      verdict.effect = member.name;
      is_mistyped_model(verdict.model, item.at);
      is_mistyped_arm(verdict.arm, item.at);
      source_.verdicts.push_back(std::move(verdict));
    }
  }

  // The table `verdict` of the source.
  void read_verdicts(const TomlMember& section) {
    const std::string place = "[" + source_.name + "." + section.name + "]";
    const auto of_metric = [&](const TomlMember& metric) {
      if (metric.value.table() == nullptr)
        return report_wrong(metric.name, R"(a table, as in { improves = ["mlp"] })", metric.value, problems_);
      std::vector<KeyReader> effects;
      for (const char* effect : {"improves", "no-change", "deteriorates"})
        effects.push_back({effect, [&](const TomlMember& member) { read_effect(metric.name, member); }});
      read_keys(*metric.value.table(), metric.name + " of " + place, effects, problems_);
    };
    read_keys(*section.value.table(), place,
              {{"accuracy", of_metric}, {"loss", of_metric}, {"time", of_metric}}, problems_);
  }

  const TomlNode::Table& table_;
  const PublishedNames& names_;
  Diagnostics& problems_;
  PublishedSource source_;
  PublishedNames of_text_;
};

}  // namespace

Published published_from_toml(const std::string& text, const std::string& file, const PublishedNames& names,
                              Diagnostics& problems) {
  Published published{file, text, {}};
  try {
    const TomlNode root = parse_toml(text, file);
    for (const TomlMember& section : *root.table()) {
      if (section.value.table() == nullptr) continue;
      PublishedSource source = SourceReader(section, names, problems).read();
      if (!source.series.empty() || !source.verdicts.empty() || !source.tables.empty())
        published.sources.push_back(std::move(source));
    }
  } catch (const NotToml& error) {
    problems.error(error.at, error.message);
    return published;
  }
  if (published.sources.empty() && problems.errors() == 0)
    problems.error({file, 1, 1},
                   "has no numbers; write one table per source and model, as in [paper-2025.mlp]");
  return published;
}

std::optional<Published> read_published(const std::string& name, const Location& at,
                                        const std::filesystem::path& folder, const PublishedNames& names,
                                        Diagnostics& problems) {
  const std::filesystem::path file = folder / name;
  const PlainContent content = plain_content(file, max_file_bytes);
  if (!content.problem.empty()) {
    problems.error(at, "published names " + in_quotes(name) + ", but " + file.string() +
                           " is not a readable file: " + content.problem);
    return std::nullopt;
  }
  Published published = published_from_toml(content.text, file.string(), names, problems);
  published.file = name;
  return published;
}

}  // namespace trainyard::experiments
