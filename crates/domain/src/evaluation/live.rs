//! The answers of stored evidence, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use super::tally::GroupTally;
use super::{Group, Report, ReportSettings, TalliedAnswer};
use crate::statistics::LabelSelection;

/// The first answers of a group, whose scores give the candidates of thresholds.
const FIRST_ANSWERS: usize = 500;

/// Collects the answers of stored evidence for a report. Each request has one answer to a question, so there are no two
/// models on the same items.
#[derive(Debug, Default)]
pub struct LiveAnswers(BTreeMap<Group, LiveGroup>);

#[derive(Debug, Default)]
struct LiveGroup {
    /// The oldest answers so far.
    first: VecDeque<TalliedAnswer>,
    tally: GroupTally,
}

impl LiveAnswers {
    /// Adds an answer that is older than the answers before.
    pub fn add(&mut self, group: Group, answer: TalliedAnswer) {
        let LiveGroup { first, tally } = self.0.entry(group).or_default();
        first.push_back(answer);
        if first.len() > FIRST_ANSWERS
            && let Some(later) = first.pop_front()
        {
            tally.add(later, false);
        }
    }

    /// Computes the report. Volunteered labels give no threshold, so that all of them have figures.
    pub fn report(self, settings: &ReportSettings) -> Report {
        let is_for_candidates = settings.selection == LabelSelection::Random;
        let tallies = self.0.into_iter().map(|(group, LiveGroup { first, mut tally })| {
            for answer in first {
                tally.add(answer, is_for_candidates);
            }
            (group, tally)
        });
        Report::of_tallies(tallies.collect(), settings)
    }
}
