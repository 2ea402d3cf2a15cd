//! The report: figures of each group, and comparisons of two.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use super::model::Groups;
use super::tally::{GroupTally, Latency};
use super::{AnswerOrigin, Cascade, EvaluatedAnswer, Group};
use crate::evidence::LabelSource;
use crate::money::Usd;
use crate::statistics::{
    CalibrationError, LabelSelection, LabelledAnswers, PairedErrors, Probability, Promise, ThresholdCandidates,
    ThresholdFinding, find_threshold,
};

/// The least share of the answers of a decisive group in those of the largest group: one of this number.
const LEAST_PART: usize = 10;

/// The settings of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportSettings {
    /// The selection of the labels.
    pub selection: LabelSelection,
    /// The version that exit codes and requirements look at; `None` for the newest one with answers.
    pub decisive_version: Option<u32>,
    /// The promised risk of a threshold.
    pub alpha: Probability,
    /// The probability of a broken promise, which all questions with a test share.
    pub delta: Probability,
    /// The levels by which a decision may differ from its label.
    pub tolerance: usize,
    /// The seed of the draws for the reference of the calibration error.
    pub seed: u64,
}

/// The report of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The selection of the labels.
    pub selection: LabelSelection,
    /// The promise of each threshold; `None` if alpha or delta is 0 or 1.
    pub promise: Option<Promise>,
    /// The groups, in the order of their questions.
    pub groups: Vec<GroupReport>,
    /// The failed requests by the model that was asked. They have no provider, and so no group.
    pub failed_requests: BTreeMap<String, usize>,
    /// The comparisons of two groups of a question.
    pub comparisons: Vec<Comparison>,
    /// The cascades of two models.
    pub cascades: Vec<Cascade>,
}

/// The figures of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupReport {
    /// The group.
    pub group: Group,
    /// True if exit codes and requirements look at it: a group of the decisive version, with at least a tenth of the
    /// answers of the largest one of its question.
    pub is_decisive: bool,
    /// The number of answers, with and without labels.
    pub answers: usize,
    /// The refusals among them. They count as errors.
    pub refused: usize,
    /// The others without a decision. They count as errors.
    pub unanswered: usize,
    /// The answers whose scores were used for the candidates, and whose labels were used for nothing.
    pub for_candidates: usize,
    /// The number of used labels of each source.
    pub sources: BTreeMap<LabelSource, usize>,
    /// The labelled answers, which have the further figures.
    pub labelled: LabelledAnswers,
    /// The calibration error with its reference; `None` without scores.
    pub calibration: Option<CalibrationError>,
    /// The cost of 1,000 requests, rounded up; `None` beyond the range.
    pub cost_per_1000: Option<Usd>,
    /// The latency of the requests.
    pub latency: Latency,
    /// The threshold; `None` if no answer has a score.
    pub threshold: Option<ThresholdFinding>,
}

/// Two groups of one question on the items that both answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The version of the preset.
    pub preset_version: u32,
    /// The question.
    pub question: String,
    /// The origin of the first answers.
    pub first: AnswerOrigin,
    /// The origin of the second answers.
    pub second: AnswerOrigin,
    /// The items by their errors.
    pub errors: PairedErrors,
}

