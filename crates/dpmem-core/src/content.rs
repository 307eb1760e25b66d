//! Whether a line copies the same data again and again. An address tells nothing: a buffer that is read into anew for
//! each chunk has one address and many contents.
//!
//! Hashing all that is copied would cost as much as the copy, so it is done in two steps: a [`sample`] of a few words
//! for every copy, and the [`whole`] only for a copy whose sample has been seen at this line before. Data that changes
//! is told apart by the sample nearly always; data that doesn't is hashed for the first [`ENOUGH`] copies.

/// Words in a sample.
const SAMPLED: usize = 24;
/// Bytes that are read at once; on the stack of the thread that copies.
const PART: usize = 16 << 10;
/// Copies of known content after which the line is taken for one that repeats itself, and no more is hashed: as many, or
/// fewer once so many bytes have been hashed.
const ENOUGH: u64 = 64;
const ENOUGH_OF_LARGE: u64 = 3;
const BYTES_HASHED: u64 = 128 << 20;
/// Copies that had the sample of the one before and yet another content, after which the line is taken for one that
/// doesn't repeat itself: data of few values, such as masks, has like samples.
const LOOK_ALIKES: u32 = 8;

/// Contents that went over one line.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Bytes and sample of the newest copy, and the whole's hash where it was taken.
    newest: Option<(u64, u64, Option<u64>)>,
    repeats: u64,
    hashed_bytes: u64,
    look_alikes: u32,
}

/// What is still to be found out about a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    Whole,
}

impl Contents {
    /// Copies whose content had gone over this line before.
    pub(crate) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Enters a copy's sample.
    pub(crate) fn sampled(&mut self, bytes: u64, sample: u64) -> Wanted {
        match self.newest {
            Some((known_bytes, known_sample, _)) if (known_bytes, known_sample) == (bytes, sample) => {}
            _ => {
                self.newest = Some((bytes, sample, None));
                return Wanted::Nothing;
            }
        }
        if self.look_alikes >= LOOK_ALIKES {
            return Wanted::Nothing;
        }
        let dear = self.hashed_bytes >= BYTES_HASHED && self.repeats >= ENOUGH_OF_LARGE;
        if dear || self.repeats >= ENOUGH {
            self.repeats += 1;
            return Wanted::Nothing;
        }
        Wanted::Whole
    }

    /// Enters the hash of the whole, after [`Contents::sampled`] asked for it.
    pub(crate) fn hashed(&mut self, bytes: u64, sample: u64, whole: u64) {
        self.hashed_bytes = self.hashed_bytes.saturating_add(bytes);
        let Some((known_bytes, known_sample, hash)) = &mut self.newest else { return };
        if (*known_bytes, *known_sample) != (bytes, sample) {
            return;
        }
        // The first copy with this sample was not hashed: the second can't be compared with it yet.
        match hash.replace(whole) {
            Some(before) if before == whole => self.repeats += 1,
            Some(_) => self.look_alikes += 1,
            None => {}
        }
    }
}

/// Data that can be read in parts, or not at all.
pub trait Data {
    /// How many bytes there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the eight bytes at each offset; whether all of them could be read.
    fn words(&self, offsets: &[usize], words: &mut [u64]) -> bool;

    /// Reads the bytes at an offset; whether they could be read.
    fn bytes(&self, offset: usize, into: &mut [u8]) -> bool;
}

/// A hash of a few words of `data`, from all over it.
pub(crate) fn sample(data: &dyn Data) -> Option<u64> {
    let words = data.len() / 8;
    if words <= SAMPLED {
        return whole(data);
    }
    let offsets: [usize; SAMPLED] = std::array::from_fn(|n| 8 * (n * (words - 1) / (SAMPLED - 1)));
    let mut picked = [0; SAMPLED];
    data.words(&offsets, &mut picked).then(|| picked.into_iter().fold(data.len() as u64, mix))
}

