//! Sizes as people type them: `4GB`, `4GiB`, `500_000`, `50%`.

/// A size, or a share of a device's capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// That many bytes.
    Bytes(u64),
    /// A share of the capacity, above 0 and at most 1.
    Share(f64),
}

const UNITS: [(&str, u64); 11] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pb", 1_000_000_000_000_000),
    ("pib", 1 << 50),
];

impl Size {
    /// Reads a size. Units with `i` are binary, without it decimal; case does not matter.
    ///
    /// # Errors
    /// A text that says what was expected and found.
    pub fn parse(text: &str) -> Result<Size, String> {
        let refused =
            || format!("expected a size such as `4GB`, `4GiB`, `500_000` or `50%` (above 0), got `{text}`");
        let trimmed = text.trim();
        let unit_at =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(unit_at);
        if digits.starts_with('_') || digits.ends_with('_') {
            return Err(refused());
        }
        let number: f64 = digits.replace('_', "").parse().map_err(|_| refused())?;
        let unit = unit.trim().to_ascii_lowercase();
        if unit == "%" {
            let share = number / 100.0;
            return if share > 0.0 && share <= 1.0 { Ok(Size::Share(share)) } else { Err(refused()) };
        }
        let scale = if unit.is_empty() {
            1
        } else {
            UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?.1
        };
        // Whole numbers stay exact where a float would not.
        let whole = digits.replace('_', "").parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
        let bytes = whole.unwrap_or((number * scale as f64) as u64);
        if bytes == 0 || bytes > 1 << 60 { Err(refused()) } else { Ok(Size::Bytes(bytes)) }
    }

    /// The bytes it means on a device of that capacity.
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Share(share) => (capacity as f64 * share) as u64,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_mean_them() {
        assert_eq!(Size::parse("4GB"), Ok(Size::Bytes(4_000_000_000)));
        assert_eq!(Size::parse("4 GiB"), Ok(Size::Bytes(4 << 30)));
        assert_eq!(Size::parse("500_000"), Ok(Size::Bytes(500_000)));
        assert_eq!(Size::parse("1.5gib"), Ok(Size::Bytes(3 << 29)));
        assert_eq!(Size::parse("50%"), Ok(Size::Share(0.5)));
        assert_eq!(Size::parse("50%").map(|size| size.of(1000)), Ok(500));
        assert_eq!(Size::parse("1152921504606846975"), Ok(Size::Bytes((1 << 60) - 1)), "exact");
    }

    #[test]
    fn what_is_no_size_is_refused_with_what_was_expected() {
        for text in ["", "GB", "0", "0%", "101%", "-1", "4 apples", "1e9", "_5", "5_", "9999999PB", "4..5"] {
            let error = Size::parse(text).expect_err(text);
            assert!(error.contains("expected") && error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
