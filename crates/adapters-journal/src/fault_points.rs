//! Points at which a test ends the process. Without the feature `fault-points` they are nothing.

#[cfg(feature = "fault-points")]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Calls a function with the name of each point that is reached from now on. The first call alone counts.
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
