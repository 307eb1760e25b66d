//! Changing how items lie: byte order, and the order of axes.

use crate::Error;

/// Reverses the bytes of each item of `width` bytes.
pub(crate) fn swap_bytes(bytes: &mut [u8], width: usize) {
    // Widths that are known when this is compiled become one instruction an item.
    match width {
        2 => reverse::<2>(bytes),
        4 => reverse::<4>(bytes),
        8 => reverse::<8>(bytes),
        _ => {}
    }
}

fn reverse<const WIDTH: usize>(bytes: &mut [u8]) {
    let (items, _) = bytes.as_chunks_mut::<WIDTH>();
    items.iter_mut().for_each(|item| item.reverse());
}

/// Copies items that lie in Fortran order one after the other to where `strides` (bytes, one an axis) put them.
pub(crate) fn scatter(
    items: &[u8],
    item: usize,
    shape: &[usize],
    target: &mut [u8],
    strides: &[usize],
) -> Result<(), Error> {
    let (last, reach) = (items.len() as u64, target.len() as u64);
    let count: usize = shape.iter().product();
    if shape.len() != strides.len() || count.checked_mul(item) != Some(items.len()) {
        return Err(Error::Beyond { what: "the items", length: last });
    }
    if count == 0 {
        return Ok(());
    }
    let end: usize = shape.iter().zip(strides).map(|(extent, stride)| (extent - 1) * stride).sum();
    if end + item > target.len() {
        return Err(Error::Beyond { what: "a target", length: reach });
    }
    match item {
        1 => walk::<1>(items, shape, target, strides),
        2 => walk::<2>(items, shape, target, strides),
        4 => walk::<4>(items, shape, target, strides),
        8 => walk::<8>(items, shape, target, strides),
        16 => walk::<16>(items, shape, target, strides),
        _ => return Err(Error::Beyond { what: "an item", length: item as u64 }),
    }
    Ok(())
}

/// How many items of the first and of the last axis are handled together, so that what is read and what is written
/// both stay in the cache.
const TILE: usize = 32;

/// Walks over all axes; the first (along which items lie together) and the last (along which they will) in tiles.
fn walk<const ITEM: usize>(items: &[u8], shape: &[usize], target: &mut [u8], strides: &[usize]) {
    let (items, _) = items.as_chunks::<ITEM>();
    let (Some((&first, inner)), Some(&first_stride)) = (shape.split_first(), strides.first()) else { return };
    let Some((&last, middle)) = inner.split_last() else {
        for (at, item) in items.iter().enumerate() {
            target[at * first_stride..][..ITEM].copy_from_slice(item);
        }
        return;
    };
    let (middle_strides, last_stride) = (&strides[1..strides.len() - 1], strides[strides.len() - 1]);
    let between: usize = middle.iter().product();
    for position in 0..between {
        // The place of this position along the axes in between, the first of which runs fastest in Fortran order.
        let (mut rest, mut base) = (position, 0);
        for (extent, stride) in middle.iter().zip(middle_strides) {
            base += rest % extent * stride;
            rest /= extent;
        }
        for low in (0..last).step_by(TILE) {
            for left in (0..first).step_by(TILE) {
                for i in left..(left + TILE).min(first) {
                    for j in low..(low + TILE).min(last) {
                        let place = base + i * first_stride + j * last_stride;
                        target[place..][..ITEM].copy_from_slice(&items[(j * between + position) * first + i]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scatters_as_a_naive_loop_does(
            shape in prop::collection::vec(1usize..40, 1..4),
            item in prop::sample::select(vec![1usize, 2, 4, 8, 16]),
            gap in 0usize..3,
        ) {
            let count: usize = shape.iter().product();
            let items: Vec<u8> = (0..count * item).map(|at| (at * 31 % 251) as u8).collect();
            let mut strides = vec![0; shape.len()];
            let mut step = item;
            for axis in (0..shape.len()).rev() {
                strides[axis] = step;
                step *= shape[axis] + gap;
            }
            let (mut found, mut expected) = (vec![0; step], vec![0; step]);
            scatter(&items, item, &shape, &mut found, &strides).expect("it fits");
            for at in 0..count {
                let (mut rest, mut place) = (at, 0);
                for (extent, stride) in shape.iter().zip(&strides) {
                    place += rest % extent * stride;
                    rest /= extent;
                }
                expected[place..place + item].copy_from_slice(&items[at * item..][..item]);
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn swaps_each_item(words in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            swap_bytes(&mut bytes, 8);
            let expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            prop_assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let items = [0; 12];
        assert!(scatter(&items, 2, &[2, 3], &mut [0; 11], &[6, 2]).is_err());
        assert!(scatter(&items, 2, &[2, 2], &mut [0; 99], &[6, 2]).is_err());
        assert!(scatter(&items, 3, &[2, 2], &mut [0; 99], &[6, 3]).is_err());
        assert!(scatter(&items, 2, &[6], &mut [0; 99], &[6, 2]).is_err());
    }
}
