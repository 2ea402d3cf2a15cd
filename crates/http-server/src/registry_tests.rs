use futures_util::FutureExt;

use super::*;

fn connections(limit: usize, preemption: Preemption) -> Connections {
    Connections::new(limit, preemption)
}

fn is_admitted(connection: &OpenConnection) -> bool {
    connection.wait_for_slot().now_or_never().is_some()
}

fn action(connection: &OpenConnection) -> IdleAction {
    connection.idle_action(&Context::from_waker(std::task::Waker::noop()))
}

#[tokio::test]
async fn counts_follow_the_states_of_registered_connections() {
    let connections = connections(3, Preemption::Idle);
    let [idle, reading, serving] = [0; 3].map(|_| connections.register());
    reading.set(State::ReadingHead, Instant::now());
    serving.set(State::InRequest, Instant::now());
    let waiting = connections.register();
    let counts = ConnectionCounts { waiting: 1, idle: 1, reading_head: 1, in_request: 1 };
    assert_eq!((connections.counts(), counts.open(), connections.limit()), (counts, 4, 3));
    drop((idle, reading, waiting));
    assert_eq!(connections.counts(), ConnectionCounts { in_request: 1, ..ConnectionCounts::default() });
}

#[tokio::test]
async fn closed_resolves_when_last_connection_is_dropped() {
    let connections = connections(1, Preemption::Idle);
    connections.closed().await;
    let open = connections.register();
    let mut closed = std::pin::pin!(connections.closed());
    assert!(futures_util::poll!(&mut closed).is_pending());
    drop(open);
    closed.await;
}

#[tokio::test(start_paused = true)]
async fn unused_for_resolves_at_once_without_connections_else_after_period() {
    let connections = connections(1, Preemption::Idle);
    let began = Instant::now();
    connections.unused_for(Duration::from_mins(1)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(connections.register());
    sleep(Duration::from_secs(20)).await;
    connections.unused_for(Duration::from_mins(1)).await;
    assert_eq!(began.elapsed().as_secs(), 60);
    let _open = connections.register();
    let forever = tokio::time::timeout(Duration::from_mins(10), connections.unused_for(Duration::from_mins(1)));
    assert!(forever.await.is_err());
}

#[tokio::test]
async fn close_idle_wakes_connections_and_begin_drain_does_not() {
    let connections = connections(1, Preemption::Idle);
    let open = connections.register();
    connections.begin_drain();
    assert!(connections.is_draining() && open.is_draining());
    let closing = poll_fn(|cx| match open.idle_action(cx) {
        IdleAction::Stay => Poll::Pending,
        action => Poll::Ready(action),
    });
    let (action, ()) = tokio::join!(closing, async { connections.close_idle() });
    assert_eq!(action, IdleAction::Close);
}

#[tokio::test(start_paused = true)]
async fn oldest_idle_connection_is_closed_for_waiting_one() {
    let connections = connections(3, Preemption::Idle);
    let [first, second, third] = [0; 3].map(|_| connections.register());
    tokio::time::advance(Duration::from_secs(1)).await;
    // Idle again, for a shorter time than the second connection.
    first.set(State::InRequest, Instant::now());
    first.set(State::Idle, Instant::now());
    third.set(State::InRequest, Instant::now());
    let fourth = connections.register();
    assert!(!is_admitted(&fourth));
    assert_eq!([&first, &second, &third].map(action), [IdleAction::Stay, IdleAction::Yield, IdleAction::Stay]);
    assert!(!third.is_crowded(), "one place is being made, and one is waited for");
    drop(second);
    assert!(is_admitted(&fourth));
    assert_eq!(connections.evictions(), 1);
    let fifth = connections.register();
    assert_eq!(action(&first), IdleAction::Yield);
    drop(first);
    assert!(is_admitted(&fifth));
}

#[tokio::test]
async fn reading_connection_stays_and_another_is_closed() {
    let connections = connections(2, Preemption::Idle);
    let [first, second] = [0; 2].map(|_| connections.register());
    let waiting = connections.register();
    assert_eq!([&first, &second].map(action), [IdleAction::Yield, IdleAction::Stay]);
    first.set(State::ReadingHead, Instant::now());
    assert_eq!([&first, &second].map(action), [IdleAction::Stay, IdleAction::Yield]);
    second.set(State::InRequest, Instant::now());
    assert!(first.is_crowded() && !is_admitted(&waiting), "no connection is idle");
    // A connection that becomes idle while another one waits is closed.
    second.set(State::Idle, Instant::now());
    assert_eq!(action(&second), IdleAction::Yield);
    assert!(!first.is_crowded());
    drop(second);
    assert!(is_admitted(&waiting));
    assert_eq!(connections.evictions(), 1);
}

#[tokio::test]
async fn waiting_connections_are_admitted_in_order_and_may_disconnect() {
    let connections = connections(1, Preemption::Idle);
    let busy = connections.register();
    busy.set(State::InRequest, Instant::now());
    let [second, third, fourth] = [0; 3].map(|_| connections.register());
    drop(second);
    assert_eq!(connections.waiting(), 2);
    drop(busy);
    assert!(is_admitted(&third) && !is_admitted(&fourth));
    third.set(State::InRequest, Instant::now());
    drop(third);
    assert!(is_admitted(&fourth));
    drop(fourth);
    assert_eq!(connections.counts().open(), 0);
}

#[tokio::test(start_paused = true)]
async fn any_preemption_closes_idle_connections_first() {
    let connections = connections(3, Preemption::Any);
    let [writing, reading, idle] = [0; 3].map(|_| connections.register());
    writing.set(State::InRequest, Instant::now());
    tokio::time::advance(Duration::from_secs(1)).await;
    reading.set(State::ReadingHead, Instant::now());
    tokio::time::advance(Duration::from_secs(1)).await;
    idle.set(State::Idle, Instant::now());
    let newcomers = [0; 3].map(|_| connections.register());
    for connection in [&idle, &writing, &reading] {
        assert!(connection.wait_for_preemption().now_or_never().is_some());
    }
    drop(writing);
    assert!(is_admitted(&newcomers[0]) && !is_admitted(&newcomers[1]));
    drop((idle, reading));
    assert!(newcomers.iter().all(is_admitted));
    // Admission follows the order of arrival.
    let _late = connections.register();
    assert!(
        newcomers[0].wait_for_preemption().now_or_never().is_some()
            && newcomers[1].wait_for_preemption().now_or_never().is_none()
    );
}

/// Threads open, use and close connections; afterwards no connection waits and each was counted once.
#[test]
fn slots_are_neither_lost_nor_duplicated_when_threads_race() {
    let connections = connections(4, Preemption::Idle);
    let served = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (connections, served) = (&connections, &served);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    for round in 0..500_u64 {
                        let connection = connections.register();
                        connection.wait_for_slot().await;
                        for _ in 0..=(thread + round) % 3 {
                            connection.set(State::ReadingHead, Instant::now());
                            let counts = connections.counts();
                            assert!(counts.open() - counts.waiting <= 4, "{counts:?}");
                            connection.set(State::InRequest, Instant::now());
                            connection.set(State::Idle, Instant::now());
                            if connection.idle_action(&Context::from_waker(std::task::Waker::noop()))
                                == IdleAction::Yield
                            {
                                break;
                            }
                        }
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
    });
    assert_eq!((served.into_inner(), connections.counts().open()), (4_000, 0));
    let slots = connections.slots();
    assert!(!slots.is_crowded() && slots.waiting() == 0);
}
