//! One batch in one transaction.

use domain::error::StoreError;

use super::charges::{Charges, Endings};
use super::claims::{Claims, Decided};
use super::counters::Postings;
use super::job::{Charge, Outcome, Work};
use super::known::Known;
use super::script::{Run, Script};
use super::statements::{Kind, Texts};
use crate::database::Database;
use crate::session::Session;

/// What became of each work of a batch, in their order.
pub(super) type Outcomes = Vec<Result<Outcome, StoreError>>;

/// What writes batches.
pub(super) struct Batches {
    database: Database,
    pub(super) session: Session,
    texts: Texts,
    known: Known,
}

/// How much is taken for granted. What is not so makes the whole transaction fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// No record is there yet, and what this process reserved stands as it left it. As good as always.
    Usual,
    /// Nothing: everything is looked for.
    Nothing,
}

impl Batches {
    pub(super) fn new(database: Database) -> Self {
        let (session, texts) = (Session::new(database.clone()), Texts::new(database.backend()));
        Self { database, session, texts, known: Known::default() }
    }

    /// Does all of a batch in one transaction, and returns when it is committed. A work that has an error of its own does
    /// not hinder the others; one that the database refuses does, and nothing of the batch is done.
    pub(super) async fn write(&mut self, works: &[Work]) -> Result<Outcomes, StoreError> {
        // Whatever only claims money looks for everything anyway.
        if works.iter().any(Work::makes_room) {
            match self.attempt(works, Trust::Usual).await {
                Err(StoreError::Corrupt(_)) => {}
                done => return done,
            }
        }
        self.attempt(works, Trust::Nothing).await
    }

    async fn attempt(&mut self, works: &[Work], trust: Trust) -> Result<Outcomes, StoreError> {
        let done = self.transaction(works, trust).await;
        if done.is_err() {
            self.session.undo().await;
        }
        let decided = done?;
        let mut outcomes: Outcomes = works.iter().map(|_| Ok(Outcome::Done)).collect();
        for (place, outcome) in decided {
            outcomes[place] = outcome;
        }
        Ok(outcomes)
    }

    /// Two scripts where money is claimed: one that reads, one that writes what was decided on it. Where none is claimed,
    /// and in what is usual, there is nothing to decide and one is enough.
    async fn transaction(&mut self, works: &[Work], trust: Trust) -> Result<Decided, StoreError> {
        let mut charges = Charges::of(works.iter().filter_map(charge_of));
        let mut endings = Endings::of(works.iter().filter_map(ends));
        let mut claims = Claims::of(works);
        let mut postings = Postings::default();
        let mut script = Script::default();
        script.then(Kind::Begin);
        let mut decided = Decided::new();
        if trust == Trust::Usual {
            charges.add(&mut script);
        } else {
            charges.add_fresh(&mut script);
        }
        if trust == Trust::Usual && claims.is_empty() {
            // Only messages are of this moment, and it does not matter to them who has written meanwhile.
            endings.end_known(&mut script, &self.known, &mut postings)?;
            charges.post(&mut script, self.database.now(), &mut postings)?;
        } else {
            endings.end(&mut script);
            claims.ask(&mut script, self.database.now());
            let mut rows = self.session.run(&mut self.texts, script).await?;
            // Nobody else writes from here on, so that times are in the order of what they are the times of.
            let now = self.database.now();
            if trust == Trust::Nothing {
                charges.keep_counted(&mut self.session, &mut self.texts, &mut rows, &mut postings).await?;
            }
            script = Script::default();
            charges.post(&mut script, now, &mut postings)?;
            endings.post(&mut rows, &mut postings)?;
            decided = claims.decide(&mut self.session, &mut self.texts, &mut rows, now, &mut postings).await?;
            claims.write(&mut script);
        }
        postings.write(&mut script)?;
        script.then(Kind::Commit);
        self.session.run(&mut self.texts, script).await?;
        endings.forget(&mut self.known);
        claims.remember(&mut self.known);
        Ok(decided)
    }
}

fn charge_of(work: &Work) -> Option<&Charge> {
    if let Work::Settle(charge) = work { Some(charge) } else { None }
}

/// The id of the reservation that a work ends.
fn ends(work: &Work) -> Option<&str> {
    match work {
        Work::Settle(charge) => Some(&charge.row.id),
        Work::Release(id) => Some(id.as_str()),
        Work::Reserve(_) | Work::Extend(_) => None,
    }
}
