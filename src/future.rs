//! Futures of one thread: the boxed alias that ports use, and waiting for one of two, or for all.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A future that stays on its thread; what every port method answers with.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Which of two came first.
pub enum Either<A, B> {
    /// The first one.
    First(A),
    /// The second one.
    Second(B),
}

/// Waits for whichever is ready first; the first wins a tie, the other is dropped. Both are boxed: a future that holds
/// others by value is as large as all of them, twice, and calls nest.
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

/// Waits for all, side by side; the answers are in the order of the futures.
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

/// Keeps what is rarely done out of the code of whoever waits for it, so that a page can start without it.
pub fn rarely<'a, T>(work: impl Future<Output = T> + 'a) -> Local<'a, T> {
    Box::pin(work)
}
