//! Failing without noise: proptest tries thousands of smaller sequences, and only the last is news.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use proptest::test_runner::{TestCaseError, TestCaseResult};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a judgement whose assertions panic, and makes the panic a failed case.
pub(crate) fn judged(judgement: impl FnOnce()) -> TestCaseResult {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if QUIET.get() {
                SAID.replace(info.to_string());
            } else {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(judgement));
    QUIET.set(false);
    // The payload says the same as the hook, but without the place.
    result.map_err(|_payload| TestCaseError::fail(SAID.take()))
}
