//! Tournament for questions with more options than labels: contests among groups of options, combined to one
//! distribution.
//!
//! The options are split in order into groups of nearly equal size that fit the labels. The likeliest option of each
//! group advances to the next round, until one is left. Each contest yields the ratio of an option's probability to
//! that of the winner. The weight of an option is the product of the ratios on its path, so the final winner has weight
//! 1. Dividing by the sum of the weights gives the distribution over all options.
//!
//! This is exact if the ratio of two options does not depend on the other offered options (Luce's choice axiom).
//! Language models follow it only approximately.

/// The contests of one question.
#[derive(Debug, Clone)]
pub struct Tournament {
    capacity: usize,
    /// The remaining options, each with the options that it has beaten.
    leaders: Vec<Leader>,
}

#[derive(Debug, Clone)]
struct Leader {
    option: usize,
    /// This option and every option below it, with the weight relative to this one.
    beaten: Vec<(usize, f64)>,
}

impl Tournament {
    /// Starts a tournament among `options`, of which `capacity` (at least 2) fit into one contest.
    pub fn new(options: usize, capacity: usize) -> Self {
        let leaders = (0..options).map(|option| Leader { option, beaten: vec![(option, 1.0)] }).collect();
        Self { capacity: capacity.max(2), leaders }
    }

    /// Returns the contests of this round: the options of each, in order. A contest of one option needs no call. Empty
    /// once the tournament is over.
    pub fn contests(&self) -> Vec<Vec<usize>> {
        self.groups().map(|group| group.iter().map(|leader| leader.option).collect()).collect()
    }

    fn groups(&self) -> impl Iterator<Item = &[Leader]> {
        groups(&self.leaders, self.capacity)
    }

    /// Records the results of this round: one weight per option for each contest, in order. `None` if the shape differs
    /// or a contest has no positive weight.
    pub fn record_results(&mut self, outcomes: &[Vec<f64>]) -> Option<()> {
        let groups: Vec<&[Leader]> = self.groups().collect();
        if groups.len() != outcomes.len() {
            return None;
        }
        let winners: Option<Vec<Leader>> =
            groups.into_iter().zip(outcomes).map(|(group, weights)| Leader::of(group, weights)).collect();
        self.leaders = winners?;
        Some(())
    }

    /// Returns one weight per option, 1 for the winner, not normalised; `None` before the end.
    pub fn weights(&self) -> Option<Vec<f64>> {
        let [winner] = self.leaders.as_slice() else { return None };
        let mut weights = vec![0.0; winner.beaten.len()];
        for (option, weight) in &winner.beaten {
            *weights.get_mut(*option)? = *weight;
        }
        Some(weights)
    }
}

/// Splits the remaining options into the groups of a round; none if only one is left.
pub(super) fn groups<T>(entered: &[T], capacity: usize) -> impl Iterator<Item = &[T]> {
    let count = if entered.len() > 1 { entered.len().div_ceil(capacity) } else { 0 };
    (0..count).map(move |place| {
        let cut = |place: usize| place * entered.len() / count;
        &entered[cut(place)..cut(place + 1)]
    })
}

impl Leader {
    /// Merges a group into its likeliest option (the first on ties), with all others below it.
    fn of(group: &[Self], weights: &[f64]) -> Option<Self> {
        if group.len() != weights.len() || !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) {
            return None;
        }
        let most = weights.iter().copied().fold(0.0, f64::max);
        let winner = weights.iter().position(|weight| *weight >= most).filter(|_| most > 0.0)?;
        let below = |(leader, weight): (&Self, &f64)| {
            let ratio = weight / most;
            leader.beaten.iter().map(move |(option, beside)| (*option, beside * ratio)).collect::<Vec<_>>()
        };
        let beaten = group.iter().zip(weights).flat_map(below).collect();
        Some(Self { option: group[winner].option, beaten })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Plays a tournament with a known distribution; returns the result and the number of contests per round.
    fn play(known: &[f64], capacity: usize) -> (Vec<f64>, Vec<usize>) {
        let mut tournament = Tournament::new(known.len(), capacity);
        let mut rounds = Vec::new();
        loop {
            let contests = tournament.contests();
            if contests.is_empty() {
                break;
            }
            rounds.push(contests.len());
            assert!(contests.iter().all(|contest| (1..=capacity).contains(&contest.len())));
            let outcomes: Vec<Vec<f64>> = contests
                .iter()
                .map(|contest| {
                    let sum: f64 = contest.iter().map(|option| known[*option]).sum();
                    contest.iter().map(|option| known[*option] / sum).collect()
                })
                .collect();
            tournament.record_results(&outcomes).unwrap();
        }
        let weights = tournament.weights().unwrap();
        let sum: f64 = weights.iter().sum();
        (weights.iter().map(|weight| weight / sum).collect(), rounds)
    }

    #[test]
    fn tournament_needs_fewest_rounds() {
        let rounds = |options, capacity| play(&vec![1.0; options], capacity).1;
        assert_eq!(rounds(20, 20), [1]);
        assert_eq!(rounds(21, 20), [2, 1]);
        assert_eq!(rounds(40, 20), [2, 1]);
        assert_eq!(rounds(255, 20), [13, 1]);
        assert_eq!(rounds(255, 26), [10, 1]);
        assert_eq!(rounds(5, 2), [3, 2, 1]);
        assert_eq!(rounds(1, 2), [0; 0]);
    }

    #[test]
    fn contests_have_nearly_equal_size() {
        let sizes: Vec<usize> = Tournament::new(41, 20).contests().iter().map(Vec::len).collect();
        assert_eq!(sizes, [13, 14, 14]);
        assert_eq!(Tournament::new(3, 2).contests(), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn record_results_rejects_invalid_results() {
        let mut tournament = Tournament::new(4, 2);
        assert!(tournament.weights().is_none());
        for outcomes in [
            vec![],
            vec![vec![0.5, 0.5]],
            vec![vec![0.5, 0.5], vec![1.0]],
            vec![vec![0.5, 0.5], vec![0.0, 0.0]],
            vec![vec![0.5, 0.5], vec![f64::NAN, 1.0]],
            vec![vec![0.5, 0.5], vec![-1.0, 1.0]],
        ] {
            assert!(tournament.record_results(&outcomes).is_none(), "{outcomes:?}");
        }
        assert_eq!(tournament.contests().len(), 2, "a bad outcome changes nothing");
    }

    proptest! {
        #[test]
        fn weights_match_model_with_constant_ratios(
            known in prop::collection::vec(0.001_f64..1.0, 2..256),
            capacity in 2_usize..27,
        ) {
            let (read, _) = play(&known, capacity);
            let sum: f64 = known.iter().sum();
            for (read, known) in read.iter().zip(&known) {
                prop_assert!((read - known / sum).abs() < 1e-9);
            }
        }
    }
}