/// A hash of all of `data`.
pub(crate) fn whole(data: &dyn Data) -> Option<u64> {
    // Four chains, because each step of one has to wait for the step before.
    let mut chains = [1u64, 2, 3, 4];
    let mut part = [0; PART];
    for offset in (0..data.len()).step_by(PART) {
        let part = &mut part[..PART.min(data.len() - offset)];
        if !data.bytes(offset, part) {
            return None;
        }
        let blocks = part.chunks_exact(32);
        for (at, &byte) in blocks.remainder().iter().enumerate() {
            chains[at % 4] = mix(chains[at % 4], u64::from(byte) + 1);
        }
        for block in blocks {
            for (lane, chain) in chains.iter_mut().enumerate() {
                *chain = mix(*chain, word(block, lane));
            }
        }
    }
    Some(chains.into_iter().fold(data.len() as u64, mix))
}

fn word(data: &[u8], index: usize) -> u64 {
    data[8 * index..8 * index + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl Data for &[u8] {
        fn len(&self) -> usize {
            <[u8]>::len(self)
        }

        fn words(&self, offsets: &[usize], words: &mut [u64]) -> bool {
            offsets.iter().zip(words).for_each(|(&at, to)| *to = word(&self[at..], 0));
            true
        }

        fn bytes(&self, offset: usize, into: &mut [u8]) -> bool {
            into.copy_from_slice(&self[offset..offset + into.len()]);
            true
        }
    }

    fn copy(contents: &mut Contents, data: &[u8]) {
        let (bytes, sample) = (data.len() as u64, sample(&data).expect("it can be read"));
        if contents.sampled(bytes, sample) == Wanted::Whole {
            contents.hashed(bytes, sample, whole(&data).expect("it can be read"));
        }
    }

    #[test]
    fn the_same_data_repeats_itself() {
        let mut contents = Contents::default();
        (0..500).for_each(|_| copy(&mut contents, &[7; 4000]));
        assert_eq!(contents.repeats(), 498);
    }

    #[test]
    fn chunks_that_come_again_in_turn_do_not_repeat_themselves() {
        let mut contents = Contents::default();
        for _ in 0..50 {
            (0..5).for_each(|chunk| copy(&mut contents, &[chunk; 4000]));
        }
        assert_eq!(contents.repeats(), 0);
    }

    #[test]
    fn hashing_ends_where_samples_are_alike_and_contents_are_not() {
        let mut contents = Contents::default();
        let mut wholes = 0;
        for step in 0..100u64 {
            if contents.sampled(4000, 7) == Wanted::Whole {
                wholes += 1;
                contents.hashed(4000, 7, step);
            }
        }
        assert_eq!((wholes, contents.repeats()), (1 + LOOK_ALIKES, 0));
    }

    #[test]
    fn of_large_data_only_a_few_copies_are_hashed() {
        let mut contents = Contents::default();
        let mut wholes = 0;
        for _ in 0..50 {
            if contents.sampled(BYTES_HASHED, 7) == Wanted::Whole {
                wholes += 1;
                contents.hashed(BYTES_HASHED, 7, 1);
            }
        }
        assert_eq!((wholes, contents.repeats()), (1 + ENOUGH_OF_LARGE, 48));
    }

    #[test]
    fn one_changed_byte_between_the_samples_is_seen() {
        let mut contents = Contents::default();
        let mut data = vec![7u8; 100_000];
        for step in 0..200 {
            data[4321] = step;
            copy(&mut contents, &data);
        }
        assert_eq!(contents.repeats(), 0);
    }

    #[test]
    fn a_hash_depends_on_every_byte_and_on_the_length() {
        let hash = |data: &[u8]| whole(&data);
        for length in [77, PART + 45] {
            let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
            for at in (0..data.len()).rev().step_by(7) {
                let mut other = data.clone();
                other[at] ^= 1;
                assert_ne!(hash(&data), hash(&other), "byte {at}");
            }
        }
        assert_ne!(hash(&[0; 8]), hash(&[0; 9]));
        assert_ne!(sample(&&[0; 800][..]), sample(&&[0; 808][..]));
    }

    #[test]
    fn unreadable_data_has_no_hash() {
        struct Nowhere(usize);
        impl Data for Nowhere {
            fn len(&self) -> usize {
                self.0
            }
            fn words(&self, _: &[usize], _: &mut [u64]) -> bool {
                false
            }
            fn bytes(&self, _: usize, _: &mut [u8]) -> bool {
                false
            }
        }
        assert_eq!((sample(&Nowhere(8)), sample(&Nowhere(8000)), whole(&Nowhere(8))), (None, None, None));
    }
}
