//! Percentiles of how long things took.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// An hour; what takes longer counts as that.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What of a set of durations is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// The summary of durations; zeros if there are none. Exact to a thousandth.
pub fn summary(durations: impl IntoIterator<Item = Duration>) -> Summary {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3)
        .expect("these bounds and digits are supported");
    for duration in durations {
        histogram.saturating_record(u64::try_from(duration.as_nanos()).unwrap_or(LONGEST_NS));
    }
    let at = |quantile| ms(Duration::from_nanos(histogram.value_at_quantile(quantile)));
    Summary { count: histogram.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
}

/// In milliseconds, with a fraction.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_durations() {
        let summary = summary((1..=1000).map(Duration::from_millis));
        assert_eq!(summary.count, 1000);
        for (is, should) in
            [(summary.p50_ms, 500.0), (summary.p99_ms, 990.0), (summary.max_ms, 1000.0)]
        {
            assert!((is - should).abs() <= should / 500.0, "{summary:?}");
        }
    }
}
