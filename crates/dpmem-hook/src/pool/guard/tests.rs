//! Waits for queues.

use super::*;

#[test]
fn a_sweep_of_the_list_does_not_wait_for_a_marker_that_goes_in() {
    let queue =
        Queue { handle: 0x81, context: 0x80, submissions: Submissions::default(), markers: Mutex::default() };
    assert!(queue.submissions.note());
    queue.submissions.leave();
    let mut markers = queue.lock();
    assert!(!queue.has_served(), "the thread that has the lock would wait for itself");
    markers.settle(1);
    drop(markers);
    assert!(queue.has_served());
}

#[test]
fn a_wait_ends_for_the_queue_that_it_began_with_and_none_outlasts_the_counting() {
    let add = || {
        let queue = Arc::new(Queue {
            handle: 0x71,
            context: 0x70,
            submissions: Submissions::default(),
            markers: Mutex::default(),
        });
        QUEUES.write().expect("no panic").push(queue.clone());
        queue
    };
    switch(true);
    let first = add();
    assert!(submitted(0x71 as Handle).is_none(), "there is nothing to wait for");
    assert!(first.submissions.note() && first.submissions.note());
    let waited = submitted(0x71 as Handle).expect("it has two commands");
    // Another thread lets go of a reference to the queue, and gives it one more command.
    assert_eq!(first.submissions.leave(), 2);
    let second = add();
    assert!(second.submissions.note());
    waited.finished();
    assert_eq!((first.lock().done, second.lock().done), (2, 0));

    // Nobody counts for a while. The handle may be another queue's by then, of another context.
    switch(true);
    assert!(find(0x71 as Handle).is_some(), "counting goes on");
    switch(false);
    switch(true);
    assert!(find(0x71 as Handle).is_none());
    assert!(!second.submissions.note(), "a thread that used it last finds out");
    assert!(!second.is_done(1, 1), "what was waited for is not known to be done");

    // There is no runtime here that could say whose context a queue is of.
    assert!(!is_lost());
    noted(0x72 as Handle);
    assert!(is_lost(), "a command that nobody waits for");
    LOST.store(false, Ordering::Relaxed);
    switch(false);
}
