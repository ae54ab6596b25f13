// The members of each type of a report, by name. One list serves the writer and the reader of `report.json`.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "reports/document/report.h"

namespace trainyard::reports {

template <typename Type, typename Value>
struct Member {
  const char* name;  // in the file
  Value Type::*value;
};
template <typename Type, typename Value>
Member(const char*, Value Type::*) -> Member<Type, Value>;

// A tuple of `Member`, in the order of the file.
template <typename T>
inline constexpr auto members_of = nullptr;

template <>
inline constexpr auto members_of<Reason> =
    std::tuple{Member{"kind", &Reason::kind}, Member{"text", &Reason::text}, Member{"load", &Reason::load}};

template <>
inline constexpr auto members_of<Caveat> =
    std::tuple{Member{"mark", &Caveat::mark}, Member{"text", &Caveat::text}};

template <>
inline constexpr auto members_of<DecisionInterval> = std::tuple{
    Member{"confidence", &DecisionInterval::confidence}, Member{"interval", &DecisionInterval::interval}};

template <>
inline constexpr auto members_of<LaterEstimate> =
    std::tuple{Member{"n", &LaterEstimate::n}, Member{"effect", &LaterEstimate::effect},
               Member{"ci95", &LaterEstimate::ci95}};

template <>
inline constexpr auto members_of<Verdict> =
    std::tuple{Member{"metric", &Verdict::metric},
               Member{"arm", &Verdict::arm},
               Member{"verdict", &Verdict::kind},
               Member{"verified", &Verdict::verified},
               Member{"caveats", &Verdict::caveats},
               Member{"reason", &Verdict::reason},
               Member{"notes", &Verdict::notes},
               Member{"left_out", &Verdict::dropped},
               Member{"scale", &Verdict::scale},
               Member{"effect", &Verdict::effect},
               Member{"margin", &Verdict::margin},
               Member{"ci95", &Verdict::ci95},
               Member{"ci90", &Verdict::ci90},
               Member{"p", &Verdict::p},
               Member{"hypothesis", &Verdict::hypothesis},
               Member{"alpha", &Verdict::alpha},
               Member{"first_look", &Verdict::first_look},
               Member{"last_look", &Verdict::last_look},
               Member{"n", &Verdict::n},
               Member{"later", &Verdict::later},
               Member{"decision", &Verdict::decision},
               Member{"identical", &Verdict::identical},
               Member{"baseline_mean", &Verdict::baseline_mean},
               Member{"arm_mean", &Verdict::arm_mean},
               Member{"seeds_needed", &Verdict::seeds_needed},
               Member{"cannot_be_resolved", &Verdict::cannot_be_resolved},
               Member{"baseline_runs", &Verdict::baseline_runs},
               Member{"arm_runs", &Verdict::arm_runs}};

template <>
inline constexpr auto members_of<Comparability> = std::tuple{
    Member{"refused", &Comparability::refused},   Member{"times_refused", &Comparability::times_refused},
    Member{"declared", &Comparability::declared}, Member{"not_stated", &Comparability::not_stated},
    Member{"caveats", &Comparability::caveats},   Member{"broken", &Comparability::broken}};

template <>
inline constexpr auto members_of<Sample> = std::tuple{
    Member{"metric", &Sample::metric}, Member{"n", &Sample::n},           Member{"mean", &Sample::mean},
    Member{"sd", &Sample::sd},         Member{"ci95", &Sample::interval}, Member{"best", &Sample::best}};

template <>
inline constexpr auto members_of<Curve> =
    std::tuple{Member{"metric", &Curve::metric},       Member{"replica", &Curve::replica},
               Member{"points", &Curve::points},       Member{"final", &Curve::final},
               Member{"by_second", &Curve::by_second}, Member{"differences", &Curve::differences}};

template <>
inline constexpr auto members_of<ArmRun> =
    std::tuple{Member{"pair", &ArmRun::pair}, Member{"key", &ArmRun::key}};

template <>
inline constexpr auto members_of<TimelineEvent> =
    std::tuple{Member{"replica", &TimelineEvent::replica}, Member{"stage", &TimelineEvent::stage},
               Member{"part", &TimelineEvent::part},       Member{"micro_batch", &TimelineEvent::micro_batch},
               Member{"begin", &TimelineEvent::begin},     Member{"end", &TimelineEvent::end}};

template <>
inline constexpr auto members_of<StepTimeline> =
    std::tuple{Member{"run", &StepTimeline::run}, Member{"epoch", &StepTimeline::epoch},
               Member{"step", &StepTimeline::step}, Member{"events", &StepTimeline::events}};

template <>
inline constexpr auto members_of<Cause> =
    std::tuple{Member{"name", &Cause::name}, Member{"of_times", &Cause::of_times},
               Member{"evidence", &Cause::evidence}, Member{"advice", &Cause::advice}};

template <>
inline constexpr auto members_of<PartChange> =
    std::tuple{Member{"part", &PartChange::part}, Member{"change", &PartChange::change},
               Member{"ci95", &PartChange::ci95}, Member{"n", &PartChange::n}};

template <>
inline constexpr auto members_of<RankCosts> =
    std::tuple{Member{"server", &RankCosts::server}, Member{"sent_bytes", &RankCosts::sent_bytes},
               Member{"held_bytes", &RankCosts::held_bytes}, Member{"staleness", &RankCosts::staleness}};

template <>
inline constexpr auto members_of<Arm> = std::tuple{Member{"value", &Arm::value},
                                                   Member{"runs", &Arm::runs},
                                                   Member{"replicas", &Arm::replicas},
                                                   Member{"stages", &Arm::stages},
                                                   Member{"servers", &Arm::servers},
                                                   Member{"tensor", &Arm::tensor},
                                                   Member{"devices", &Arm::devices},
                                                   Member{"comparability", &Arm::comparability},
                                                   Member{"samples", &Arm::samples},
                                                   Member{"curves", &Arm::curves},
                                                   Member{"speed_up", &Arm::speed_up},
                                                   Member{"time_parts", &Arm::time_parts},
                                                   Member{"timeline", &Arm::timeline},
                                                   Member{"causes", &Arm::causes},
                                                   Member{"part_changes", &Arm::part_changes},
                                                   Member{"rank_costs", &Arm::rank_costs}};

template <>
inline constexpr auto members_of<MachineLimit> =
    std::tuple{Member{"runs", &MachineLimit::runs}, Member{"speed_up", &MachineLimit::speed_up},
               Member{"low", &MachineLimit::low}, Member{"high", &MachineLimit::high},
               Member{"pairs", &MachineLimit::pairs}};

template <>
inline constexpr auto members_of<Cell> = std::tuple{Member{"model", &Cell::model},
                                                    Member{"further", &Cell::further},
                                                    Member{"label", &Cell::label},
                                                    Member{"slug", &Cell::slug},
                                                    Member{"dataset", &Cell::dataset},
                                                    Member{"repeated", &Cell::repeated},
                                                    Member{"baseline", &Cell::baseline},
                                                    Member{"arms", &Cell::arms},
                                                    Member{"limits", &Cell::limits},
                                                    Member{"machine_limits", &Cell::machine_limits},
                                                    Member{"not_defined", &Cell::not_defined},
                                                    Member{"verdicts", &Cell::verdicts}};

template <>
inline constexpr auto members_of<Comparison> =
    std::tuple{Member{"compare", &Comparison::compare}, Member{"experiment", &Comparison::experiment},
               Member{"slug_end", &Comparison::slug_end}, Member{"planned", &Comparison::planned},
               Member{"cells", &Comparison::cells}};

template <>
inline constexpr auto members_of<Statement> =
    std::tuple{Member{"severity", &Statement::severity}, Member{"text", &Statement::text}};

template <>
inline constexpr auto members_of<CheckedExpectation> = std::tuple{
    Member{"experiment", &CheckedExpectation::experiment}, Member{"title", &CheckedExpectation::title},
    Member{"expectation", &CheckedExpectation::expectation}, Member{"values", &CheckedExpectation::values},
    Member{"missed", &CheckedExpectation::missed}};

template <>
inline constexpr auto members_of<RunRow> = std::tuple{Member{"key", &RunRow::key},
                                                      Member{"model", &RunRow::model},
                                                      Member{"title", &RunRow::title},
                                                      Member{"strategy", &RunRow::strategy},
                                                      Member{"seed", &RunRow::seed},
                                                      Member{"status", &RunRow::status},
                                                      Member{"epochs", &RunRow::epochs},
                                                      Member{"epochs_done", &RunRow::epochs_done},
                                                      Member{"attempts", &RunRow::attempts},
                                                      Member{"total_seconds", &RunRow::total_seconds},
                                                      Member{"failure", &RunRow::failure},
                                                      Member{"has_result", &RunRow::has_result},
                                                      Member{"times_count", &RunRow::times_count},
                                                      Member{"times_problem", &RunRow::times_problem},
                                                      Member{"disturbed_epochs", &RunRow::disturbed_epochs},
                                                      Member{"settings", &RunRow::settings},
                                                      Member{"values", &RunRow::values}};

template <>
inline constexpr auto members_of<StudyLine> =
    std::tuple{Member{"label", &StudyLine::label}, Member{"points", &StudyLine::points}};

template <>
inline constexpr auto members_of<StudiedMetric> =
    std::tuple{Member{"model", &StudiedMetric::model},   Member{"title", &StudiedMetric::title},
               Member{"metric", &StudiedMetric::metric}, Member{"lines", &StudiedMetric::lines},
               Member{"runs", &StudiedMetric::runs},     Member{"left_out", &StudiedMetric::left_out}};

template <>
inline constexpr auto members_of<ParameterStudy> =
    std::tuple{Member{"axis", &ParameterStudy::axis},     Member{"values", &ParameterStudy::values},
               Member{"tied", &ParameterStudy::tied},     Member{"baseline", &ParameterStudy::baseline},
               Member{"models", &ParameterStudy::models}, Member{"metrics", &ParameterStudy::metrics}};

template <>
inline constexpr auto members_of<PublishedNumber> =
    std::tuple{Member{"source", &PublishedNumber::source},
               Member{"what", &PublishedNumber::what},
               Member{"metric", &PublishedNumber::metric},
               Member{"unit", &PublishedNumber::unit},
               Member{"published", &PublishedNumber::published},
               Member{"published_sd", &PublishedNumber::published_sd},
               Member{"repeats", &PublishedNumber::repeats},
               Member{"here", &PublishedNumber::here},
               Member{"sd", &PublishedNumber::sd},
               Member{"verdict", &PublishedNumber::verdict},
               Member{"caveats", &PublishedNumber::caveats},
               Member{"remarks", &PublishedNumber::remarks}};

template <>
inline constexpr auto members_of<DeviceUse> =
    std::tuple{Member{"device", &DeviceUse::device}, Member{"strategies", &DeviceUse::strategies}};

template <>
inline constexpr auto members_of<experiments::OwnMetric> =
    std::tuple{Member{"name", &experiments::OwnMetric::name}, Member{"unit", &experiments::OwnMetric::unit},
               Member{"higher_is_better", &experiments::OwnMetric::higher_is_better},
               Member{"is_sum", &experiments::OwnMetric::is_sum}};

template <>
inline constexpr auto members_of<Report> = std::tuple{Member{"name", &Report::name},
                                                      Member{"experiments", &Report::experiments},
                                                      Member{"selected", &Report::selected},
                                                      Member{"date", &Report::date},
                                                      Member{"comparisons", &Report::comparisons},
                                                      Member{"varying", &Report::varying},
                                                      Member{"runs", &Report::runs},
                                                      Member{"studies", &Report::studies},
                                                      Member{"fairness", &Report::fairness},
                                                      Member{"expectations", &Report::expectations},
                                                      Member{"published", &Report::published},
                                                      Member{"published_numbers", &Report::published_numbers},
                                                      Member{"data_profiles", &Report::data_profiles},
                                                      Member{"own_metrics", &Report::own_metrics},
                                                      Member{"devices", &Report::devices},
                                                      Member{"has_records", &Report::has_records},
                                                      Member{"provenance", &Report::provenance}};

// The texts of the values of an enumeration, in their order.
template <typename T>
inline constexpr auto names_of = nullptr;

template <>
inline constexpr std::array<std::string_view, 8> names_of<VerdictKind>{
    "IMPROVES", "NO CHANGE", "DETERIORATES",   "INCONCLUSIVE",
    "INTERIM",  "NO DATA",   "NOT COMPARABLE", "BROKEN"};

template <>
inline constexpr std::array<std::string_view, 13> names_of<ReasonKind>{
    "none",      "few pairs", "few seeds", "stopped",  "narrow margin",  "constant", "diverged",
    "open runs", "no values", "load",      "no ratio", "not comparable", "broken"};

template <>
inline constexpr std::array<std::string_view, 4> names_of<Scale>{"percent", "units of loss",
                                                                 "percentage points", "dB"};

template <>
inline constexpr std::array<std::string_view, 3> names_of<Severity>{"fair", "unfair", "note"};

}  // namespace trainyard::reports