impl Report {
    /// Computes a report. The last of several answers to one question about one item counts.
    pub fn new<'a>(answers: impl IntoIterator<Item = &'a EvaluatedAnswer>, settings: &ReportSettings) -> Self {
        let mut groups: Groups<'_> = BTreeMap::new();
        for answer in answers {
            groups.entry(&answer.group).or_default().insert(&answer.item, answer);
        }
        let tallies = groups.iter().map(|(group, items)| {
            let mut tally = GroupTally::default();
            for answer in items.values() {
                tally.add(answer.tallied(settings.tolerance), answer.is_for_candidates);
            }
            ((*group).clone(), tally)
        });
        let report = Self::of_tallies(tallies.collect(), settings);
        let tested = report.groups.iter().filter_map(|group| match group.threshold {
            Some(ThresholdFinding::Tested(tested)) => Some((&group.group, tested.point.threshold)),
            _ => None,
        });
        let cascades = Cascade::of_groups(&groups, &tested.collect(), settings.tolerance);
        Self { comparisons: compare_groups(&groups, settings.tolerance), cascades, ..report }
    }

    /// Computes a report without comparisons and cascades.
    pub(super) fn of_tallies(groups: BTreeMap<Group, GroupTally>, settings: &ReportSettings) -> Self {
        // Without labels, or without scores, a question has no test.
        let has_test = |tally: &GroupTally| tally.has_scores && !tally.labelled.is_empty();
        let tested = groups.iter().filter(|(_, tally)| has_test(tally)).map(|(group, _)| &group.question);
        let questions = tested.collect::<BTreeSet<_>>().len();
        let questions = u32::try_from(questions).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        let promise = Promise::new(settings.alpha, settings.delta, questions);
        let reports =
            groups.into_iter().map(|(group, tally)| GroupReport::new(group, tally, promise.as_ref(), settings));
        let mut groups: Vec<GroupReport> = reports.collect();
        groups.sort_by(|one, other| one.group.question.cmp(&other.group.question));
        mark_decisive(&mut groups, settings.decisive_version);
        Self {
            selection: settings.selection,
            promise,
            groups,
            failed_requests: BTreeMap::new(),
            comparisons: Vec::new(),
            cascades: Vec::new(),
        }
    }

    /// Returns true if a decisive group has too few labels for a threshold. A question without labels in any group is left
    /// out: it may be one that nobody labels. Without any labelled question, labels are too few.
    pub fn has_too_few_labels(&self) -> bool {
        let labelled = self.groups.iter().filter(|group| group.labelled.count() > 0);
        let labelled: BTreeSet<&str> = labelled.map(|group| group.group.question.as_str()).collect();
        let is_too_few = |group: &&GroupReport| {
            group.labelled.count() == 0 || matches!(group.threshold, Some(ThresholdFinding::TooFewLabels(_)))
        };
        let mut decisive = self.groups.iter().filter(|group| group.is_decisive).peekable();
        decisive.peek().is_none()
            || labelled.is_empty()
            || decisive.filter(|group| labelled.contains(group.group.question.as_str())).any(|group| is_too_few(&group))
    }
}

/// Marks the groups of a version, the newest by default, that have at least a tenth of the answers of the largest one of
/// their question.
fn mark_decisive(groups: &mut [GroupReport], version: Option<u32>) {
    let version = version.or_else(|| groups.iter().map(|group| group.group.preset_version).max());
    for of_question in groups.chunk_by_mut(|one, other| one.group.question == other.group.question) {
        let of_version = of_question.iter_mut().filter(|group| Some(group.group.preset_version) == version);
        let mut of_version: Vec<&mut GroupReport> = of_version.collect();
        let largest = of_version.iter().map(|group| group.answers).max().unwrap_or_default();
        for group in &mut of_version {
            group.is_decisive = group.answers.saturating_mul(LEAST_PART) >= largest;
        }
    }
}

impl GroupReport {
    fn new(group: Group, tally: GroupTally, promise: Option<&Promise>, settings: &ReportSettings) -> Self {
        let (cost_per_1000, latency, for_candidates) = (tally.cost_per_1000(), tally.latency(), tally.candidates.len());
        let labelled = LabelledAnswers::new(settings.selection, tally.labelled);
        let candidates = ThresholdCandidates::from_scores(tally.candidates);
        let threshold = match (promise, candidates, settings.selection) {
            (_, _, LabelSelection::Volunteered) => Some(ThresholdFinding::Volunteered),
            (Some(promise), Some(candidates), _) => Some(find_threshold(promise, &candidates, &labelled)),
            (Some(promise), None, _) if tally.has_scores => Some(ThresholdFinding::without_labels(promise)),
            _ => None,
        };
        Self {
            group,
            is_decisive: false,
            answers: tally.answers,
            refused: tally.refused,
            unanswered: tally.unanswered,
            for_candidates,
            sources: tally.sources,
            calibration: labelled.calibration_error(settings.seed),
            labelled,
            cost_per_1000,
            latency,
            threshold,
        }
    }
}

fn compare_groups(groups: &Groups<'_>, tolerance: usize) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (number, (first, items)) in groups.iter().enumerate() {
        for (second, others) in groups.iter().skip(number + 1) {
            if (first.preset_version, &first.question) != (second.preset_version, &second.question) {
                continue;
            }
            let pairs = items.iter().filter_map(|(item, answer)| {
                let other = others.get(item)?;
                Some((answer.labelled(tolerance)?.is_error, other.labelled(tolerance)?.is_error))
            });
            let errors = PairedErrors::count(pairs);
            if errors.items() > 0 {
                comparisons.push(Comparison {
                    preset_version: first.preset_version,
                    question: first.question.clone(),
                    first: first.origin.clone(),
                    second: second.origin.clone(),
                    errors,
                });
            }
        }
    }
    comparisons
}
