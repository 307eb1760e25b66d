//! Pieces at equal distances, and copying them from an origin into a target.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::layout::{scatter, swap_bytes};
use crate::{Error, OpenFiles, Origin};

/// The most that one read asks for. Between reads the thread looks whether it is to stop.
const REQUEST: usize = 16 << 20;
/// Pieces closer together than this are read with what lies between them: a system call costs as much as reading that.
const GAP: u64 = 32 << 10;
/// How much is read at once then.
const WINDOW: u64 = 1 << 20;

/// `count` pieces of `bytes` bytes, `stride` apart in the origin and `target_stride` apart in the target.
pub struct Block {
    /// Where from.
    pub origin: Arc<dyn Origin>,
    /// Where the first piece begins there.
    pub offset: u64,
    /// How many pieces.
    pub count: u64,
    /// From the beginning of one to that of the next.
    pub stride: u64,
    /// The size of each.
    pub bytes: u64,
    /// Where the first piece goes.
    pub target_offset: u64,
    /// From the beginning of one to that of the next; without meaning if there is an `order`.
    pub target_stride: u64,
    /// Each group of so many bytes is reversed (2, 4 or 8; else nothing is).
    pub swapped: usize,
    /// How to put them if not as they come.
    pub order: Option<Order>,
}

/// Items that come in Fortran order, and where they go.
#[derive(Clone, Debug)]
pub struct Order {
    /// Bytes of an item: 1, 2, 4, 8 or 16.
    pub item: usize,
    /// Items along each axis.
    pub shape: Vec<usize>,
    /// Bytes between items along each axis in the target, from `target_offset` on.
    pub strides: Vec<usize>,
}

/// Copies all blocks into `target`; stops early, with an error, once `stop` is set.
///
/// # Errors
/// What an origin says, or a block that doesn't fit.
pub fn fill(
    blocks: &[Block],
    target: &mut [u8],
    files: &mut OpenFiles,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut scratch = Vec::new();
    for block in blocks {
        let Some(order) = &block.order else {
            let end = end(block.target_offset, block.count, block.target_stride, block.bytes);
            let place = part(target, block.target_offset, end)?;
            pieces(block, block.target_stride, place, files, stop)?;
            continue;
        };
        let total = block.count.checked_mul(block.bytes).filter(|total| *total <= target.len() as u64);
        let total = total.ok_or(Error::Beyond { what: "a target", length: target.len() as u64 })?;
        grow(&mut scratch, index(total))?;
        pieces(block, block.bytes, &mut scratch, files, stop)?;
        let length = target.len() as u64;
        let place = part(target, block.target_offset, Some(length))?;
        scatter(&scratch, order.item, &order.shape, place, &order.strides)?;
    }
    Ok(())
}

/// Gives a buffer this length. It may be as large as a chunk, and a program can live without that; an allocation that
/// fails otherwise ends the process.
fn grow(buffer: &mut Vec<u8>, length: usize) -> Result<(), Error> {
    let more = length.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| Error::Memory { bytes: length as u64 })?;
    buffer.resize(length, 0);
    Ok(())
}

/// Where pieces end; None if that is beyond any memory.
fn end(offset: u64, count: u64, stride: u64, bytes: u64) -> Option<u64> {
    let Some(before) = count.checked_sub(1) else { return Some(offset) };
    before.checked_mul(stride)?.checked_add(bytes)?.checked_add(offset)
}

fn part(target: &mut [u8], offset: u64, end: Option<u64>) -> Result<&mut [u8], Error> {
    let beyond = Error::Beyond { what: "a target", length: target.len() as u64 };
    end.and_then(|end| target.get_mut(index(offset)..index(end))).ok_or(beyond)
}

/// Of a number that is an index on every platform there is; else beyond any memory.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Copies the pieces of one block so that they are `stride` apart in `place`, in the order of their bytes that is wanted.
fn pieces(
    block: &Block,
    stride: u64,
    place: &mut [u8],
    files: &mut OpenFiles,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let Block { count, bytes, .. } = *block;
    if count == 0 || bytes == 0 {
        return Ok(());
    }
    if end(block.offset, count, block.stride, bytes).is_none() {
        return Err(Error::Beyond { what: "an origin", length: u64::MAX });
    }
    if count == 1 || (block.stride == bytes && stride == bytes) {
        return requests(block, block.offset, &mut place[..index(count * bytes)], files, stop);
    }
    if bytes >= GAP || !(bytes..bytes + GAP).contains(&block.stride) {
        for at in 0..count {
            let piece = &mut place[index(at * stride)..][..index(bytes)];
            requests(block, block.offset + at * block.stride, piece, files, stop)?;
        }
        return Ok(());
    }
    let together = (WINDOW / block.stride).max(1);
    let mut window = vec![0; index(together.min(count) * block.stride)];
    let mut at = 0;
    while at < count {
        let number = together.min(count - at);
        let read = &mut window[..index((number - 1) * block.stride + bytes)];
        // What lies between pieces may be no whole items, so bytes are reversed after the pieces are taken out.
        proceed(stop)?;
        block.origin.read(block.offset + at * block.stride, read, files)?;
        for piece in 0..number {
            let to = &mut place[index((at + piece) * stride)..][..index(bytes)];
            to.copy_from_slice(&read[index(piece * block.stride)..][..index(bytes)]);
            swap_bytes(to, block.swapped);
        }
        at += number;
    }
    Ok(())
}

/// Reads what lies together, in requests of a size.
fn requests(
    block: &Block,
    offset: u64,
    place: &mut [u8],
    files: &mut OpenFiles,
    stop: &AtomicBool,
) -> Result<(), Error> {
    for (number, request) in place.chunks_mut(REQUEST).enumerate() {
        proceed(stop)?;
        block.origin.read(offset + (number * REQUEST) as u64, request, files)?;
        swap_bytes(request, block.swapped);
    }
    Ok(())
}

fn proceed(stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
