//! One batch in one transaction.

use domain::error::StoreError;

use super::charges;
use super::claims::Claims;
use super::counters::Postings;
use super::job::{Charge, Outcome, Work};
use super::statements::Texts;
use crate::database::Database;
use crate::errors::store_error;

/// What became of each work of a batch, in their order.
pub(super) type Outcomes = Vec<Result<Outcome, StoreError>>;

/// Does all of a batch in one transaction, and returns when it is committed. A work that has an error of its own does not
/// hinder the others; one that the database refuses does, and nothing of the batch is done.
pub(super) async fn write(database: &Database, texts: &mut Texts, works: &[Work]) -> Result<Outcomes, StoreError> {
    // Hardly ever does anybody reserve by an id that is taken, so this is looked for only where it turns out to be so.
    for look in [false, true] {
        if let Some(outcomes) = attempt(database, texts, works, look).await? {
            return Ok(outcomes);
        }
    }
    Err(StoreError::Corrupt("ids of reservations were taken while the database was locked".to_owned()))
}

async fn attempt(
    database: &Database,
    texts: &mut Texts,
    works: &[Work],
    look: bool,
) -> Result<Option<Outcomes>, StoreError> {
    let transaction = database.begin().await?;
    // Nobody else writes from here on, so that times are in the order of what they are the times of.
    let now = database.now();
    let mut postings = Postings::default();
    let charging: Vec<&Charge> = works.iter().filter_map(charge_of).collect();
    if !charging.is_empty() {
        charges::charge(&transaction, texts, &charging, now, &mut postings).await?;
    }
    let ending: Vec<&str> = works.iter().filter_map(ends).collect();
    charges::end(&transaction, texts, &ending, &mut postings).await?;
    let decided = Claims::of(works, now)?.decide(&transaction, texts, look, &mut postings).await?;
    let Some(decided) = decided else {
        transaction.rollback().await.map_err(store_error)?;
        return Ok(None);
    };
    postings.write(&transaction, texts).await?;
    transaction.commit().await.map_err(store_error)?;
    let mut outcomes: Outcomes = works.iter().map(|_| Ok(Outcome::Done)).collect();
    for (place, outcome) in decided {
        outcomes[place] = outcome;
    }
    Ok(Some(outcomes))
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
