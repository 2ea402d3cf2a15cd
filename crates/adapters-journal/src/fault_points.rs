//! Points at which a test kills the process. No-ops without the feature `fault-points`.

#[cfg(feature = "fault-points")]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Sets a function that receives the name of each reached point. Only the first call has an effect.
    pub fn set_fault_hook(hook: fn(&'static str)) {
        HOOK.set(hook).ok();
    }

    pub(crate) fn reach(point: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }
}

#[cfg(feature = "fault-points")]
pub(crate) use hook::reach;
#[cfg(feature = "fault-points")]
pub use hook::set_fault_hook;

#[cfg(not(feature = "fault-points"))]
#[inline]
pub(crate) fn reach(_: &'static str) {}
