//! Bytes in use over time as a row of blocks. Owns nothing but this section.

use super::View;
use super::line::{Ink, Line};
use super::text;
use crate::bytes;

/// Fewer samples are no history.
const MIN_SAMPLES: usize = 8;
const MAX_BLOCKS: usize = 60;
/// With room for fewer blocks beside their label they stand below it.
const MIN_BLOCKS: usize = 20;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let history = &view.report.history;
    let samples = &history.current_bytes;
    let highest = samples.iter().copied().max().unwrap_or(0);
    if samples.len() < MIN_SAMPLES || highest == 0 {
        return Vec::new();
    }
    let duration = bytes::duration(history.interval_s * samples.len() as f64);
    let label = format!("In use over {duration}");
    let scale = format!("up to {}", bytes::size(highest));
    let label = Line::of(Ink::Strong, &label).with(Ink::Plain, "  ");
    let room = view.width.saturating_sub(label.columns() + text::columns(&scale) + 2);
    if room < MIN_BLOCKS {
        let blocks = sparkline(samples, highest, (view.width - 2).min(MAX_BLOCKS));
        return vec![label.with(Ink::Faint, &scale), Line::of(Ink::Plain, "  ").with(Ink::Plain, &blocks)];
    }
    let blocks = sparkline(samples, highest, room.min(MAX_BLOCKS));
    vec![label.with(Ink::Plain, &blocks).with(Ink::Plain, "  ").with(Ink::Faint, &scale)]
}

/// One block per sample, or per group of samples where there are more of them than blocks; a group shows its maximum.
fn sparkline(samples: &[u64], highest: u64, blocks: usize) -> String {
    let blocks = blocks.min(samples.len());
    (0..blocks)
        .map(|block| {
            let start = block * samples.len() / blocks;
            let end = (block + 1) * samples.len() / blocks;
            let value = samples[start..end].iter().copied().max().unwrap_or(0);
            let step = (u128::from(value) * (BLOCKS.len() as u128 - 1)).div_ceil(u128::from(highest));
            BLOCKS[usize::try_from(step).unwrap_or(0).min(BLOCKS.len() - 1)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn groups_show_their_maximum_and_only_zero_is_lowest() {
        assert_eq!(sparkline(&[0, 1, 7, 8, 4, 0, 0, 8], 8, 8), "▁▂██▅▁▁█");
        assert_eq!(sparkline(&[0, 0, 8, 0, 0, 0, 4, 0], 8, 4), "▁█▁▅");
        assert_eq!(sparkline(&[0, u64::MAX], u64::MAX, 60), "▁█");
    }
}
