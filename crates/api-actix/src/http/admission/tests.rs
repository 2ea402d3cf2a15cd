use std::sync::atomic::{AtomicUsize, Ordering};

use domain::rate::RateLimited;
use domain::testing::SequentialIds;

use super::AdmissionBound::{InFlight, InFlightOfKey, InFlightOfWorkspace};
use super::*;
use crate::http::admission::RETRY_AFTER;
use crate::http::recorder::Answer;

#[derive(Default)]
struct Rejections(Mutex<Vec<AdmissionBound>>, AtomicUsize);

impl Recorder for Rejections {
    fn record_start(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
    fn record_end(&self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
    fn record_answer(&self, _: &Answer) {}
    fn record_rate_limit(&self, _: &RateLimited) {}
    fn record_rejection(&self, bound: AdmissionBound) {
        self.0.lock().unwrap().push(bound);
    }
}

fn owner(key: u64, workspace: Option<u8>) -> Owner {
    let workspace = workspace
        .map(|number| format!("00000000-0000-7000-8000-0000000000{number:02x}").parse::<WorkspaceId>().unwrap());
    Owner { key: SequentialIds::key(key), workspace }
}

fn admission(all: usize, per_key: usize, per_workspace: usize) -> (Arc<Admission>, Arc<Rejections>) {
    let recorder = Arc::new(Rejections::default());
    let settings = AdmissionSettings {
        max_in_flight: all,
        max_in_flight_per_key: per_key,
        max_in_flight_per_workspace: per_workspace,
        ..AdmissionSettings::default()
    };
    (Arc::new(Admission::new(settings, Arc::clone(&recorder) as Arc<dyn Recorder>)), recorder)
}

fn lease() -> BodyLease {
    memory_tests::memory(usize::MAX, usize::MAX).lease(memory_tests::account(1))
}

fn status(entered: Result<InFlightPermit, ApiError>) -> u16 {
    entered.err().map_or(200, |error| error.status().as_u16())
}

#[test]
fn admission_rejects_only_key_above_its_share() {
    let (admission, recorder) = admission(8, 4, 6);
    let mut permits: Vec<InFlightPermit> =
        (0..4).map(|_| admission.enter(owner(1, Some(1)), lease()).unwrap()).collect();
    assert_eq!(admission.counts(), InFlightCounts { largest_key: 4, largest_workspace: 4 });
    assert!(admission.check(owner(1, Some(1))).is_err());
    let error = admission.enter(owner(1, Some(1)), lease()).err().unwrap();
    let view = error.parts();
    assert_eq!((view.status.as_u16(), view.retry_after), (429, Some(RETRY_AFTER)));
    assert!(error.text().contains("this key has 4 requests in flight"), "{}", error.text());
    assert_eq!((&view.metadata["scope"], &view.metadata["limit"]), (&"key".into(), &4.into()));
    // Another key of the workspace gets the rest of the workspace's share.
    permits.extend((0..2).map(|_| admission.enter(owner(2, Some(1)), lease()).unwrap()));
    assert_eq!(status(admission.enter(owner(2, Some(1)), lease())), 429);
    // A key without a workspace and another workspace get the rest.
    permits.extend([owner(3, None), owner(4, Some(2))].map(|owner| admission.enter(owner, lease()).unwrap()));
    assert_eq!(status(admission.enter(owner(5, Some(3)), lease())), 503);
    assert!(admission.check_total().is_err());
    let operator = Owner { key: ApiKeyId::from_uuid(uuid::Uuid::nil()), workspace: None };
    assert_eq!(status(admission.enter(operator, lease())), 200, "the operator");
    assert_eq!(*recorder.0.lock().unwrap(), [InFlightOfKey, InFlightOfKey, InFlightOfWorkspace, InFlight, InFlight]);
    assert_eq!(recorder.1.load(Ordering::Relaxed), 8);
}

#[test]
fn permit_is_released_when_last_clone_is_dropped() {
    let (admission, recorder) = admission(1, 1, 1);
    let permit = admission.enter(owner(1, Some(1)), lease()).unwrap();
    let clone = permit.clone();
    drop(permit);
    assert_eq!(status(admission.enter(owner(2, Some(2)), lease())), 503);
    drop(clone);
    assert!(admission.check(owner(1, Some(1))).is_ok() && admission.check_total().is_ok());
    let taken = admission.lock();
    assert!(taken.all == 0 && taken.keys.is_empty() && taken.workspaces.is_empty(), "nothing is left behind");
    drop(taken);
    assert_eq!(recorder.1.load(Ordering::Relaxed), 0);
}
