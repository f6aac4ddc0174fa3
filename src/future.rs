//! Futures that stay on one thread: a boxed alias for ports, and functions that wait for one of two futures or for all.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A boxed future that stays on its thread. Every port method returns one.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Which of two futures was ready first.
pub enum Either<A, B> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
}

/// Waits for the future that is ready first, and drops the other. If both are ready, the first wins. Both futures are
/// boxed: a future that holds others by value is as large as all of them, twice, and calls are nested.
pub fn race<'a, A: 'a, B: 'a>(
    first: impl Future<Output = A> + 'a,
    second: impl Future<Output = B> + 'a,
) -> impl Future<Output = Either<A, B>> + 'a {
    either(Box::pin(first), Box::pin(second))
}

async fn either<A, B>(mut first: Local<'_, A>, mut second: Local<'_, B>) -> Either<A, B> {
    poll_fn(|context| {
        if let Poll::Ready(value) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(value));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

/// Waits for all futures at the same time. The results are in the order of the futures.
pub async fn join_all<T>(futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut running: Vec<Result<Local<'_, T>, Option<T>>> = futures.into_iter().map(Ok).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for place in &mut running {
            if let Ok(future) = place {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *place = Err(Some(value)),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|place| place.err().flatten()).collect()
}

/// Boxes a future of rarely used code, so that the code is not inlined into its caller and a page can start without it.
pub fn rarely<'a, T>(work: impl Future<Output = T> + 'a) -> Local<'a, T> {
    Box::pin(work)
}
