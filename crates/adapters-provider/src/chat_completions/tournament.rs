//! More options than labels: contests among some of them, and one distribution over all.
//!
//! The options are cut into groups, in their order and as equal in size as can be, so that each group has labels for
//! all of its options. The likeliest of each group goes on to the next round, until one is left. What is kept of a
//! contest are ratios: how likely an option is beside the winner of its contest. An option's weight is the product of
//! the ratios on its way up, so the winner of the last contest weighs most, and divided by their sum the weights are a
//! distribution over all options.
//!
//! This is exact where the ratio of two options does not depend on which others are offered (Luce's choice axiom). A
//! language model keeps to that roughly at best.

/// One question's contests.
#[derive(Debug, Clone)]
pub struct Tournament {
    capacity: usize,
    /// Those who are still in, each with those that it has beaten.
    leaders: Vec<Leader>,
}

#[derive(Debug, Clone)]
struct Leader {
    option: usize,
    /// Every option below it and itself, with its weight beside the leader's.
    beaten: Vec<(usize, f64)>,
}

impl Tournament {
    /// Among so many options, of which `capacity`, at least 2, can be in one contest.
    pub fn new(options: usize, capacity: usize) -> Self {
        let leaders = (0..options).map(|option| Leader { option, beaten: vec![(option, 1.0)] }).collect();
        Self { capacity: capacity.max(2), leaders }
    }

    /// The contests of this round: the options of each, in their order, one or more. An option that is alone has won
    /// without being asked about. Empty when it is over.
    pub fn contests(&self) -> Vec<Vec<usize>> {
        self.groups().map(|group| group.iter().map(|leader| leader.option).collect()).collect()
    }

    fn groups(&self) -> impl Iterator<Item = &[Leader]> {
        groups(&self.leaders, self.capacity)
    }

    /// Takes the outcome of this round: a weight an option for each of the contests, in their order. `None` where that
    /// is not what was asked, or a contest has no positive weight.
    pub fn tell(&mut self, outcomes: &[Vec<f64>]) -> Option<()> {
        let groups: Vec<&[Leader]> = self.groups().collect();
        if groups.len() != outcomes.len() {
            return None;
        }
        let winners: Option<Vec<Leader>> =
            groups.into_iter().zip(outcomes).map(|(group, weights)| Leader::of(group, weights)).collect();
        self.leaders = winners?;
        Some(())
    }

    /// A weight for each option, the winner's being 1; `None` before it is over. Not yet divided by their sum.
    pub fn weights(&self) -> Option<Vec<f64>> {
        let [winner] = self.leaders.as_slice() else { return None };
        let mut weights = vec![0.0; winner.beaten.len()];
        for (option, weight) in &winner.beaten {
            *weights.get_mut(*option)? = *weight;
        }
        Some(weights)
    }
}

/// The groups of a round among those who are still in; none where one is left.
pub(super) fn groups<T>(entered: &[T], capacity: usize) -> impl Iterator<Item = &[T]> {
    let count = if entered.len() > 1 { entered.len().div_ceil(capacity) } else { 0 };
    (0..count).map(move |place| {
        let cut = |place: usize| place * entered.len() / count;
        &entered[cut(place)..cut(place + 1)]
    })
}

impl Leader {
    /// The first of the likeliest of a group, and below it all the others with theirs.
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

    /// Plays it out with a model whose distribution is known; returns the distribution and the rounds' contests.
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
            tournament.tell(&outcomes).unwrap();
        }
        let weights = tournament.weights().unwrap();
        let sum: f64 = weights.iter().sum();
        (weights.iter().map(|weight| weight / sum).collect(), rounds)
    }

    #[test]
    fn rounds_are_as_few_as_can_be() {
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
    fn groups_are_equal_in_size() {
        let sizes: Vec<usize> = Tournament::new(41, 20).contests().iter().map(Vec::len).collect();
        assert_eq!(sizes, [13, 14, 14]);
        assert_eq!(Tournament::new(3, 2).contests(), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn what_was_not_asked_is_not_taken() {
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
            assert!(tournament.tell(&outcomes).is_none(), "{outcomes:?}");
        }
        assert_eq!(tournament.contests().len(), 2, "a bad outcome changes nothing");
    }

    proptest! {
        #[test]
        fn a_model_that_keeps_ratios_is_read_exactly(
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
