//! Staggered attempts, and the order of addresses for them: RFC 8305.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// The delay after which the next address is tried beside the earlier ones: RFC 8305, section 5.
pub const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Orders the addresses of a name: their own order, with the families alternating, so that a family without a route
/// delays a connection by one attempt.
#[must_use]
pub fn interleave_families(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let addresses: Vec<SocketAddr> = addresses.into_iter().collect();
    let is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == is_ipv6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(first.next());
        ordered.extend(second.next());
    }
    ordered
}

/// Starts an attempt for each item in order, and returns the first success; the other attempts are dropped. The next
/// attempt starts when `delay` has passed, or when the last one has failed. Returns the last error if every attempt
/// fails, and `None` without items.
pub async fn first_success<Item, T, E, Attempt, Delay>(
    items: impl IntoIterator<Item = Item>,
    attempt: impl Fn(Item) -> Attempt,
    delay: impl Fn() -> Delay,
) -> Option<Result<T, E>>
where
    Attempt: Future<Output = Result<T, E>>,
    Delay: Future<Output = ()>,
{
    let mut items = items.into_iter();
    let mut running = FuturesUnordered::new();
    running.push(attempt(items.next()?));
    loop {
        let ended = match select(running.next(), pin!(delay())).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((), _)) => match items.next() {
                Some(next) => {
                    running.push(attempt(next));
                    continue;
                }
                None => running.next().await,
            },
        };
        match (ended?, items.next()) {
            (Err(_), Some(next)) => running.push(attempt(next)),
            (Err(error), None) if running.is_empty() => return Some(Err(error)),
            (Err(_), None) => {}
            (Ok(success), _) => return Some(Ok(success)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn interleave_families_alternates_and_keeps_order() {
        let ordered = |addresses: &[&str]| {
            let parsed = addresses.iter().map(|address| address.parse::<SocketAddr>().unwrap());
            interleave_families(parsed).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(ordered(&[]).is_empty());
        assert_eq!(ordered(&["1.1.1.1:1", "1.1.1.2:1"]), ["1.1.1.1:1", "1.1.1.2:1"]);
        let found = ordered(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"]);
        assert_eq!(found, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "[::3]:1"]);
        assert_eq!(ordered(&["1.1.1.1:1", "1.1.1.2:1", "[::1]:1"]), ["1.1.1.1:1", "[::1]:1", "1.1.1.2:1"]);
    }

    /// Time and end of an attempt: `None` never ends.
    type Script = Option<(u64, Result<u32, u32>)>;

    /// Runs scripted attempts and returns the end, its time and the times at which the attempts started, in ms.
    async fn run(scripts: &[Script]) -> (Option<Result<u32, u32>>, u64, Vec<u64>) {
        let began = tokio::time::Instant::now();
        let elapsed = || u64::try_from(began.elapsed().as_millis()).unwrap();
        let started = RefCell::new(Vec::new());
        let attempt = async |script: Script| {
            started.borrow_mut().push(elapsed());
            match script {
                Some((ms, end)) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    end
                }
                None => std::future::pending().await,
            }
        };
        let delay = || tokio::time::sleep(CONNECTION_ATTEMPT_DELAY);
        let end = first_success(scripts.iter().copied(), attempt, delay).await;
        (end, elapsed(), started.into_inner())
    }

    /// The attempts, the result, its time in milliseconds, and the times of the attempts.
    type Row = (&'static [Script], Option<Result<u32, u32>>, u64, &'static [u64]);

    #[tokio::test(start_paused = true)]
    async fn first_success_staggers_attempts() {
        let rows: [Row; 10] = [
            (&[], None, 0, &[]),
            (&[Some((5, Ok(1))), Some((5, Ok(2)))], Some(Ok(1)), 5, &[0]),
            (&[None, Some((5, Ok(2)))], Some(Ok(2)), 255, &[0, 250]),
            (&[None, None, Some((5, Ok(3)))], Some(Ok(3)), 505, &[0, 250, 500]),
            (&[Some((5, Err(1))), Some((5, Ok(2)))], Some(Ok(2)), 10, &[0, 5]),
            (&[Some((5, Err(1))), Some((9, Err(2)))], Some(Err(2)), 14, &[0, 5]),
            (&[Some((400, Err(1))), Some((500, Err(2)))], Some(Err(2)), 750, &[0, 250]),
            (&[Some((900, Ok(1))), Some((400, Err(2)))], Some(Ok(1)), 900, &[0, 250]),
            (&[Some((300, Ok(1))), Some((400, Ok(2)))], Some(Ok(1)), 300, &[0, 250]),
            (&[None, Some((100, Err(2))), Some((5, Ok(3)))], Some(Ok(3)), 355, &[0, 250, 350]),
        ];
        for (scripts, end, at, starts) in rows {
            assert_eq!(run(scripts).await, (end, at, starts.to_vec()), "{scripts:?}");
        }
    }
}
