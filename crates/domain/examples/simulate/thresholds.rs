//! Thresholds that are found on drawn labels, and the shares of them that break their promise.

use std::error::Error;
use std::num::NonZeroU32;

use domain::statistics::{
    Draws, LabelSelection, LabelledAnswers, Probability, Promise, Proportion, ThresholdCandidates, ThresholdFinding,
    find_threshold,
};

use super::scenario::{SCENARIOS, Scenario, draw_score};

/// The answers without labels, whose scores the candidates are chosen from.
const UNLABELLED: usize = 100;

const LABELS: [usize; 4] = [200, 500, 1000, 2000];
const ALPHAS: [f64; 2] = [0.05, 0.1];
pub const DELTA: f64 = 0.1;

/// The ways to find a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The test on random labels.
    Tested,
    /// The widest threshold whose risk on random labels is at most alpha.
    Naive,
    /// The test on volunteered labels, as if they were random.
    Volunteered,
    /// The widest threshold whose risk is at most alpha if the scores are right; it needs no labels.
    Untested,
}

impl Method {
    pub const ALL: [Self; 4] = [Self::Tested, Self::Naive, Self::Volunteered, Self::Untested];
}

/// The runs of a scenario with one alpha and one number of labels.
pub struct Setting {
    pub scenario: Scenario,
    pub alpha: f64,
    pub labels: usize,
    /// The broken promises of each method.
    broken: [usize; Method::ALL.len()],
    /// The sum of the coverage of tested thresholds.
    coverage: f64,
    runs: u32,
}

/// Runs every setting with every seed.
pub fn simulate(seeds: u32) -> Result<Vec<Setting>, Box<dyn Error>> {
    let mut settings = Vec::new();
    let mut seed = 0;
    for scenario in SCENARIOS {
        for alpha in ALPHAS {
            for labels in LABELS {
                let mut setting = Setting { scenario, alpha, labels, broken: [0; 4], coverage: 0.0, runs: 0 };
                for _ in 0..seeds {
                    setting.run(&mut Draws::new(seed))?;
                    seed += 1;
                }
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

impl Setting {
    fn run(&mut self, draws: &mut Draws) -> Result<(), Box<dyn Error>> {
        let (alpha, delta) = (Probability::new(self.alpha)?, Probability::new(DELTA)?);
        let promise = Promise::new(alpha, delta, NonZeroU32::MIN).ok_or("alpha and delta make no promise")?;
        let scores: Vec<_> = (0..UNLABELLED).map(|_| Probability::new(draw_score(draws)).ok()).collect();
        let candidates = ThresholdCandidates::from_scores(scores).ok_or("there are no scores")?;
        let find = |answers: &LabelledAnswers| find_threshold(&promise, &candidates, answers);

        let answers: Vec<_> = (0..self.labels).map(|_| self.scenario.draw(draws)).collect();
        let random = LabelledAnswers::new(LabelSelection::Random, answers);
        let answers: Vec<_> = (0..self.labels).map(|_| self.scenario.draw_volunteered(draws)).collect();
        let volunteered = LabelledAnswers::new(LabelSelection::Volunteered, answers.iter().copied());
        if find(&volunteered) != ThresholdFinding::Volunteered {
            return Err("volunteered labels gave a threshold".into());
        }
        let mistaken = LabelledAnswers::new(LabelSelection::Random, answers);

        for (method, broken) in Method::ALL.into_iter().zip(&mut self.broken) {
            let threshold = match method {
                Method::Tested => tested(find(&random)),
                Method::Naive => widest(&random, self.alpha, |_, is_error| f64::from(u8::from(is_error))),
                Method::Volunteered => tested(find(&mistaken)),
                Method::Untested => widest(&random, self.alpha, |score, _| 1.0 - score),
            };
            let Some(threshold) = threshold else { continue };
            let truth = self.scenario.truth_at(threshold);
            *broken += usize::from(truth.risk > self.alpha);
            if method == Method::Tested {
                self.coverage += truth.coverage;
            }
        }
        self.runs += 1;
        Ok(())
    }

    /// Returns the broken promises of a method among all runs.
    pub fn broken(&self, method: Method) -> Option<Proportion> {
        Proportion::new(self.broken[method as usize], self.runs as usize)
    }

    /// Returns the mean coverage of the tested thresholds; a run without a threshold has none.
    pub fn coverage(&self) -> f64 {
        self.coverage / f64::from(self.runs)
    }
}

fn tested(finding: ThresholdFinding) -> Option<Probability> {
    match finding {
        ThresholdFinding::Tested(tested) => Some(tested.point.threshold),
        _ => None,
    }
}

/// Returns the lowest threshold whose accepted answers have a mean risk of alpha at most.
fn widest(answers: &LabelledAnswers, alpha: f64, risk: impl Fn(f64, bool) -> f64) -> Option<Probability> {
    let (mut risks, mut accepted, mut found) = (0.0, 0.0, None);
    for equal in answers.scored().chunk_by(|(left, _), (right, _)| left == right) {
        for (score, is_error) in equal {
            risks += risk(score.get(), *is_error);
            accepted += 1.0;
        }
        if risks / accepted <= alpha {
            found = Some(equal[0].0);
        }
    }
    found
}
