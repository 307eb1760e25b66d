//! A reading: how much memory there is and is free, who says so, and how far to trust it.

/// How far a reading's `free` can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The driver's own account.
    Exact,
    /// True up to memory that the system could give back, or that others take meanwhile.
    Estimate,
    /// Nobody knows; `free` is `None`.
    Unknown,
}

impl Trust {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Trust::Exact => "exact",
            Trust::Estimate => "estimate",
            Trust::Unknown => "unknown",
        }
    }
}

/// Memory of one device at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Bytes that the device has.
    pub total_bytes: Option<u64>,
    /// Bytes that are free; `None` where unknown.
    pub free_bytes: Option<u64>,
    /// Who says so; where `free` is unknown also why.
    pub source: String,
    /// How far to trust `free`.
    pub trust: Trust,
}

impl Reading {
    /// A reading of the driver's own account. More free than there is makes no sense and is unknown.
    pub fn exact(total: u64, free: u64, source: impl Into<String>) -> Reading {
        let source = source.into();
        if free > total {
            return Reading::unknown(Some(total), format!("{source} says that more is free than there is"));
        }
        Reading { total_bytes: Some(total), free_bytes: Some(free), source, trust: Trust::Exact }
    }

    /// A reading that may be off by memory that the system could give back.
    pub fn estimate(total: u64, free: u64, source: impl Into<String>) -> Reading {
        let free = Some(free.min(total));
        Reading { total_bytes: Some(total), free_bytes: free, source: source.into(), trust: Trust::Estimate }
    }

    /// No reading; `why` says it.
    pub fn unknown(total: Option<u64>, why: impl Into<String>) -> Reading {
        Reading { total_bytes: total, free_bytes: None, source: why.into(), trust: Trust::Unknown }
    }

    /// A reading of an Intel driver, which tells an unprivileged process that everything is free.
    pub fn intel(total: u64, free: u64, source: &str, privileged: bool) -> Reading {
        if free == total && !privileged {
            return Reading::unknown(
                Some(total),
                format!("{source} shows all as free to a process without CAP_PERFMON"),
            );
        }
        Reading::exact(total, free, source)
    }

    /// What this process itself is known to hold bounds `free` from above; a reading beyond that is no reading.
    #[must_use]
    pub fn bounded(self, own_bytes: u64) -> Reading {
        match (self.total_bytes, self.free_bytes) {
            (Some(total), Some(free))
                if self.trust == Trust::Exact && free > total.saturating_sub(own_bytes) =>
            {
                Reading::unknown(
                    Some(total),
                    format!(
                        "{} says {free} bytes are free, but this process alone holds {own_bytes} of {total}",
                        self.source
                    ),
                )
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_free_is_no_news_from_an_unprivileged_intel_driver() {
        assert_eq!(Reading::intel(100, 100, "x", false).trust, Trust::Unknown);
        assert_eq!(Reading::intel(100, 100, "x", false).free_bytes, None);
        assert_eq!(Reading::intel(100, 100, "x", true).free_bytes, Some(100));
        assert_eq!(Reading::intel(100, 99, "x", false).free_bytes, Some(99));
    }

    #[test]
    fn what_we_hold_ourselves_is_not_free() {
        let reading = Reading::exact(100, 90, "x");
        assert_eq!(reading.clone().bounded(10), reading);
        assert_eq!(reading.bounded(11).trust, Trust::Unknown);
        // Host memory that was allocated and never touched is still free.
        assert_eq!(Reading::estimate(100, 90, "x").bounded(50).free_bytes, Some(90));
    }

    #[test]
    fn nonsense_is_unknown() {
        assert_eq!(Reading::exact(100, 101, "x").free_bytes, None);
        assert_eq!(Reading::estimate(100, 101, "x").free_bytes, Some(100));
    }
}
