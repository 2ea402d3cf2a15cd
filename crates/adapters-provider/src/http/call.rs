//! The connection that one call runs on.

use std::future::poll_fn;
use std::pin::pin;

use hyper_util::client::legacy::connect::CaptureConnection;
use tokio::time::Instant;

use super::meter::{BodyPhase, Meter, TooManyBytes};

/// The connection of one call, from its assignment to the end of the call. Dropped after the deadline, it retires a
/// connection on which no byte of any answer arrived during the call: the next call opens a new one.
pub(super) struct CallConnection {
    captured: CaptureConnection,
    deadline: Option<Instant>,
    /// The meter, and the bytes of answers it had counted when the call began.
    metered: Option<(Meter, u64)>,
}

impl CallConnection {
    /// Of a request that is not sent yet.
    pub(super) fn new(captured: CaptureConnection, deadline: Option<Instant>) -> Self {
        Self { captured, deadline, metered: None }
    }

    /// Runs the request and notes which connection it is given.
    pub(super) async fn observe<T>(&mut self, request: impl Future<Output = T>) -> T {
        let mut request = pin!(request);
        poll_fn(|cx| {
            let polled = request.as_mut().poll(cx);
            self.note_meter();
            polled
        })
        .await
    }

    /// A request that a closed connection did not take is moved to another one.
    fn note_meter(&mut self) {
        let Some(meter) = self.captured.connection_metadata().as_ref().and_then(Meter::of) else { return };
        if self.metered.as_ref().is_none_or(|(known, _)| !known.is(&meter)) {
            let bytes = meter.answer_bytes();
            self.metered = Some((meter, bytes));
        }
    }

    /// The final head of the answer has arrived.
    pub(super) fn begin_body(&self) -> Option<BodyPhase> {
        self.metered.as_ref().map(|(meter, _)| meter.begin_body())
    }

    /// The limit that the provider exceeded before its answer.
    pub(super) fn violation(&self) -> Option<TooManyBytes> {
        self.metered.as_ref().and_then(|(meter, _)| meter.violation())
    }

    /// Takes the connection out of the pool once the calls on it have ended.
    pub(super) fn retire(&self) {
        if let Some(connection) = self.captured.connection_metadata().as_ref() {
            connection.poison();
        }
    }
}

impl Drop for CallConnection {
    fn drop(&mut self) {
        let Some((meter, bytes)) = &self.metered else { return };
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && meter.answer_bytes() == *bytes {
            tracing::debug!("provider connection retired: silent until the deadline");
            self.retire();
        }
    }
}
