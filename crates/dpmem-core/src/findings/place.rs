//! Lines of the program, and what happened at each.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::site::SiteId;
use crate::snapshot::{SiteSnapshot, Snapshot};
use crate::stack::Frame;

/// A line of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// File name as the code object states it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

impl Place {
    /// The user's line of a stack: its first frame that is no library's.
    #[must_use]
    pub fn of(frames: &[Frame]) -> Option<Place> {
        user_frame(frames).map(|frame| Place { file: frame.file.clone(), line: frame.line })
    }
}

/// The innermost frame that is no library's.
pub(super) fn user_frame(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|frame| !frame.library)
}

/// The library's frames between the user's line and the event, innermost first.
pub(super) fn library_frames(frames: &[Frame]) -> &[Frame] {
    let end = frames.iter().position(|frame| !frame.library).unwrap_or(frames.len());
    &frames[..end]
}

/// The library function that the user's line called, by its bare name; `None` if there is none.
pub(super) fn called(frames: &[Frame]) -> Option<&str> {
    library_frames(frames).last().map(|frame| bare(&frame.function))
}

/// `__add__` of `dpnp_array.__add__`.
pub(super) fn bare(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or(function)
}

/// The sites that `wanted` accepts, by the user's line.
pub(super) fn sites_by_place(
    snapshot: &Snapshot,
    wanted: impl Fn(&SiteSnapshot) -> bool,
) -> BTreeMap<Place, Vec<&SiteSnapshot>> {
    let mut places: BTreeMap<Place, Vec<&SiteSnapshot>> = BTreeMap::new();
    for site in snapshot.sites.iter().filter(|site| wanted(site)) {
        if let Some(place) = Place::of(&site.frames) {
            places.entry(place).or_default().push(site);
        }
    }
    places
}

/// A site by its number.
pub(super) fn site(snapshot: &Snapshot, id: SiteId) -> Option<&SiteSnapshot> {
    let at = snapshot.sites.binary_search_by_key(&id, |site| site.id).ok()?;
    snapshot.sites.get(at)
}

/// Whether the user's line is a comprehension: it builds a collection at once. Newer interpreters have no frame for it, so
/// the text of the line has to tell.
pub(super) fn is_comprehension(frames: &[Frame], text: &dyn Fn(&str, u32) -> Option<String>) -> bool {
    let Some(user) = user_frame(frames) else { return false };
    if matches!(bare(&user.function), "<listcomp>" | "<dictcomp>" | "<setcomp>") {
        return true;
    }
    text(&user.file, user.line).is_some_and(|line| {
        let line = line.trim_start();
        !line.starts_with("for ") && line.contains(" for ") && line.contains(" in ")
    })
}
