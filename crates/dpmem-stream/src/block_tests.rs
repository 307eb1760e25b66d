//! Blocks of any kind against a loop over bytes.

use proptest::prelude::*;

use super::*;

struct Bytes(Vec<u8>);

impl Origin for Bytes {
    fn read(&self, offset: u64, into: &mut [u8], _: &mut OpenFiles) -> Result<(), Error> {
        let from = self.0.get(index(offset)..index(offset) + into.len());
        into.copy_from_slice(from.ok_or(Error::Beyond { what: "an origin", length: self.0.len() as u64 })?);
        Ok(())
    }
}

fn origin(length: usize) -> Arc<Bytes> {
    Arc::new(Bytes((0..length).map(|at| (at * 7 % 253) as u8).collect()))
}

fn block(origin: &Arc<Bytes>, count: u64, stride: u64, bytes: u64, target_stride: u64) -> Block {
    let origin: Arc<dyn Origin> = origin.clone();
    let (offset, target_offset, swapped, order) = (3, 5, 0, None);
    Block { origin, offset, count, stride, bytes, target_offset, target_stride, swapped, order }
}

fn filled(blocks: &[Block], length: usize) -> Result<Vec<u8>, Error> {
    let mut target = vec![0xee; length];
    fill(blocks, &mut target, &mut OpenFiles::default(), &AtomicBool::new(false))?;
    Ok(target)
}

proptest! {
    #[test]
    fn pieces_land_where_a_naive_loop_puts_them(
        count in 0u64..40,
        words in 1u64..20,
        gap in prop::sample::select(vec![0u64, 1, 8, 40, 70_000]),
        target_gap in 0u64..3,
        swapped in prop::sample::select(vec![0usize, 2, 4, 8]),
    ) {
        let bytes = words * 8;
        let (stride, target_stride) = (bytes + gap, bytes + target_gap);
        let origin = origin(index(3 + 40 * stride));
        let block = Block { swapped, ..block(&origin, count, stride, bytes, target_stride) };
        let length = index(5 + 40 * target_stride);
        let mut expected = vec![0xee; length];
        for piece in 0..count {
            for at in 0..bytes {
                let within = match swapped as u64 { 0 => at, width => at / width * width + width - 1 - at % width };
                let to = index(5 + piece * target_stride + at);
                expected[to] = origin.0[index(3 + piece * stride + within)];
            }
        }
        prop_assert_eq!(filled(&[block], length).expect("it fits"), expected);
    }
}

#[test]
fn windows_and_requests_join_without_a_seam() {
    let origin = origin(17 << 20);
    // Many windows of small pieces.
    let found = filled(&[block(&origin, 9_000, 1_000, 24, 24)], 5 + 9_000 * 24).expect("it fits");
    for piece in 0..9_000 {
        assert_eq!(found[5 + piece * 24..][..24], origin.0[3 + piece * 1_000..][..24]);
    }
    // More than one request.
    let whole = (REQUEST + 12_345) as u64;
    let found = filled(&[block(&origin, 1, 0, whole, 0)], 5 + REQUEST + 12_345).expect("it fits");
    assert!(found[5..] == origin.0[3..][..REQUEST + 12_345]);
}

#[test]
fn a_block_in_fortran_order_is_put_in_c_order() {
    // Two columns of three items of two bytes each become three rows.
    let origin = Arc::new(Bytes((0..12).collect()));
    let order = Some(Order { item: 2, shape: vec![3, 2], strides: vec![4, 2] });
    let block = Block { offset: 0, target_offset: 0, order, ..block(&origin, 2, 6, 6, 0) };
    assert_eq!(filled(&[block], 12).expect("it fits"), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
}

#[test]
fn what_reaches_beyond_is_refused_and_nothing_panics() {
    let origin = origin(100);
    for wrong in [
        block(&origin, 2, 10, 10, 10),
        block(&origin, u64::MAX, 10, 10, 10),
        block(&origin, 2, 10, u64::MAX, 10),
        Block { target_offset: u64::MAX, ..block(&origin, 1, 1, 1, 1) },
        Block { offset: u64::MAX - 20, ..block(&origin, 2, 8, 4, 4) },
        Block { offset: 99, ..block(&origin, 1, 0, 15, 0) },
    ] {
        assert!(filled(&[wrong], 20).is_err());
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let mut buffer = vec![1; 3];
    let error = grow(&mut buffer, isize::MAX as usize).expect_err("no machine has that");
    assert!(matches!(error, Error::Memory { bytes } if bytes == isize::MAX as u64), "{error}");
    grow(&mut buffer, 5).expect("there is room");
    assert_eq!(buffer, [1, 1, 1, 0, 0]);
    grow(&mut buffer, 2).expect("there is room");
    assert_eq!(buffer, [1, 1]);
}

#[test]
fn pieces_may_overlap_in_the_origin() {
    let origin = origin(100);
    for stride in [0, 3] {
        let found = filled(&[block(&origin, 3, stride, 4, 4)], 17).expect("it fits");
        for piece in 0..3 {
            assert_eq!(found[5 + piece * 4..][..4], origin.0[3 + piece * index(stride)..][..4]);
        }
    }
}

#[test]
fn who_is_told_to_stop_stops() {
    let origin = origin(100);
    let blocks = [block(&origin, 1, 0, 50, 0)];
    let answer = fill(&blocks, &mut [0; 60], &mut OpenFiles::default(), &AtomicBool::new(true));
    assert!(matches!(answer, Err(Error::Closed)));
}
