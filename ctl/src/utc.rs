//! Wall-clock times of the cluster, for people: RFC 3339 in UTC, to the millisecond.

/// Milliseconds since 1970 as `2026-01-31T12:00:00.000Z`; `None` for 0, which means unknown.
///
/// The calendar is Gregorian, computed on years that begin in March, so that the leap day is the
/// last of its year and months follow a linear pattern.
pub(crate) fn rfc3339(ms: u64) -> Option<String> {
    if ms == 0 {
        return None;
    }
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);

    // Days since 1 March of the year 0; an era is 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let (month, next_year) =
        if march_month < 10 { (march_month + 3, 0) } else { (march_month - 9, 1) };
    let year = era * 400 + year_of_era + next_year;
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_moments() {
        for (ms, text) in [
            (1, "1970-01-01T00:00:00.001Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (1_772_323_200_000, "2026-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms).as_deref(), Some(text));
        }
        assert_eq!(rfc3339(0), None);
        assert!(rfc3339(u64::MAX).is_some());
    }
}
