//! The macros that turn a list of cases into tests.

/// Defines a suite: the list of a port's cases, and an exported macro that turns each case into a test.
///
/// A case is an `async fn(&Subject)` beside the list. A case that the list lacks is dead code, which the lints reject.
/// With `then check`, `check(&subject, name)` runs after every case.
macro_rules! suite {
    ($(#[$doc:meta])* $suite:ident as $export:ident over $subject:ident $(then $check:ident)? { $($case:ident),+ $(,)? }) => {
        suite! { @($) $(#[$doc])* $suite $export $subject [$($check)?] $($case)+ }
    };
    (@($dollar:tt) $(#[$doc:meta])* $suite:ident $export:ident $subject:ident $check:tt $($case:ident)+) => {
        $(#[$doc])*
        pub mod $suite {
            $(
                #[doc = concat!("The case `", stringify!($case), "`.")]
                pub async fn $case(subject: &super::$subject) {
                    super::$case(subject).await;
                    suite!(@check subject $case $check);
                }
            )+
        }

        $(#[$doc])*
        ///
        /// Expands to a module with a test per case. Takes the attributes of a test, and the path from the crate's root
        /// of an `async fn` that returns an empty subject.
        #[macro_export]
        macro_rules! $export {
            ($dollar(#[$dollar test:meta])+ $dollar make:path) => {
                mod $suite {
                    $(
                        $dollar(#[$dollar test])+
                        async fn $case() {
                            $crate::testing::contract::$suite::$case(&$dollar make().await).await;
                        }
                    )+
                }
            };
        }
    };
    (@check $subject:ident $case:ident []) => {};
    (@check $subject:ident $case:ident [$check:ident]) => {
        super::$check($subject, stringify!($case)).await;
    };
}

/// Expands to the tests of every contract of a database: `store_contracts!(#[tokio::test] crate::make)`.
#[macro_export]
macro_rules! store_contracts {
    ($(#[$test:meta])+ $make:path) => {
        $crate::audit_log_contract!($(#[$test])+ $make);
        $crate::workspace_repository_contract!($(#[$test])+ $make);
        $crate::api_key_repository_contract!($(#[$test])+ $make);
        $crate::last_key_contract!($(#[$test])+ $make);
        $crate::key_grants_contract!($(#[$test])+ $make);
        $crate::guardrail_repository_contract!($(#[$test])+ $make);
        $crate::guardrail_assignments_contract!($(#[$test])+ $make);
        $crate::document_repository_contract!($(#[$test])+ $make);
        $crate::model_repository_contract!($(#[$test])+ $make);
        $crate::change_feed_contract!($(#[$test])+ $make);
        $crate::usage_repository_contract!($(#[$test])+ $make);
        $crate::destination_repository_contract!($(#[$test])+ $make);
        $crate::outbox_contract!($(#[$test])+ $make);
        $crate::provider_pauses_contract!($(#[$test])+ $make);
        $crate::preset_repository_contract!($(#[$test])+ $make);
        $crate::evidence_repository_contract!($(#[$test])+ $make);
        $crate::rejection_store_contract!($(#[$test])+ $make);
        $crate::idempotent_requests_contract!($(#[$test])+ $make);
        $crate::budget_store_contract!($(#[$test])+ $make);
        $crate::ledger_reports_contract!($(#[$test])+ $make);
        $crate::ledger_reports_audit_contract!($(#[$test])+ $make);
    };
}
