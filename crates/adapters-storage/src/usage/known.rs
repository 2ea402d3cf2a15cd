//! What this process reserved itself.

use std::collections::HashMap;

use domain::budget::Reservation;

/// Reservations that are taken to stand as this process left them. Another process may have changed or ended them, so
/// that whoever relies on one has it compared in the transaction.
#[derive(Default)]
pub(super) struct Known(HashMap<String, Reservation>);

/// Most that are kept, which is more than are in flight; what was ended elsewhere is forgotten so in the end.
const KEPT: usize = 16_384;

impl Known {
    pub(super) fn get(&self, id: &str) -> Option<&Reservation> {
        self.0.get(id)
    }

    pub(super) fn keep(&mut self, reservation: Reservation) {
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        self.0.insert(reservation.id.as_str().to_owned(), reservation);
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }
}
