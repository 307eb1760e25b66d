//! How quantities are written for people: sizes, counts, durations and shares.
//!
//! Owns units and rounding. Must not pad or align: a column does that. Every function is total and its result is
//! short: at most 9 columns for a size, 11 for a count, 15 for a duration, 5 for a share.

const SIZE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const LARGE_COUNT_UNITS: [&str; 4] = ["G", "T", "P", "E"];
const SHORT_TIMES: [(f64, &str, f64); 4] =
    [(1e-9, "ns", 1000.0), (1e-6, "µs", 1000.0), (1e-3, "ms", 1000.0), (1.0, "s", 60.0)];
const UNKNOWN: &str = "?";

/// A size in binary units with at most four digits: `0 B`, `1023 B`, `1.5 MiB`, `381.5 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    for unit in SIZE_UNITS {
        let shown = rounded(value, if value < 10.0 { 2 } else { 1 });
        if shown < 1024.0 {
            let digits = if shown >= 1000.0 { shown.round() } else { shown };
            return format!("{digits} {unit}");
        }
        value /= 1024.0;
    }
    format!("{} EiB", (value * 1024.0).round())
}

/// A count with thousands separators, exact below 10⁹: `12,345`; from there in decimal units: `12.3 G`.
#[must_use]
pub fn count(count: u64) -> String {
    if count < 1_000_000_000 {
        return grouped(count);
    }
    let mut value = count as f64 / 1e9;
    for unit in LARGE_COUNT_UNITS {
        let shown = rounded(value, if value < 10.0 { 2 } else { 1 });
        if shown < 1000.0 {
            return format!("{shown} {unit}");
        }
        value /= 1000.0;
    }
    format!("{} E", (value * 1000.0).round())
}

/// A duration in the unit that suits it: `12 µs`, `450 ms`, `3.2 s`, `1 min 12 s`, `2 h 5 min`, `3 d 4 h`. What is no
/// duration (negative or no number) is `?`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() || seconds < 0.0 {
        return UNKNOWN.to_owned();
    }
    if seconds < 0.5e-9 {
        return "0 s".to_owned();
    }
    for (unit_s, unit, limit) in SHORT_TIMES {
        let value = seconds / unit_s;
        let tenths = value < 10.0 || unit == "s";
        let shown = rounded(value, usize::from(tenths));
        if shown < limit {
            return format!("{shown} {unit}");
        }
    }
    // A cast from float saturates, so an absurd duration stays a number.
    let whole = seconds.round() as u64;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    if hours == 0 {
        format!("{minutes} min {} s", whole % 60)
    } else if days == 0 {
        format!("{hours} h {} min", minutes % 60)
    } else if days < 10_000 {
        format!("{days} d {} h", hours % 24)
    } else {
        "over 10,000 d".to_owned()
    }
}

/// `part` of `whole` in percent: `66 %`, and `<1 %` rather than a 0 that is none. `?` of nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return UNKNOWN.to_owned();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    if part > 0 && percent < 1.0 {
        "<1 %".to_owned()
    } else if part < whole && percent > 99.0 {
        "99 %".to_owned()
    } else {
        format!("{} %", percent.round().min(100.0))
    }
}

fn rounded(value: f64, decimals: usize) -> f64 {
    let scale = [1.0, 10.0, 100.0][decimals.min(2)];
    (value * scale).round() / scale
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_exact_below_one_kib() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1), "1 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1024), "1 KiB");
    }

    #[test]
    fn sizes_keep_at_most_four_digits() {
        assert_eq!(size(1_572_864), "1.5 MiB");
        assert_eq!(size(400_000_000), "381.5 MiB");
        assert_eq!(size(1_299_227_607), "1.21 GiB");
        assert_eq!(size(1001 * 1024), "1001 KiB");
        assert_eq!(size(u64::MAX), "16 EiB");
    }

    #[test]
    fn sizes_roll_over_rather_than_show_1024() {
        assert_eq!(size(1024 * 1024 - 1), "1 MiB");
        assert_eq!(size(10 * 1024 - 1), "10 KiB");
        assert_eq!(size(1000 * 1024 - 1), "1000 KiB");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(12_345), "12,345");
        assert_eq!(count(999_999_999), "999,999,999");
        assert_eq!(count(12_345_678_901), "12.3 G");
        assert_eq!(count(u64::MAX), "18.4 E");
    }

    #[test]
    fn durations_take_the_unit_that_suits() {
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(duration(12e-6), "12 µs");
        assert_eq!(duration(0.45), "450 ms");
        assert_eq!(duration(0.9996), "1 s");
        assert_eq!(duration(3.21), "3.2 s");
        assert_eq!(duration(59.96), "1 min 0 s");
        assert_eq!(duration(72.0), "1 min 12 s");
        assert_eq!(duration(7500.0), "2 h 5 min");
        assert_eq!(duration(280_000.0), "3 d 5 h");
        assert_eq!(duration(f64::MAX), "over 10,000 d");
        assert_eq!(duration(f64::INFINITY), "over 10,000 d");
        assert_eq!(duration(f64::NAN), "?");
        assert_eq!(duration(-1.0), "?");
    }

    #[test]
    fn shares_never_round_to_nothing_or_everything() {
        assert_eq!(share(0, 10), "0 %");
        assert_eq!(share(1, 1000), "<1 %");
        assert_eq!(share(2, 3), "67 %");
        assert_eq!(share(9_999, 10_000), "99 %");
        assert_eq!(share(10, 10), "100 %");
        assert_eq!(share(20, 10), "100 %");
        assert_eq!(share(1, 0), "?");
    }

    proptest! {
        #[test]
        fn quantities_stay_short(number: u64, seconds: f64) {
            prop_assert!(size(number).len() <= 9, "{}", size(number));
            prop_assert!(count(number).len() <= 11);
            prop_assert!(duration(seconds).chars().count() <= 15);
            prop_assert!(share(number, number / 2).len() <= 5);
        }
    }
}
