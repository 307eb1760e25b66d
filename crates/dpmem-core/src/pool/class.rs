//! Size classes: what the pool takes from upstream for a request of a given size.
//!
//! Up to 4 KiB classes are multiples of 512 bytes; above, each power of two is split in eight, so a block is at most an
//! eighth larger than what was asked for.

const SMALLEST: u64 = 512;
const FINE_UP_TO: u64 = 4096;
const FINE: usize = (FINE_UP_TO / SMALLEST) as usize;
/// Requests beyond 2^47 bytes are no class's.
const LARGEST_BITS: u32 = 47;

/// How many classes there are.
pub(super) const COUNT: usize = FINE + 8 * (LARGEST_BITS - 12) as usize;

/// The number of the class for a request, and the bytes of its blocks. `None` for what is never kept.
pub(super) fn of(bytes: u64) -> Option<(usize, u64)> {
    match bytes {
        0 => None,
        1..=FINE_UP_TO => {
            let number = bytes.div_ceil(SMALLEST);
            Some((number as usize - 1, number * SMALLEST))
        }
        _ => {
            let power = (bytes - 1).ilog2();
            if power >= LARGEST_BITS {
                return None;
            }
            let step = 1u64 << (power - 3);
            let block = bytes.next_multiple_of(step);
            let eighth = ((block - 1) >> (power - 3)) as usize - 8;
            Some((FINE + 8 * (power - 12) as usize + eighth, block))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_of_classes() {
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some((0, 512)));
        assert_eq!(of(4096), Some((7, 4096)));
        assert_eq!(of(4097), Some((8, 4608)));
        assert_eq!(of(8192), Some((15, 8192)));
        assert_eq!(of(8193), Some((16, 9216)));
        assert_eq!(of(1 << 47).map(|(number, _)| number), Some(COUNT - 1));
        assert_eq!(of((1 << 47) + 1), None);
    }

    proptest! {
        #[test]
        fn a_block_holds_its_request_and_wastes_little(bytes in 1u64..(1 << 46)) {
            let (number, block) = of(bytes).expect("in range");
            prop_assert!(block >= bytes && number < COUNT);
            prop_assert!(bytes <= 4096 || (block - bytes) * 8 <= bytes, "{} in {}", bytes, block);
            prop_assert_eq!(of(block), Some((number, block)), "a block is of its own class");
        }

        #[test]
        fn numbers_grow_with_sizes(small in 1u64..(1 << 40), more in 1u64..(1 << 40)) {
            let (a, b) = (of(small).expect("in range"), of(small + more).expect("in range"));
            prop_assert!(a <= b && (a.0 == b.0) == (a.1 == b.1));
        }
    }
}
